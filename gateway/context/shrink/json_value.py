"""Shorten JSON so that it stays JSON with the same keys: lists lose members, and strings lose their middle. Numbers keep
their written form."""

from collections.abc import Callable
from math import sqrt
from typing import Any, Final

import orjson

from gateway.context.count.counter import CountText
from gateway.context.shrink.gaps import FILL_GOAL, LEAST_FILLED, MOST_OF_LAST_TRY, character_boundary, gap_size, marker
from gateway.wire import exact_json

CHARACTERS_PER_MEMBER: Final = 50
"""Characters. Lists and strings are shortened together: with one more member in each list, each string keeps so many more
characters. Chosen: lists of 40 records beside texts of 2,000 characters."""

LEAST_CHARACTERS: Final = 40
"""Characters that any string keeps."""

HALVINGS: Final = 5
"""Steps of the search for the longest form that fits, once it is known within a factor of two."""

MOST_TRIES: Final = 5
"""Most forms that are made and counted. Chosen: nearly all fit after three."""

GAP_CHARACTERS: Final = 30
"""Characters. A string that is longer than allowed by no more than this is kept: the marker would take as much."""

_LARGEST_JSON: Final = 4_000_000
"""Characters. Longer JSON is shortened as text, not parsed. Chosen to bound the time."""


def shrink_json(text: str, tokens: int, size: int, count: CountText) -> str | None:
    """Shorten JSON of ``size`` tokens to valid JSON with the same keys, of at most ``tokens``, and not much fewer. None
    when this is not possible."""
    if text[:1] not in "{[" or len(text) > _LARGEST_JSON:
        return None
    try:
        return _shrunk(exact_json.loads(text), text, tokens, size, count)
    except (orjson.JSONDecodeError, RecursionError):  # nested too deep
        return None


def shrink_json_hard(text: str) -> str:
    """Shorten JSON as far as possible: each list to one member, each string to the fewest characters."""
    try:
        return exact_json.dumps(_pruned(exact_json.loads(text), 1, LEAST_CHARACTERS))
    except (orjson.JSONDecodeError, RecursionError):  # nested too deep
        return text


def _shrunk(value: Any, text: str, tokens: int, size: int, count: CountText) -> str | None:
    """Return the longest form of a value that fits ``tokens`` after some tries; None if no form fits. ``text`` is the whole JSON, of ``size``
    tokens."""
    characters = len(text) * tokens / size
    best, best_size = None, 0
    for _ in range(MOST_TRIES):
        form = _longest_form(value, characters, len(text))
        form_size = count(form)
        is_no_better = form_size <= best_size
        if best_size < form_size <= tokens:
            best, best_size = form, form_size
        if form_size <= tokens and (form_size >= LEAST_FILLED * tokens or is_no_better):
            break
        # The kept part has other tokens per character than the whole, so the limit is corrected by the result.
        if form_size <= tokens:
            characters = characters * FILL_GOAL * tokens / form_size
        else:
            characters = min(characters, len(form)) * min(tokens / form_size, MOST_OF_LAST_TRY)
    if best is None:
        form = _form(value, 1.0)
        best = form if count(form) <= tokens else None
    return best


def _longest_form(value: Any, characters: float, whole: int) -> str:
    """Return the longest form of at most so many characters that a search finds; the shortest form when none fits.
    ``whole`` is the characters of the whole JSON."""
    best, members = _search(lambda members: _form(value, members), characters, whole)
    if len(best) < LEAST_FILLED * characters:
        # One more member of each list is too much, but longer strings may fit.
        best, _ = _search(lambda factor: _form(value, members, factor), characters, whole, best)
    return best


def _search(make: Callable[[float], str], characters: float, whole: int, best: str = "") -> tuple[str, float]:
    """Return the longest form of at most so many characters, and the argument it was made with, from 1 on."""
    low, high = 1.0, 2.0
    best = best or make(low)
    while high < whole and len(form := make(high)) <= characters:
        best, low, high = form, high, high * 2
    for _ in range(HALVINGS if high < whole else 0):
        middle = sqrt(low * high)
        form = make(middle)
        if len(form) <= characters:
            best, low = form, middle
        else:
            high = middle
    return best, low


def _form(value: Any, members: float, factor: float = 1.0) -> str:
    """Return the JSON with so many members in each list, and strings in proportion, longer by ``factor``."""
    characters = max(int(members * factor * CHARACTERS_PER_MEMBER), LEAST_CHARACTERS)
    return exact_json.dumps(_pruned(value, int(members), characters))


def _pruned(value: Any, members: int, characters: int) -> Any:
    """Return a value with at most so many members in each list and about so many characters in each string."""
    if isinstance(value, str):
        if len(value) <= characters + GAP_CHARACTERS:
            return value
        head = character_boundary(value, characters // 2)
        tail = character_boundary(value, len(value) - characters // 2)
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
