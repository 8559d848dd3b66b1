"""A summary: text by a model that stands for the oldest messages of a conversation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """``text`` says in short what the first ``covers`` messages said."""

    text: str
    covers: int
