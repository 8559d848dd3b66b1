"""Read the members of a JSON object that strict parsers refuse: NaN, half an emoji, raw control characters, a missing end."""

import json  # noqa: TID251  # reads what orjson refuses, and reports where a value ends
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_DECODER: Final = json.JSONDecoder(strict=False)
_SPACE: Final = " \t\r\n"


class Member(NamedTuple):
    """A member of an object; its value stands between two positions of the text, in characters."""

    name: str
    value: Any
    start: int
    end: int


def members_of(text: str) -> Iterator[Member]:
    """Yield the members up to the object's end. Raises ValueError, behind those before it, where the text cannot be read, and
    RecursionError where a value is too deep."""
    position = _expected(text, 0, "{")
    if text[position : position + 1] == "}":
        return
    while True:
        name, position = _DECODER.raw_decode(text, position)
        if not isinstance(name, str):
            raise ValueError("the name of a member is not a string")
        start = _expected(text, position, ":")
        value, end = _DECODER.raw_decode(text, start)
        yield Member(name, value, start, end)
        position = _past_space(text, end)
        if text[position : position + 1] == "}":
            return
        position = _expected(text, position, ",")


def _expected(text: str, position: int, sign: str) -> int:
    """Return the position behind a sign and the space around it."""
    position = _past_space(text, position)
    if text[position : position + 1] != sign:
        raise ValueError("the body is not a JSON object")
    return _past_space(text, position + 1)


def _past_space(text: str, position: int) -> int:
    while text[position : position + 1] and text[position] in _SPACE:
        position += 1
    return position
