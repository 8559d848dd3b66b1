"""What others do when a conversation is too long, as functions of (messages, window, count): what a fold must beat."""

import random
from collections.abc import Callable, Sequence
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


BASELINES: dict[str, Callable[[Messages, int, Count], Messages]] = {
    "drop oldest half": oldest_half,
    "keep last turns": last_turns,
    "cut results, drop turns": results_first,
    "random turns": random_turns,
}
