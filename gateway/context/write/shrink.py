"""Make one message smaller: cut texts that are too long, and mark the gaps.

The head and the tail stay, and in between the rows that report errors or bear on the question. JSON stays JSON. A text
that fits is returned unchanged, so cutting twice gives the same bytes.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from sys import getsizeof
from typing import Any, Final

import orjson

from gateway.context.choose.cues import errors_in, reports_error
from gateway.context.choose.words import lexicon_of
from gateway.context.count.counter import Counter, CountText
from gateway.wire.facts import MESSAGE_BYTES, facts_of
from gateway.wire.message import Message

HEAD_SHARE: Final = 0.35
"""Share of the room for the beginning of a text; see `TAIL_SHARE`."""
TAIL_SHARE: Final = 0.4
"""Share of the tail. Chosen above one half: the ends of questions and logs matter more than their beginnings."""
GAP_TOKENS: Final = 10
"""Tokens of a marker."""
MOST_FORMS: Final = 32
"""Cached forms of one message: those of old results never change, those of a current one seldom do."""
LONGEST_CLUSTER: Final = 64
"""Most characters in one visible character; the longest emoji sequences have some 15. A longer sequence is not text."""
_MARKED: Final = " characters cut ...]"
_MARKER: Final = re.compile(r"\[\.\.\. (\d{1,12}) characters cut \.\.\.\]")


def shrink_text(
    text: str, tokens: int, count: CountText, asked: frozenset[str] = frozenset(), *, thorough: bool = True
) -> str:
    """Cut a text to at most so many tokens; ``asked`` are the keys of the words it is searched for.

    When the work must be bounded (``thorough`` is false), head and tail stand and nothing is searched.
    """
    whole = count(text)
    if whole <= tokens:
        return text
    pruned = _prune_json(text, tokens, whole, count) if thorough else None
    if pruned is not None and (not asked or count(pruned) * 2 >= tokens):
        return pruned
    rows = _rows(text) if thorough else []
    found = _found(text, rows, asked)
    density = len(text) / max(whole, 1)
    goal = float(tokens - GAP_TOKENS)
    shortest = _marker(len(text))
    best, most = "", 0
    for _ in range(6):
        if goal <= 4:
            break
        cut = _keep(text, rows, int(goal * density), found)
        now = count(cut)
        again = now <= most
        if most < now <= tokens:
            best, most = cut, now
        if now <= tokens and (now >= FILLED * tokens or again):
            break
        # The text's density is a mean; after a miss in either direction the goal is measured anew.
        goal *= min(FILLED_GOAL * tokens / now, 2.0) if now <= tokens else min(0.9 if not best else 0.97, tokens / now)
    if best:
        return best
    return shortest if count(shortest) < whole else text[: _whole(text, max(tokens, 1))]


FILLED: Final = 0.96
"""Share of its tokens from which a cut text counts as filling them. Chosen: one more row seldom fits into the rest."""
FILLED_GOAL: Final = 0.99
"""Share of its tokens at which a text that was cut too short is cut again."""


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Found:
    """A row with the words of the question in it, and whether it reports an error."""

    row: _Row
    keys: frozenset[str]
    error: bool


def _rows(text: str) -> list[_Row]:
    """Return the rows of a text; a row that is too long to be kept or dropped as a whole is split."""
    rows: list[_Row] = []
    start = 0
    for line in text.splitlines(keepends=True):
        stop = start + len(line)
        while start < stop:
            edge = min(start + _LONGEST_ROW, stop)
            whole = _whole(text, edge) if edge < stop else edge
            end = whole if whole > start else edge
            rows.append(_Row(start, end))
            start = end
    return rows


_LONGEST_ROW: Final = 400
"""Characters. A longer row is split. Chosen: about five lines on a screen."""


def _keep(text: str, rows: Sequence[_Row], characters: int, found: Sequence[_Found]) -> str:
    """Choose rows from the head, the tail and the middle, and join them with marked gaps; the rest goes to the tail."""
    head = _upto(text, rows, int(characters * HEAD_SHARE))
    tail = _upto(text, rows, int(characters * TAIL_SHARE), backwards=True)
    spans = [(0, head), (tail, len(text))]
    left = characters - head - (len(text) - tail)
    for row in _telling([one for one in found if one.row.start >= head and one.row.end <= tail]):
        size = row.end - row.start + 34
        if size <= left:
            left -= size
            spans.append((row.start, row.end))
    if left > 0:
        spans.append((_row_from(text, rows, tail - left, tail), tail))
    return _join(text, sorted(spans))


def _row_from(text: str, rows: Sequence[_Row], edge: int, stop: int) -> int:
    """Return the start of the first row after an edge, or the edge itself where no row begins before ``stop``."""
    first = bisect_left(rows, edge, key=lambda row: row.start)
    return rows[first].start if first < len(rows) and rows[first].start < stop else _whole(text, edge)


def _upto(text: str, rows: Sequence[_Row], characters: int, *, backwards: bool = False) -> int:
    """Return the end of the head (or the start of the tail) for so many characters, at the end of a row if possible."""
    size = len(text)
    if backwards:
        edge = size - characters
        first = next((row.start for row in rows if row.start >= edge), size)
        return first if size - first >= characters // 2 else _whole(text, edge)
    edge = 0
    for row in rows:
        if row.end > characters:
            break
        edge = row.end
    return edge if edge >= characters // 2 else _whole(text, characters)


def _whole(text: str, position: int) -> int:
    """Move a cut back so that it splits no combined character."""
    position = min(max(position, 0), len(text))
    for whole in range(position, max(position - LONGEST_CLUSTER, 0), -1):
        if whole == len(text) or not (_joins(text[whole]) or text[whole - 1] == "\u200d"):
            return whole
    return position if position > LONGEST_CLUSTER else 0


def _joins(char: str) -> bool:
    """Return whether a character combines with the one before it."""
    return (
        unicodedata.combining(char) != 0
        or unicodedata.category(char) in ("Mn", "Mc", "Me")
        or char in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U0001f1e6" <= char <= "\U0001f1ff"
        or "\udc00" <= char <= "\udfff"
    )


def _found(text: str, rows: Sequence[_Row], asked: frozenset[str]) -> list[_Found]:
    """Return the rows that report errors or have words of the question."""
    if not rows:
        return []  # nothing is searched: the text may have 60 MB
    errors, words = errors_in(text), lexicon_of(None)
    failed = reports_error(text, errors)
    if not asked and not failed:
        return []
    found: list[_Found] = []
    for row in rows:
        line = text[row.start : row.end]
        keys = asked.intersection([word.key for word in words(line)]) if asked else asked
        error = failed and reports_error(line, errors)
        if keys or error:
            found.append(_Found(row, keys, error))
    return found


def _telling(found: Sequence[_Found]) -> list[_Row]:
    """Return rows of the middle by what they tell, the best first, the newest of equals first."""
    # A word in many rows distinguishes none of them.
    common = Counted(key for one in found for key in one.keys)
    scored = [
        # Keys have no order, and neither may the rounding.
        (fsum([1 / common[key] for key in one.keys]) + (1.0 if one.error else 0.0), one.row.start, one.row)
        for one in found
    ]
    return [row for _, _, row in sorted(scored, key=lambda item: (-item[0], -item[1]))]


def _join(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        if end <= position:
            continue
        if start > position:
            before = "" if not pieces or pieces[-1].endswith("\n") else "\n"
            pieces.append(f"{before}{_marker(_size(text, position, start))}\n")
        pieces.append(text[max(start, position) : end])
        position = max(position, end)
    return "".join(pieces)


def _size(text: str, start: int, end: int) -> int:
    """Return the characters that a gap replaces: characters of an earlier gap inside it count, its marker does not."""
    size = end - start
    if text.find(_MARKED, start, end) < 0:
        return size  # ten times as fast as the pattern, in a text that may have 60 MB
    for found in _MARKER.finditer(text, start, end):
        size += int(found[1]) - len(found[0])
    return size


def kept_characters(text: str) -> int:
    """Return the number of characters of a text without its gap markers."""
    return len(text) - sum(len(found[0]) for found in _MARKER.finditer(text))


def _marker(characters: int) -> str:
    return f"[... {characters} characters cut ...]"


MEMBER_CHARACTERS: Final = 50
"""Characters of each string that stand for one kept member of each list, as both are cut together. Chosen: lists of 40
records beside texts of 2,000 characters."""
LEAST_CHARACTERS: Final = 40
"""Characters that any string keeps."""
HALVINGS: Final = 5
"""Steps of the search for the gentlest cut, after it is known within a factor of two."""


def _prune_json(text: str, tokens: int, whole: int, count: CountText) -> str | None:
    """Cut JSON to valid JSON with the same keys, as gently as fits; None when impossible."""
    if text[:1] not in "{[" or len(text) > _LARGEST_JSON:
        return None
    try:
        value = orjson.loads(text)
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


_LARGEST_JSON: Final = 4_000_000
"""Characters of JSON that is parsed to be cut; longer JSON is cut as text. Chosen to bound the time."""


def _pruned(value: Any, members: int, characters: int) -> Any:
    if isinstance(value, str):
        if len(value) <= characters + 30:
            return value
        head = _whole(value, characters // 2)
        tail = _whole(value, len(value) - characters // 2)
        return f"{value[:head]}{_marker(_size(value, head, tail))}{value[tail:]}"
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


def shrink_message(
    message: Message, tokens: int, counter: Counter, asked: frozenset[str] = frozenset(), *, thorough: bool = True
) -> Message:
    """Shrink the texts of a message, the largest first, until it costs at most so many tokens, as far as possible."""
    facts = facts_of(message)
    key = tokens, counter.name, asked, thorough
    found: Message | None = facts.shrunk.get(key)
    if found is None:
        found = _shrink(message, tokens, counter, asked, thorough=thorough)
        if counter.name and len(facts.shrunk) < MOST_FORMS:
            facts.shrunk[key] = found
            if found is not message:
                facts.grow(MESSAGE_BYTES + getsizeof(asked) + sum([getsizeof(text) for _, text in _places(found)]))
    return found


def _shrink(message: Message, tokens: int, counter: Counter, asked: frozenset[str], *, thorough: bool) -> Message:
    for _ in range(12):
        cost = counter.message(message)
        if cost <= tokens:
            return message
        places = sorted(_places(message), key=lambda place: -len(place[1]))
        for path, text in places:
            size = counter.text(text)
            target = max(size - (cost - tokens), min(size // 3, 24), 4)
            shorter = _shorter(path, text, target, counter.text, asked, thorough=thorough)
            if counter.text(shorter) < size:
                message = _replaced(message, path, shorter)
                break
        else:
            return message
    return message


_Path = tuple[str | int, ...]


def _places(message: Message) -> list[tuple[_Path, str]]:
    """Return the places of texts that may be cut: the content, and the arguments of calls."""
    places: list[tuple[_Path, str]] = []
    content = message.get("content")
    if isinstance(content, str):
        places.append((("content",), content))
    elif isinstance(content, list):
        for number, part in enumerate(content):
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                places.append((("content", number, "text"), part["text"]))
    calls = message.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            places.append((("tool_calls", number, "function", "arguments"), function["arguments"]))
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and isinstance(legacy.get("arguments"), str):
        places.append((("function_call", "arguments"), legacy["arguments"]))
    return places


def _shorter(path: _Path, text: str, tokens: int, count: CountText, asked: frozenset[str], *, thorough: bool) -> str:
    """Cut a text; arguments only as JSON, because upstreams refuse calls that are not JSON (case 43)."""
    if path[-1] == "arguments":
        return _prune_json(text, tokens, max(count(text), 1), count) or _prune_hard(text)
    return shrink_text(text, tokens, count, asked, thorough=thorough)


def _prune_hard(text: str) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.dumps(_pruned(value, 1, LEAST_CHARACTERS)).decode()


def _replaced(value: Any, path: _Path, text: str) -> Any:
    """Return the same value with another text at a path; everything else is shared, nothing is changed in place."""
    if not path:
        return text
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [*value[:step], _replaced(value[step], rest, text), *value[step + 1 :]]
    return {**value, step: _replaced(value[step], rest, text)}


def levels(costs: Sequence[int], total: int) -> list[int]:
    """Divide a total among several, small ones in full and large ones up to one level."""
    if sum(costs) <= total:
        return list(costs)
    left, number = total, len(costs)
    level = 0
    for cost in sorted(costs):
        level = left // number
        if cost > level:
            break
        left -= cost
        number -= 1
    return [min(cost, level) for cost in costs]
