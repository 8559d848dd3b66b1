"""The endpoints of the admin port: records, learned facts, metrics, the dashboard.

- `port`: all paths. `dashboard`: its page.
- `lookup`, with `filters`: questions about past requests. `prices`: what their tokens cost.
- `health`, `gauges`: the state of the process. `workers`: that of the other ones.
- `explain`: what would be done to a request.
"""
