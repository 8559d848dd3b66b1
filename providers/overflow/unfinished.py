"""Recognise answers that ended before their first word: the prompt fits, but leaves no room for output."""

from typing import Any, Final

import orjson

from providers.record import Overflow

SIGN: Final = "no_room_for_answer"
_MARK: Final = b"max_output_tokens"
_EMPTY: Final = frozenset({"reasoning"})
"""Item types of an output that contain nothing a client can use yet."""


def read_unfinished(body: bytes) -> Overflow | None:
    """Read an incomplete Responses answer, or the last event of its stream; return None when it did not run out of
    room.

    An answer that used all the output tokens the client allowed is complete.
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
    if (
        not isinstance(details, dict)
        or details.get("reason") != "max_output_tokens"
        or _has_content(response.get("output"))
    ):
        return None
    usage = response.get("usage")
    prompt, written = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    asked = response.get("max_output_tokens")
    if prompt is None or (isinstance(asked, int) and (written or 0) >= asked):
        return None
    return Overflow(limit=prompt + (written or 0), prompt=prompt, sign=SIGN)


def _has_content(output: Any) -> bool:
    """Return whether an output contains anything that a client can use."""
    items = output if isinstance(output, list) else []
    return any(isinstance(item, dict) and str(item.get("type")) not in _EMPTY for item in items)


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
