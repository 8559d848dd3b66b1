"""The HTTP client for upstreams, and the choice of an upstream.

- `client`: an upstream as a `Target`, and one client for all of them. `traced`: the same with traces.
- `response`: an answer as it arrives, and the reasons why there is none. `refusals`: what it says about the size of the request.
  `streams`: which answers are streams, and how these are read.
- `certificates`: which certificates of upstreams are accepted, and when the system's are loaded.
- `balance`: which of several upstreams is tried first. `breaker`: when calls stop for a while.

The client has two ways to send:

- `own_http`: our own, with `dial` (open a connection), `http1` (one connection), `sending` (the request as bytes), `received` (the answer),
  `stall` (end exchanges in which nothing happens) and `many_lines` (parse input with many short lines piece by piece).
- `public_http`: aiohttp's, where our own cannot be used.

`hops` marks each request, so that one that returns to the gateway is recognised.
"""
