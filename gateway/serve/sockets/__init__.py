"""WebSockets: passed through, and their turns folded.

- `websocket`: connect both sides, and forward frames. `events`: what is in a frame.
- `messages`: a client's message on its way to the upstream. It uses `models` (its model), `limits` (of the client's key) and `fold`.
- `fold`, with `asking`: fold a message that asks for a response. `retry`: send a refused one again, smaller.
- `turns`: the record of each response.
"""
