"""The way in: connections, addresses, guards, limits and bodies of clients' requests.

In the order of use:

- `connection`, `tls`, `aiohttp_parts`: the client's connection. `unfinished_heads`, `write_timeout`: its limits. `malformed`: what cannot be parsed. `peers`: the other workers. `http_log`: the log of other servers.
- `addresses`, `guard`, `paths`, `headers`: who asks for what. `callers`: the hashes of the caller.
- `admission`, `uploads`: how much is served at a time. `limits`, `body`, `encoding`: the body within its limits.
- `errors`: our own errors.
"""
