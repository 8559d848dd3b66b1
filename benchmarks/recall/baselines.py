"""What others do when a conversation is too long, as functions of (messages, window, count): what a fold must beat."""

import random
import re
from collections.abc import Callable, Sequence
from math import log
from typing import Any

Messages = list[dict[str, Any]]
Count = Callable[[Sequence[Any]], int]


def _turns(messages: Messages) -> tuple[Messages, list[Messages]]:
    """The system messages at the head, and the turns: each a user message and what follows it."""
    start = next((at for at, message in enumerate(messages) if message["role"] != "system"), len(messages))
    turns: list[Messages] = []
    for message in messages[start:]:
        if message["role"] == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return messages[:start], turns


def _flat(system: Messages, turns: Sequence[Messages]) -> Messages:
    return [*system, *(message for turn in turns for message in turn)]


def oldest_half(messages: Messages, window: int, count: Count) -> Messages:
    """Drop the older half of the turns, again and again until it fits."""
    system, turns = _turns(messages)
    while len(turns) > 1 and count(_flat(system, turns)) > window:
        turns = turns[(len(turns) + 1) // 2 :]
    return _flat(system, turns)


def last_turns(messages: Messages, window: int, count: Count) -> Messages:
    """Drop the oldest turn until it fits."""
    system, turns = _turns(messages)
    while len(turns) > 1 and count(_flat(system, turns)) > window:
        turns = turns[1:]
    return _flat(system, turns)


def results_first(messages: Messages, window: int, count: Count) -> Messages:
    """Cut old tool results to their head and tail, the oldest first, then drop the oldest turns."""
    out = list(messages)
    for limit in (2000, 400, 80):
        for at, message in enumerate(out[:-1]):
            text = message.get("content")
            if count(out) <= window:
                return out
            if message["role"] == "tool" and isinstance(text, str) and len(text) > limit + 40:
                out[at] = {**message, "content": f"{text[: limit // 2]} ... {text[-limit // 2 :]}"}
    return last_turns(out, window, count)


def random_turns(messages: Messages, window: int, count: Count) -> Messages:
    """Keep turns drawn by lot."""
    system, turns = _turns(messages)
    draw = random.Random(len(messages) * 7919 + window)
    kept = [len(turns) - 1]
    for at in draw.sample(range(len(turns) - 1), len(turns) - 1):
        if count(_flat(system, [turns[place] for place in sorted([*kept, at])])) <= window:
            kept.append(at)
    return _flat(system, [turns[place] for place in sorted(kept)])


def best_messages(messages: Messages, window: int, count: Count) -> Messages:
    """Keep the whole messages that share the rarest words with the last one (BM25), as plain retrieval does."""
    system, turns = _turns(messages)
    *old, last = [message for turn in turns for message in turn]
    texts = [_WORD.findall(str(message.get("content")).lower()) for message in old]
    average = sum(map(len, texts)) / max(len(texts), 1)
    asked = set(_WORD.findall(str(last.get("content")).lower()))
    holders = {word: sum(word in text for text in texts) for word in asked}
    scores = [
        sum(
            log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5))
            * (often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(text) / average)))
            for word in asked
            if (often := text.count(word))
        )
        for text in texts
    ]
    kept: set[int] = set()
    left = window - count([*system, last])
    for at in sorted(range(len(old)), key=lambda at: -scores[at]):
        cost = count([old[at]])
        if cost <= left:
            kept.add(at)
            left -= cost
    return [*system, *(message for at, message in enumerate(old) if at in kept), last]


_WORD = re.compile(r"[^\W_]+")

BASELINES: dict[str, Callable[[Messages, int, Count], Messages]] = {
    "drop oldest half": oldest_half,
    "keep last turns": last_turns,
    "cut results, drop turns": results_first,
    "random turns": random_turns,
    "best messages (BM25)": best_messages,
}
