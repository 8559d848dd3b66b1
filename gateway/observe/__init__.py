"""One record per request, several observers.

- `exchange`: the record. `shape`: the same as JSON. `storable`: values that JSON and stores can hold.
- `log`, `metrics`, `trace`: its observers. `log_stream`: where log lines are written. `exposition`: the text of metrics. `printable`: text of others on a terminal.
- `sums`: what many records say together.
- `dashboard`: the files of the page that shows them.
"""
