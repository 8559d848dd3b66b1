"""Endpoints beside a conversation: passed through, or answered here where an upstream lacks them.

- `passthrough`: every path without a handler of its own. `named_model`: the model that such a request names. `kept`: which upstream has what its path
  names.
- `models`: the list of models.
- `counting`, `compact`: count or compact a conversation. They ask the upstream first (`upstream_first`).
"""
