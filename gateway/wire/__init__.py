"""Read request bodies into conversations, and write edits back into the bytes.

What the core sees:

- `format`: what every format offers. `formats`: the known ones by their paths.
- `message`: the shape of a message. `derived`: the values derived from it. `memory`: the cache of messages and derived values, within one budget.

One format each:

- `chat`, with `skim` and `interned`: chat completions, of which as little is read as possible. `openai_error`: its errors.
- `responses`: Responses. `responses_reading`, `responses_edits`: from and to the bytes.
- `messages`: Anthropic's Messages. `messages_reading`, with `messages_request`, `messages_views` and `messages_tools`: from the bytes.
  `messages_edits`, with `messages_blocks`: to the bytes.
- `ollama`: Ollama's own API. `ollama_reading`, `ollama_edits`: from and to the bytes.
- `views`: items of the last three in the shape of a message. `hosted`: results of tools that the provider runs. `citations`, `cache_marks`,
  `compaction`: what else may be in a body. `server_ids`: ids of what only one server has.

Bytes:

- `splice`: change members of a body. `raw_json`: split JSON. `piecewise`: parse long JSON. `exact_json`: numbers as they were written.
- `surrogates`, `lenient_json`: JSON that strict parsers refuse.
- `model_name`, `multipart`, `binary`: the model in bodies that are no conversation.
"""
