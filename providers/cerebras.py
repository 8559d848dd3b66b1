"""Cerebras: OpenAI's dialect, whose "too long" sometimes has an empty body."""

from typing import Final

from msgspec.structs import replace

from providers.openai import OPENAI, join
from providers.overflow.signs import read_refusal
from providers.record import Overflow, Refusal


def read_empty_body(status: int, body: bytes) -> Refusal | None:
    """Read an empty 400 or 413 as too long: Cerebras sends both, and every other refusal has a body."""
    if status in (400, 413) and not body.strip():
        return Overflow(sign="no_body")
    return read_refusal(status, body)


CEREBRAS: Final = replace(OPENAI, name="cerebras", locate=join, read_refusal=read_empty_body)
