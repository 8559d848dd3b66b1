"""A summary: a model's text that replaces the oldest messages of a conversation."""

import msgspec


class Summary(msgspec.Struct, frozen=True):
    """``text`` summarises the first ``covers`` messages."""

    text: str
    covers: int
