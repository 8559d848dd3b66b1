"""Shorten one message: its longest texts are cut first, and arguments of calls stay JSON."""

from collections.abc import Sequence
from sys import getsizeof
from typing import Any, Final

from gateway.context.count.counter import Counter, CountText
from gateway.context.shrink.json_value import shrink_json, shrink_json_hard
from gateway.context.shrink.text import shrink_text
from gateway.wire.derived import MESSAGE_BYTES, derived_of
from gateway.wire.message import Message
from gateway.wire.views import Opaque

MOST_TRIES: Final = 12
"""Most texts of one message that are shortened. Chosen: few messages have so many long ones."""
LEAST_TEXT_TOKENS: Final = 24
"""Tokens. A text is not shortened below this, nor below a third of its size, while other texts can be."""
MOST_FORMS: Final = 32
"""Most cached forms of one message. Those of an old result never change, those of a current one seldom do."""

MOST_LEVELS: Final = 9
"""Steps of a path to parts whose texts are cut. Chosen: a search result inside a result needs five."""

_Path = tuple[str | int, ...]
"""The keys and indices that lead to a text in a message."""


def shrink_message(
    message: Message,
    tokens: int,
    counter: Counter,
    question_words: frozenset[str] = frozenset(),
    *,
    thorough: bool = True,
) -> Message:
    """Shorten the texts of a message, the longest first, until it costs at most so many tokens, as far as possible.

    ``question_words`` are the keys of the question's words: rows that have them are kept. ``thorough`` is false if texts are too
    long to be searched.
    """
    derived = derived_of(message)
    key = tokens, counter.name, question_words, thorough
    shorter: Message | None = derived.shrunk.get(key)
    if shorter is None:
        shorter = _shrink(message, tokens, counter, question_words, thorough=thorough)
        if counter.name and len(derived.shrunk) < MOST_FORMS:
            derived.shrunk[key] = shorter
            if shorter is not message:
                derived.grow(
                    MESSAGE_BYTES + getsizeof(question_words) + sum([getsizeof(text) for _, text in _texts(shorter)])
                )
    return shorter


def _shrink(
    message: Message, tokens: int, counter: Counter, question_words: frozenset[str], *, thorough: bool
) -> Message:
    """Shorten one text after the other, the longest first, until the message is small enough or no text gets shorter."""
    in_vain = set[tuple[str, int]]()  # a message may have thousands of calls: none is tried twice
    for _ in range(MOST_TRIES):
        cost = counter.message(message)
        if cost <= tokens:
            return message
        for path, text in sorted(_texts(message), key=lambda found: -len(found[1])):
            size = counter.text(text)
            target = max(size - (cost - tokens), min(size // 3, LEAST_TEXT_TOKENS), 4)
            if (text, target) in in_vain:
                continue
            shorter = _shorter(path, text, target, counter.text, question_words, thorough=thorough)
            if counter.text(shorter) < size:
                message = _replaced(message, path, shorter)
                break
            in_vain.add((text, target))
        else:
            return message
    return message


def _texts(message: Message) -> list[tuple[_Path, str]]:
    """Return the texts that may be cut, with their paths: the content, and the arguments of calls."""
    found: list[tuple[_Path, str]] = []
    content = message.get("content")
    if isinstance(content, str):
        found.append((("content",), content))
    elif isinstance(content, list):
        found += _texts_in_parts(content, ("content",))
    calls = message.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            found.append((("tool_calls", number, "function", "arguments"), function["arguments"]))
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and isinstance(legacy.get("arguments"), str):
        found.append((("function_call", "arguments"), legacy["arguments"]))
    return found


def _texts_in_parts(parts: list[Any], path: _Path) -> list[tuple[_Path, str]]:
    """Return the texts in parts, also in parts inside a part, such as a search result."""
    found: list[tuple[_Path, str]] = []
    for number, part in enumerate(parts):
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            found.append(((*path, number, "text"), part["text"]))
        elif isinstance(part.get("content"), list) and type(part) is not Opaque and len(path) < MOST_LEVELS:
            found += _texts_in_parts(part["content"], (*path, number, "content"))
    return found


def _shorter(
    path: _Path, text: str, tokens: int, count: CountText, question_words: frozenset[str], *, thorough: bool
) -> str:
    """Return a shorter text; arguments stay JSON, because upstreams refuse calls that are not JSON (case 43)."""
    if path[-1] == "arguments":
        return shrink_json(text, tokens, max(count(text), 1), count) or shrink_json_hard(text)
    return shrink_text(text, tokens, count, question_words, thorough=thorough)


def _replaced(value: Any, path: _Path, text: str) -> Any:
    """Return a copy of a value with another text at a path. All other parts are shared; the value does not change."""
    if not path:
        return text
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [*value[:step], _replaced(value[step], rest, text), *value[step + 1 :]]
    return {**value, step: _replaced(value[step], rest, text)}


def fair_limits(costs: Sequence[int], total: int) -> list[int]:
    """Divide a total among costs: a small cost is covered in full, and all larger ones get the same limit."""
    if sum(costs) <= total:
        return list(costs)
    left, number = total, len(costs)
    limit = 0
    for cost in sorted(costs):
        limit = left // number
        if cost > limit:
            break
        left -= cost
        number -= 1
    return [min(cost, limit) for cost in costs]
