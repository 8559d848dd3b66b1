"""Turnfold: a reverse proxy that keeps growing conversations inside the model's context window.

- `wire`, `context`: the core, without input and output: bodies as conversations, and the decisions about them.
- `serve`: the port of clients and of operators. `extproc`: the same decisions for Envoy.
- `upstream`: calls to model servers. `state`: what outlives a request. `observe`: records of requests.
- `config`: the configuration file. `command`: the command line.
- `standin`: a model server without a model, for tests and demonstrations.
"""

__version__ = "0.1.0"
