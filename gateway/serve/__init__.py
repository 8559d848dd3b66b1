"""Serve client requests: the aiohttp side of the gateway.

A request comes through these, in this order:

- `incoming`: the way in. `listening` opens the client port.
- `entrance`: check the request, and choose its handler. `keys`, `key_models` and `key_limits` check its client key.
- `chat`: the life of a request that may be folded. `request` has the work of each step.
- `endpoints`, `sockets`: everything that is not folded, or not over HTTP.
- `answers`: the way out.

What requests share:

- `gateway`: everything that belongs to one process.
- `arrival`, `record`: who sent one request and what became of it, wherever it is served.
- `app`, `process`: build, start and stop a gateway. `dealt`: its connections, where a supervisor hands them out.
- `admin`, `sums`: the admin port.
"""
