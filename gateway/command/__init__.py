"""The command line: what an operator types.

- `cli`: all commands. Each has a file of its name; `models` and `forget` are in `learned`.
- `serving`, `extproc`: the processes of the gateway. `process`: what both do. `workers`, `dealing`: several processes on one port.
- `init`, `check`, `keys`: the configuration.
- `explain`, `replay`, `report`: what would be done, and what was done.
- `demo`, `standin`: without a key. `recast`: one conversation in other formats.
- `usable`, `waiting`, `cells`: what several commands need.
"""
