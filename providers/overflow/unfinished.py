"""Answers that ended before they began: the prompt fits the window, and leaves no room for a word of the answer."""

from typing import Any, Final

import orjson

from providers.record import Overflow

SIGN: Final = "no_room_for_answer"
_MARK: Final = b"max_output_tokens"
_EMPTY: Final = frozenset({"reasoning"})
"""Items of an output that are no answer yet."""


def read_unfinished(body: bytes) -> Overflow | None:
    """Read a Responses answer, or the event that ends its stream, that is incomplete for want of room; None for any other.

    One that used up all the output tokens the client asked for is complete as the client wished.
    """
    if _MARK not in body or b'"incomplete"' not in body:
        return None
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    response = found.get("response", found) if isinstance(found, dict) else None
    if not isinstance(response, dict) or response.get("status") != "incomplete":
        return None
    details = response.get("incomplete_details")
    if not isinstance(details, dict) or details.get("reason") != "max_output_tokens" or _says(response.get("output")):
        return None
    usage = response.get("usage")
    prompt, written = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    asked = response.get("max_output_tokens")
    if prompt is None or (isinstance(asked, int) and (written or 0) >= asked):
        return None
    return Overflow(limit=prompt + (written or 0), prompt=prompt, sign=SIGN)


def _says(output: Any) -> bool:
    """Whether an output has anything in it that a client could use."""
    items = output if isinstance(output, list) else []
    return any(isinstance(item, dict) and item.get("type") not in _EMPTY for item in items)


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
