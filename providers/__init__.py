"""Everything Turnfold knows about other APIs, as plain values and plain functions without I/O.

- `record`: what a provider is. `registry`: all of them by name. `openai`, `azure`, `anthropic`, `cerebras`, `native`: how they differ.
- `overflow`: recognise a refusal as too long, and read its numbers.
- `usage`: read a bill. `windows`, `origins`, `model_list`: read lists of models.
- `sse`: the events of a stream. `ndjson`: a stream with one JSON value in a line.
"""
