"""The fold: the messages that stand, and the shorter text that stands in for the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.context import digest, lines, prefix, recall, shrink
from gateway.context.budget import Budget
from gateway.context.draft import Counter, Draft, Step
from gateway.context.policy import Policy
from gateway.context.prefix import Cut, Room, Unit
from gateway.context.summary import Summary
from gateway.context.turns import Conversation
from providers.wire import RESULT_ROLES, Message, media_parts, text_of

STUB: Final = 48
"""Tokens of a tool result that is reduced to a line."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What a fold is made from."""

    messages: Sequence[Message]
    conversation: Conversation
    budget: Budget
    counter: Counter
    policy: Policy
    summary: Summary | None
    system_role: bool


def fold(source: Fold) -> Draft:
    """Fold a conversation so that it fits its budget, as far as it can be."""
    count = source.counter.message
    pinned = sum(count(source.messages[index]) for index in source.conversation.pinned)
    free = prefix.rounded_room(source.budget) - pinned
    share = int(min(source.policy.recall_share * source.budget.room, free * 0.25)) if free > 0 else 0
    room = Room(max(free, 1), max(share, 0), source.policy.low_water, source.policy.max_turns)
    units = _units(source, room)
    cuts = prefix.replay(units, room)
    cut = cuts[-1] if cuts else Cut()
    start = max((position for position, unit in enumerate(units) if unit.step < 0), default=-1)
    asked = cuts[start] if start >= 0 else Cut()
    return _assemble(source, room, units, cut, asked, start)


def _units(source: Fold, room: Room) -> list[Unit]:
    units: list[Unit] = []
    large = max(room.free // 16, 64)
    count = source.counter.message
    for number, turn in enumerate(source.conversation.turns):
        groups = ([(-1, turn.user)] if turn.user else []) + list(enumerate(turn.steps))
        for step, indices in groups:
            costs = [count(source.messages[index]) for index in indices]
            cut = stub = 0
            for index, cost in zip(indices, costs, strict=True):
                message = source.messages[index]
                plain = cost
                if any(media_parts(message)) or "reasoning_content" in message:
                    plain = min(count(shrink.without_media(message)), cost)
                result = message.get("role") in RESULT_ROLES
                cut += min(plain, large + 8) if result else plain
                stub += min(plain, STUB + 8) if result else plain
            units.append(Unit(number, step, indices, sum(costs), cut, stub))
    return units


def _assemble(source: Fold, room: Room, units: list[Unit], cut: Cut, asked: Cut, start: int) -> Draft:
    count = source.counter.message
    steps: list[Step] = []
    standing: dict[int, Message] = {index: source.messages[index] for index in source.conversation.pinned}
    folded: list[int] = []
    current = units[start].indices if start >= 0 else ()
    asker = max((p for p, unit in enumerate(units[: cut.first + 1]) if unit.step < 0), default=-1)
    if not (0 <= asker and units[asker].turn == units[cut.first].turn):
        asker = -1
    for position, unit in enumerate(units):
        if position < cut.first and position != asker:
            folded += unit.indices
            continue
        for index in unit.indices:
            standing[index] = _form(source, room, units, position, cut, start, index)
    before = sum(count(message) for message in source.messages)
    text_tokens = source.counter.text
    keep = source.budget.room
    spent = sum(count(message) for message in standing.values())
    pool = [(index, line) for index in folded for line in lines.read(source.messages[index])]
    dropped = bool(folded) or any(standing[index] is not source.messages[index] for index in standing)
    note = ""
    if dropped:
        size = min(cut.digest, keep - spent - 4)
        chosen = digest.choose(pool, size - text_tokens(digest.HEAD) - 2, text_tokens)
        note = digest.render(digest.HEAD, [pool[position] for position in chosen])
        steps.append(Step("digest", 0, f"{len(chosen)} of {len(pool)} lines"))
    out = dict(sorted(standing.items()))
    if note:
        _place_note(out, note, source.system_role, source.conversation.pinned)
    spent = sum(count(message) for message in out.values())
    if current and asked.first > 0 and room.recall > 24:
        early = {index for unit in units[: asked.first] for index in unit.indices} - set(current)
        available = min(room.recall, keep - spent - 4)
        query = "\n".join(text_of(source.messages[index]) for index in current)
        candidates = [(index, line) for index, line in pool if index in early and line.text not in note]
        block = recall.excerpts(candidates, query, available, text_tokens)
        if block:
            first = current[0]
            out[first] = _with_text(out[first], block)
            steps.append(Step("recall", -text_tokens(block)))
    messages = tuple(out.values())
    costs = tuple(count(message) for message in messages)
    steps.insert(0, Step("turns", before - sum(costs), f"{len(folded)} messages folded"))
    turns = {unit.turn for unit in units[: cut.first]}
    draft = Draft(messages, costs, tuple(steps), len(turns))
    return draft if draft.cost <= keep else _squeeze(source, draft, keep)


def _squeeze(source: Fold, draft: Draft, keep: int) -> Draft:
    """Shrink the largest messages that stand, results first, the last user message last."""
    messages = list(draft.messages)
    costs = list(draft.costs)
    last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    for accepted in (
        lambda m, i: m.get("role") in RESULT_ROLES,
        lambda m, i: i != last and m.get("role") != "system",
        lambda m, i: i == last,
    ):
        while sum(costs) > keep:
            able = [i for i, m in enumerate(messages) if accepted(m, i) and costs[i] > 40]
            if not able:
                break
            worst = max(able, key=lambda i: costs[i])
            target = max(costs[worst] - (sum(costs) - keep), costs[worst] // 2, 24)
            messages[worst] = shrink.shrink_message(messages[worst], target, source.counter)
            now = source.counter.message(messages[worst])
            if now >= costs[worst]:
                break
            costs[worst] = now
    return Draft(
        tuple(messages), tuple(costs), (*draft.steps, Step("giant", draft.cost - sum(costs))), draft.turns_folded
    )


def _form(source: Fold, room: Room, units: list[Unit], position: int, cut: Cut, start: int, index: int) -> Message:
    message = source.messages[index]
    unit = units[position]
    share = prefix.LIVE_UNIT if position in (start, len(units) - 1) else prefix.OLD_UNIT
    cap = int(room.free * share)
    if position != start and position < len(units) - 1:
        if position < max(cut.trimmed, cut.stubbed):
            message = shrink.without_media(message)
            if message.get("role") in RESULT_ROLES:
                size = STUB if position < cut.stubbed else max(room.free // 16, 64)
                message = shrink.shrink_message(message, size, source.counter)
    if unit.cost > cap:
        message = shrink.shrink_message(message, max(cap // len(unit.indices), 24), source.counter)
    return message


def _place_note(out: dict[int, Message], note: str, system_role: bool, pinned: Sequence[int]) -> None:
    if system_role:
        if pinned:
            out[pinned[0]] = _with_text(out[pinned[0]], note, at_end=True)
        else:
            ordered = dict(out)
            out.clear()
            out[-1] = {"role": "system", "content": note}
            out.update(ordered)
        return
    for index, message in out.items():
        if message.get("role") == "user":
            out[index] = _with_text(message, note)
            return


def _with_text(message: Message, text: str, *, at_end: bool = False) -> Message:
    content: Any = message.get("content")
    if isinstance(content, list):
        part = {"type": "text", "text": text}
        return {**message, "content": [*content, part] if at_end else [part, *content]}
    old = content if isinstance(content, str) else ""
    return {**message, "content": f"{old}\n\n{text}" if at_end else f"{text}\n\n{old}"}
