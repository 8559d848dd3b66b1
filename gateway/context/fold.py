"""The fold: which messages stand, and the shorter text that stands in for the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.context import digest, lines, prefix, recall, shrink
from gateway.context.budget import Budget
from gateway.context.draft import Counter, Draft, Step
from gateway.context.policy import Policy
from gateway.context.prefix import Cut, Room, Unit
from gateway.context.summary import Summary
from gateway.context.turns import Conversation, call_ids, pairs, result_id
from gateway.context.words import words
from gateway.context.worth import Entry, Pool
from providers.wire import RESULT_ROLES, Message, call_name, media_parts, text_of, tool_calls

STUB: Final = 48
"""Tokens of a tool result that is reduced to its most telling rows."""
CUT: Final = 1 / 16
"""Share of the free room that an old tool result may keep when it is cut for the first time."""
NOTE: Final = "[Earlier messages were cut here.]"
LEAST_DIGEST: Final = 40
"""Below so many tokens a digest says less than it costs."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a fold is made from."""

    messages: Sequence[Message]
    conversation: Conversation
    budget: Budget
    counter: Counter
    policy: Policy
    summary: Summary | None = None
    system_role: bool = True

    def cost(self, message: Message) -> int:
        """What a message costs, with the ids of its calls: some servers write them into the prompt, others do not."""
        text = self.counter.text
        names = [*call_ids(message), result_id(message)] if message.get("role") in _WITH_IDS else ()
        return self.counter.message(message) + sum(text(name) + 1 for name in names if name)


_WITH_IDS: Final = RESULT_ROLES | {"assistant"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands and what goes, before a word is written."""

    units: tuple[Unit, ...]
    room: Room
    cut: Cut
    quoted: Cut
    """The cut as it was when the current turn began: recall searches what was folded then."""
    folded: tuple[int, ...]
    current: tuple[int, ...]
    """The user messages of the current turn."""


def plan(source: Source) -> Plan:
    """Decide where the conversation is cut."""
    pinned = sum(source.cost(source.messages[index]) for index in source.conversation.pinned)
    free = max(prefix.rounded_room(source.budget) - pinned, 1)
    share = min(source.policy.recall_share * source.budget.room, source.policy.recall_share * 1.6 * free)
    room = Room(free, max(int(share), 0), source.policy.low_water, source.policy.max_turns)
    units = _units(source, room)
    cuts = prefix.replay(units, room)
    cut = cuts[-1] if cuts else Cut()
    start = next((p for p in range(len(units) - 1, -1, -1) if units[p].step < 0), -1)
    folded = [
        index
        for position, unit in enumerate(units[: cut.first])
        if not (unit.step < 0 and unit.turn == units[cut.first].turn)
        for index in unit.indices
    ]
    quoted = cuts[start] if start >= 0 else Cut()
    return Plan(tuple(units), room, cut, quoted, tuple(folded), units[start].indices if start >= 0 else ())


def _units(source: Source, room: Room) -> list[Unit]:
    units: list[Unit] = []
    for number, turn in enumerate(source.conversation.turns):
        if turn.user:
            units.append(_unit(source, room, number, -1, turn.user))
        units += [_unit(source, room, number, step, indices) for step, indices in enumerate(turn.steps)]
    return units


def _unit(source: Source, room: Room, turn: int, step: int, indices: tuple[int, ...]) -> Unit:
    large = max(int(room.free * CUT), STUB)
    total = cut = stub = 0
    for index in indices:
        message = source.messages[index]
        cost = plain = source.cost(message)
        if any(media_parts(message)) or any(message.get(key) for key in shrink.REASONING):
            plain = min(source.cost(shrink.without_media(message)), cost)
        result = message.get("role") in RESULT_ROLES
        total += cost
        cut += min(plain, large) if result else plain
        stub += min(plain, STUB) if result else plain
    asks = step < 0 or source.messages[indices[-1]].get("role") in RESULT_ROLES
    return Unit(turn, step, indices, total, cut, stub, asks=asks)


def fold(source: Source) -> Draft:
    """Fold a conversation so that it fits its budget, as far as it can be."""
    made = plan(source)
    standing = _standing(source, made)
    steps = list(_standing_steps(source, standing, made))
    whole = all(standing.get(index) is message for index, message in enumerate(source.messages))
    if not whole:
        left = source.budget.room - sum(map(source.cost, standing.values()))
        pool = _pool(source, made.folded)
        note, taken = _note(source, made, pool, left)
        steps.append(Step("digest", -source.counter.text(note), f"{len(taken)} of {len(pool.entries)} lines"))
        _place_note(standing, note, source)
        left = source.budget.room - sum(map(source.cost, standing.values()))
        block = _block(source, made, pool, taken, min(made.room.recall, left - 2))
        if block:
            first = made.current[0]
            standing[first] = _with_text(standing[first], block, at_end=False)
            steps.append(Step("recall", -source.counter.text(block), f"{block.count(chr(10)) - 1} lines"))
    messages = tuple(standing[index] for index in sorted(standing))
    turns = made.units[made.cut.first].turn if made.cut.first and made.cut.first < len(made.units) else 0
    draft = Draft(messages, tuple(map(source.counter.message, messages)), tuple(steps), turns)
    return draft if sum(map(source.cost, messages)) <= source.budget.room else squeeze(source, draft)


def _standing(source: Source, made: Plan) -> dict[int, Message]:
    """The messages that stand, by index, each in the form it stands in."""
    allowed = prefix.allowances(made.units, made.room)
    gone = set(made.folded)
    standing = {index: source.messages[index] for index in source.conversation.pinned}
    asked = frozenset(word.key for index in made.current for word in words(text_of(source.messages[index])[-2000:]))
    for position, unit in enumerate(made.units):
        if position < made.cut.first and unit.indices[0] in gone:
            continue
        for index, message in _forms(source, made, position):
            standing[index] = message
        costs = [source.cost(standing[index]) for index in unit.indices]
        if sum(costs) > allowed[position]:
            for index, cost, level in zip(unit.indices, costs, shrink.levels(costs, allowed[position]), strict=True):
                if level < cost:
                    allowance = level - cost + source.counter.message(standing[index])
                    standing[index] = shrink.shrink_message(standing[index], allowance, source.counter, asked)
    return standing


def _forms(source: Source, made: Plan, position: int) -> Iterator[tuple[int, Message]]:
    """The messages of a unit as they stand: in full, with results cut, or with results as a line."""
    unit = made.units[position]
    old = position < len(made.units) - 1 and unit.indices != made.current
    trimmed = old and position < max(made.cut.trimmed, made.cut.stubbed)
    for index in unit.indices:
        message = source.messages[index]
        if trimmed:
            if any(media_parts(message)) or any(message.get(key) for key in shrink.REASONING):
                message = shrink.without_media(message)
            if message.get("role") in RESULT_ROLES:
                most = STUB if position < made.cut.stubbed else max(int(made.room.free * CUT), STUB)
                message = shrink.shrink_message(message, most, source.counter)
        yield index, message


def _standing_steps(source: Source, standing: Mapping[int, Message], made: Plan) -> Iterator[Step]:
    """What folding and trimming took away, stage by stage."""
    count = source.counter.message
    folded = sum(count(source.messages[index]) for index in made.folded)
    if folded:
        yield Step("turns", folded, f"{len(made.folded)} messages")
    saved = {"media": 0, "tool_results": 0, "giant": 0}
    for index, message in standing.items():
        before = source.messages[index]
        if message is before:
            continue
        stage = (
            "tool_results" if before.get("role") in RESULT_ROLES else "media" if any(media_parts(before)) else "giant"
        )
        saved[stage] += count(before) - count(message)
    for stage, tokens in saved.items():
        if tokens:
            yield Step(stage, tokens)


_POOLS: dict[object, tuple[object, Pool]] = {}
_NOTES: dict[object, tuple[str, frozenset[int]]] = {}
_MOST_KEPT: Final = 64
"""Folds that are remembered: as long as a cut stands, its digest need not be made again."""


def _pool(source: Source, folded: Sequence[int]) -> Pool:
    """The lines of the folded messages, each result's with the name of the tool that gave it."""
    callers = pairs(source.messages)
    readings = [lines.read(source.messages[index]) for index in folded]
    tools = [_tool(source.messages, index, callers) for index in folded]
    roles = [str(source.messages[index].get("role")) for index in folded]
    first = next((index for index, message in enumerate(source.messages) if message.get("role") == "user"), -1)
    # Equal readings are one object as long as they are kept, and the pool keeps them.
    key = (tuple(map(id, readings)), tuple(tools), tuple(roles), tuple(folded), first)
    found = _POOLS.get(key)
    if found is None:
        entries = [
            Entry(index, role, line, tool)
            for index, role, tool, reading in zip(folded, roles, tools, readings, strict=True)
            for line in reading
        ]
        if len(_POOLS) >= _MOST_KEPT:
            _POOLS.clear()
            _NOTES.clear()
        found = _POOLS[key] = (readings, Pool(entries, first))
    return found[1]


def _tool(messages: Sequence[Message], index: int, callers: Mapping[int, int]) -> str:
    """The name of the tool that a message is the result of; empty for any other message."""
    message = messages[index]
    if message.get("role") not in RESULT_ROLES:
        return ""
    calls = tool_calls(messages[callers[index]]) if index in callers else []
    named = next((call_name(call) for call in calls if call.get("id") == message.get("tool_call_id")), "")
    return named or str(message.get("name") or "tool")


def _note(source: Source, made: Plan, pool: Pool, left: int) -> tuple[str, frozenset[int]]:
    """The text that stands for the folded part, and the positions of the lines in it."""
    count = source.counter.text
    size = min(made.cut.digest, left - 4) - count(digest.HEAD) - 2
    if not pool.entries or size < LEAST_DIGEST - 20:
        return NOTE, frozenset()
    pinned = [lines.read(source.messages[index]) for index in source.conversation.pinned]
    known = frozenset().union(*(line.keys for reading in pinned for line in reading))
    key = (id(pool), size, source.counter.text, known)
    found = _NOTES.get(key)
    if found is None:
        chosen = digest.choose(pool, size, count, known=known)
        text = f"{digest.HEAD}\n{digest.render(pool.entries, chosen)}" if chosen else NOTE
        found = _NOTES[key] = (text, frozenset(chosen))
    return found


def _block(source: Source, made: Plan, pool: Pool, taken: frozenset[int], tokens: int) -> str:
    """Excerpts for the current question, from what was folded when it was asked."""
    if not made.current or made.quoted.first == 0 or tokens < LEAST_DIGEST:
        return ""
    early = {index for unit in made.units[: made.quoted.first] for index in unit.indices}
    # A short message is quoted whole or not at all, even where a sentence of it stands in the digest.
    parts = {
        entry.index for place, entry in enumerate(pool.entries) if place not in taken and entry.index in pool.brief
    }
    skip = {
        place
        for place, entry in enumerate(pool.entries)
        if entry.index not in early or (place in taken and entry.index not in parts)
    }
    query = "\n".join(text_of(source.messages[index]) for index in made.current)
    return recall.excerpts(pool, query, tokens, source.counter.text, skip)


def _place_note(standing: dict[int, Message], note: str, source: Source) -> None:
    """Put the note at the end of the first pinned message, into a new one, or into the first user message that stands."""
    pinned = source.conversation.pinned
    if source.system_role and pinned:
        standing[pinned[0]] = _with_text(standing[pinned[0]], note, at_end=True)
    elif source.system_role:
        standing[-1] = {"role": "system", "content": note}
    else:
        user = next((index for index in sorted(standing) if standing[index].get("role") == "user"), None)
        if user is None:
            standing[-1] = {"role": "user", "content": note}
        else:
            standing[user] = _with_text(standing[user], note, at_end=False)


def _with_text(message: Message, text: str, *, at_end: bool) -> Message:
    """A message with a text before or behind its content, as a part of its own where the content has parts."""
    content: Any = message.get("content")
    if isinstance(content, list):
        part = {"type": "text", "text": text}
        return {**message, "content": [*content, part] if at_end else [part, *content]}
    if not isinstance(content, str) or not content:
        return {**message, "content": text}
    return {**message, "content": f"{content}\n\n{text}" if at_end else f"{text}\n\n{content}"}


def squeeze(source: Source, draft: Draft) -> Draft:
    """Shrink the largest messages that stand: results first, the last user message last, pinned ones never."""
    messages = list(draft.messages)
    costs = list(draft.costs)
    room = source.budget.room - sum(map(source.cost, messages)) + draft.cost
    last = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    able = [place for place, message in enumerate(messages) if message.get("role") not in ("system", "developer")]
    results = [place for place in able if messages[place].get("role") in RESULT_ROLES]
    for places in (results, [place for place in able if place != last], [last] if last >= 0 else []):
        for place in sorted(places, key=lambda place: -costs[place]):
            over = sum(costs) - room
            if over <= 0:
                break
            messages[place] = shrink.shrink_message(messages[place], max(costs[place] - over, 12), source.counter)
            costs[place] = source.counter.message(messages[place])
    step = Step("giant", draft.cost - sum(costs))
    return Draft(tuple(messages), tuple(costs), (*draft.steps, step), draft.turns_folded)
