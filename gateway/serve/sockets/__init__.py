"""WebSockets: passed through, and messages that ask for a response folded.

- `websocket`: connect both sides, and forward frames. `events`: what is in a frame.
- `messages`: a client's message on its way to the upstream. It uses `models` (its model), `limits` (of the client's key) and `fold`.
- `fold`, with `asking`: fold a message that asks for a response. `retry`: send a refused one again, smaller.
- `pending`: the responses that have not ended, and the record of each.
"""
