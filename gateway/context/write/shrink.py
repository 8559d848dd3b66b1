"""Make one message smaller: its longest texts are cut first, and arguments of calls stay JSON."""

from collections.abc import Sequence
from sys import getsizeof
from typing import Any, Final

from gateway.context.count.counter import Counter, CountText
from gateway.context.write.shrink_json import shrink_json, shrink_json_hard
from gateway.context.write.shrink_text import shrink_text
from gateway.wire.facts import MESSAGE_BYTES, facts_of
from gateway.wire.message import Message

MOST_FORMS: Final = 32
"""Cached forms of one message: those of old results never change, those of a current one seldom do."""

_Path = tuple[str | int, ...]


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
        return shrink_json(text, tokens, max(count(text), 1), count) or shrink_json_hard(text)
    return shrink_text(text, tokens, count, asked, thorough=thorough)


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
