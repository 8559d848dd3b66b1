"""One record per request, several observers.

- `exchange`: the record. `shape`: the same as JSON.
- `log`, `metrics`, `trace`: its observers. `log_stream`: where log lines are written. `exposition`: the text of metrics. `printable`: text of others on a terminal.
- `sums`: what many records say together.
- `dashboard`: the files of the page that shows them.
"""
