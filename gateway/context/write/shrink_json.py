"""Cut JSON so that it stays JSON with the same keys: lists lose members, and strings their middle."""

from collections.abc import Callable
from math import sqrt
from typing import Any, Final

import orjson

from gateway.context.count.counter import CountText
from gateway.context.write.gaps import FILLED, FILLED_GOAL, gap_size, marker, whole_before
from gateway.wire import piecewise

MEMBER_CHARACTERS: Final = 50
"""Characters of each string that stand for one kept member of each list, as both are cut together. Chosen: lists of 40
records beside texts of 2,000 characters."""

LEAST_CHARACTERS: Final = 40
"""Characters that any string keeps."""

HALVINGS: Final = 5
"""Steps of the search for the gentlest cut, after it is known within a factor of two."""

_LARGEST_JSON: Final = 4_000_000
"""Characters of JSON that is parsed to be cut; longer JSON is cut as text. Chosen to bound the time."""


def shrink_json(text: str, tokens: int, whole: int, count: CountText) -> str | None:
    """Cut JSON to valid JSON with the same keys, as gently as fits; None when impossible."""
    if text[:1] not in "{[" or len(text) > _LARGEST_JSON:
        return None
    try:
        value = piecewise.loads_text(text)
    except orjson.JSONDecodeError:
        return None
    limit = len(text) * tokens / whole
    best, most = None, 0
    for _ in range(5):
        pruned = _gentlest(value, limit, len(text))
        now = count(pruned)
        again = now <= most
        if most < now <= tokens:
            best, most = pruned, now
        if now <= tokens and (now >= FILLED * tokens or again):
            break
        # What is kept has other tokens a character than the whole, and gaps between its sizes.
        limit = (
            limit * FILLED_GOAL * tokens / now if now <= tokens else min(limit, len(pruned)) * min(tokens / now, 0.97)
        )
    if best is None:
        pruned = _cut_to(value, 1.0)
        best = pruned if count(pruned) <= tokens else None
    return best


def shrink_json_hard(text: str) -> str:
    try:
        value = piecewise.loads_text(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.dumps(_pruned(value, 1, LEAST_CHARACTERS)).decode()


def _gentlest(value: Any, limit: float, whole: int) -> str:
    """Return the longest cut form of at most so many characters that a search finds; the shortest when none fits."""
    best, members = _most(lambda members: _cut_to(value, members), limit, whole)
    if len(best) < FILLED * limit:
        # One more member of each list is too much: longer strings may fit.
        best, _ = _most(lambda longer: _cut_to(value, members, longer), limit, whole, best)
    return best


def _most(form: Callable[[float], str], limit: float, whole: int, best: str = "") -> tuple[str, float]:
    """Return the largest form of at most so many characters, and its size from 1 on."""
    low, high = 1.0, 2.0
    best = best or form(low)
    while high < whole and len(found := form(high)) <= limit:
        best, low, high = found, high, high * 2
    for _ in range(HALVINGS if high < whole else 0):
        middle = sqrt(low * high)
        found = form(middle)
        if len(found) <= limit:
            best, low = found, middle
        else:
            high = middle
    return best, low


def _cut_to(value: Any, members: float, longer: float = 1.0) -> str:
    """Return JSON with so many members of each list, and strings in proportion."""
    characters = max(int(members * longer * MEMBER_CHARACTERS), LEAST_CHARACTERS)
    return orjson.dumps(_pruned(value, int(members), characters)).decode()


def _pruned(value: Any, members: int, characters: int) -> Any:
    if isinstance(value, str):
        if len(value) <= characters + 30:
            return value
        head = whole_before(value, characters // 2)
        tail = whole_before(value, len(value) - characters // 2)
        return f"{value[:head]}{marker(gap_size(value, head, tail))}{value[tail:]}"
    if isinstance(value, dict):
        return {key: _pruned(item, members, characters) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) <= members + 1:
            return [_pruned(item, members, characters) for item in value]
        head = -(-members // 2)
        tail = members - head
        kept = [*value[:head], f"... {len(value) - members} more cut ...", *(value[-tail:] if tail else [])]
        return [_pruned(item, members, characters) for item in kept]
    return value
