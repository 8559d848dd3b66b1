"""Ways to keep a conversation inside a window, as functions of (messages, window in tokens, cost of a message)."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.recall.ours import budget_of, turnfold, without_recall

Message = dict[str, Any]
Cost = Callable[[Message], int]

LAST = 12
"""Messages that "keep the last" keeps."""


def everything(messages: Sequence[Message], window: int, cost: Cost) -> list[Message]:
    """No limit at all: the append-only ideal."""
    return list(messages)


def drop_oldest_half(messages: Sequence[Message], window: int, cost: Cost) -> list[Message]:
    """Whenever the window is full, drop the older half of the turns that still stand; a pure function of the messages."""
    pinned = [m for m in messages if m["role"] in ("system", "developer")]
    room = budget_of(window).room - sum(map(cost, pinned))
    standing: list[list[Message]] = []
    sizes: list[int] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            continue
        if message["role"] == "user" or not standing:
            standing.append([])
            sizes.append(0)
        standing[-1].append(message)
        sizes[-1] += cost(message)
        while len(standing) > 1 and sum(sizes) > room:
            half = (len(standing) + 1) // 2
            standing, sizes = standing[half:], sizes[half:]
    return [*pinned, *(m for turn in standing for m in turn)]


LARGEST = 0.5
"""Share of the room that a message keeps when a client cuts large ones."""


def cut_and_drop(messages: Sequence[Message], window: int, cost: Cost) -> list[Message]:
    """The same, with every message cut to half of the room from the start: so a conversation of a few large ones stays inside, too."""
    pinned = sum(cost(m) for m in messages if m["role"] in ("system", "developer"))
    most = max(int((budget_of(window).room - pinned) * LARGEST), 1)
    cut = [m if m["role"] in ("system", "developer") else _cut(m, most, cost) for m in messages]
    return drop_oldest_half(cut, window, cost)


def _cut(message: Message, most: int, cost: Cost) -> Message:
    content = message.get("content")
    while isinstance(content, str) and content and (size := cost({**message, "content": content})) > most:
        content = content[: min(int(len(content) * most / size), len(content) - 1)]
    return {**message, "content": content} if content != message.get("content") else message


SUMMARY = 250
"""Words of a client's summary."""


def summarise(messages: Sequence[Message], window: int, cost: Cost) -> list[Message]:
    """Whenever the window is full, replace the older half by a summary in front; what writing it costs is not counted."""
    pinned = [m for m in messages if m["role"] in ("system", "developer")]
    kept = drop_oldest_half(messages, window - 2 * SUMMARY, cost)
    gone = len(messages) - len(kept)
    if not gone:
        return kept
    text = " ".join(f"fact {gone}.{number}" if number % 5 == 0 else "so" for number in range(SUMMARY))
    first = next((n for n in range(len(pinned), len(kept)) if kept[n]["role"] == "user"), None)
    if first is None or not isinstance(kept[first].get("content"), str):
        return kept
    led = {**kept[first], "content": f"Summary of what was said before: {text}\n\n{kept[first]['content']}"}
    return [*kept[:first], led, *kept[first + 1 :]]


def keep_last(messages: Sequence[Message], window: int, cost: Cost) -> list[Message]:
    """The pinned messages and the last few whole turns, at every request anew."""
    pinned = [m for m in messages if m["role"] in ("system", "developer")]
    others = [m for m in messages if m["role"] not in ("system", "developer")]
    room = budget_of(window).room - sum(map(cost, pinned))
    start = max(len(others) - LAST, 0)
    while start < len(others) - 1 and (others[start]["role"] != "user" or sum(map(cost, others[start:])) > room):
        start += 1
    if others[start]["role"] != "user":
        start = max((n for n, m in enumerate(others) if m["role"] == "user"), default=start)
    return [*pinned, *others[start:]]


STRATEGIES: dict[str, Callable[[Sequence[Message], int, Cost], list[Message]]] = {
    "no limit": everything,
    "turnfold": turnfold,
    "turnfold without recall": without_recall,
    "drop oldest half": drop_oldest_half,
    "drop half and cut large": cut_and_drop,
    "client's summary": summarise,
    "keep last": keep_last,
}
