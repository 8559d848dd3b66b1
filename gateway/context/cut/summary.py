"""A summary: a model's text that replaces the oldest messages of a conversation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """``text`` summarises the first ``covers`` messages."""

    text: str
    covers: int
