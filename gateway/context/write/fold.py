"""The fold: the messages that stand, and the shorter text that stands in for the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gateway.context import marks
from gateway.context.choose import digest, lines, recall
from gateway.context.choose.cues import asks
from gateway.context.choose.digest import Count
from gateway.context.choose.line import Line
from gateway.context.choose.words import words
from gateway.context.choose.worth import Pool, Reading
from gateway.context.cut import replay as prefix
from gateway.context.cut.attachments import carries_more, without_media
from gateway.context.cut.layout import CUT, LAST_RUNG, STUB, Layout, Source, lay_out
from gateway.context.write import note, shrink
from gateway.context.write.draft import Draft, Step
from gateway.wire.chat import PINNED_ROLES, RESULT_ROLES, Message, call_name, media_parts, text_of, tool_calls

LEAST: Final = 24
"""A digest or quotes of fewer tokens say less than they cost."""
HARD: Final = 10_000
"""Characters that any text may keep on the hard rung."""
HARD_RUNG: Final = 2
DOUBT: Final = 1.35


def fold(source: Source) -> Draft:
    """Fold a conversation so that it fits its budget, as far as it can be."""
    layout = lay_out(source)
    draft = _draw(source, layout)
    room = source.budget.room
    if not _over(source, draft, room):
        return draft
    squeezed = _squeeze(source, draft)
    if not _over(source, squeezed, room) or len(layout.units) - 1 == layout.cut.first:
        return squeezed
    # Shrinking what stands is not enough: only the question stands, and the newest step.
    last = lay_out(replace(source, rung=max(source.rung, LAST_RUNG)))
    draft = _draw(source, last)
    fits = _question_fits(source, last.current[-1:])
    if fits and _over(source, draft, room):
        # Nobody need be told of the fold where that would cost words of the question.
        draft = _draw(source, last, noted=False)
    squeezed = _squeeze(source, draft, cut_question=not fits)
    if source.counter.exact and squeezed.cost > room + source.budget.margin:
        # The newest step needs a place too.
        return _squeeze(source, squeezed, cut_question=True)
    return squeezed


def _over(source: Source, draft: Draft, room: int) -> bool:
    return sum(map(source.cost, draft.messages)) > room


def _draw(source: Source, layout: Layout, *, noted: bool = True) -> Draft:
    """Write a layout out, with a note of what is not in it."""
    standing = standing_of(source, layout)
    steps = list(_yields(source, standing, layout))
    changed = (
        layout.folded or source.earlier or any(standing[index] is not source.messages[index] for index in standing)
    )
    if noted and changed:
        written = write(source, layout, standing)
        note.place(standing, written.note, source.conversation.pinned, system_role=source.system_role)
        lines_of = f"{len(written.taken)} of {len(written.pool.lines)} lines"
        steps.append(Step(written.stage, -source.counter.text(written.note), lines_of))
        for index, quotes in written.quotes.items():
            standing[index] = note.with_text(standing[index], quotes, at_end=False)
        if written.quotes:
            spent = sum(map(source.counter.text, written.quotes.values()))
            steps.append(Step("recall", -spent, f"{len(written.quoted)} lines"))
    messages = tuple(standing[index] for index in sorted(standing))
    return Draft(messages, tuple(map(source.bare, messages)), tuple(steps), layout.turns_folded)


def standing_of(source: Source, layout: Layout) -> dict[int, Message]:
    """The messages that stand, by index, each in the form it stands in."""
    allowed = prefix.allowances(layout.units, layout.room)
    gone = set(layout.folded)
    standing = {index: source.messages[index] for index in source.conversation.pinned}
    asked = frozenset(word.key for index in layout.current for word in words(text_of(source.messages[index])[-2000:]))
    for position, unit in enumerate(layout.units):
        if unit.indices[0] in gone:
            continue
        standing.update(_forms(source, layout, position))
        costs = [source.cost(standing[index]) for index in unit.indices]
        if sum(costs) > allowed[position] and not (
            unit.indices == layout.current and _question_fits(source, layout.current)
        ):
            if unit.indices == layout.current and _question_fits(source, unit.indices[-1:]):
                # What was said last is the question; what came with it gives way.
                levels = [*shrink.levels(costs[:-1], max(allowed[position] - costs[-1], 0)), costs[-1]]
            else:
                levels = shrink.levels(costs, allowed[position])
            for index, cost, level in zip(unit.indices, costs, levels, strict=True):
                if level < cost:
                    allowance = level - cost + source.bare(standing[index])
                    standing[index] = shrink.shrink_message(standing[index], allowance, source.counter, asked)
    return standing


def _question_fits(source: Source, question: Sequence[int]) -> bool:
    """Whether the pinned messages and these of the current question fit in full once all else has gone: then they are never cut.

    Where the count is only an estimate it may be too high by a third, and the upstream decides.
    """
    needed = sum(source.bare(source.messages[index]) for index in (*source.conversation.pinned, *question))
    # Better without a margin than without a part of the question.
    return needed <= (source.budget.room + source.budget.margin if source.counter.exact else source.budget.room * DOUBT)


def _forms(source: Source, layout: Layout, position: int) -> Iterator[tuple[int, Message]]:
    """The messages of a unit as they stand: in full, with results cut, or with results as a line."""
    unit = layout.units[position]
    old = position < len(layout.units) - 1 and unit.indices != layout.current
    trimmed = old and position < max(layout.cut.trimmed, layout.cut.stubbed)
    for index in unit.indices:
        message = source.messages[index]
        if trimmed:
            if carries_more(message):
                message = without_media(message)
            if message.get("role") in RESULT_ROLES:
                most = STUB if position < layout.cut.stubbed else max(int(layout.room.free * CUT), STUB)
                message = shrink.shrink_message(message, most, source.counter)
        if source.rung >= HARD_RUNG:
            message = _hard(source, message)
        yield index, message


def _hard(source: Source, message: Message) -> Message:
    characters = len(text_of(message))
    if characters <= HARD:
        return message
    cost = source.bare(message)
    return shrink.shrink_message(message, max(int(cost * HARD / characters), 1), source.counter)


def _yields(source: Source, standing: Mapping[int, Message], layout: Layout) -> Iterator[Step]:
    """What each stage took away, in the order of the stages."""
    saved = {"media": 0, "reasoning": 0, "tool_results": 0, "turns": 0, "steps": 0, "giant": 0}
    numbers = dict.fromkeys(saved, 0)
    current = layout.units[-1].turn if layout.units else 0
    for unit in layout.units:
        for index in unit.indices:
            before = source.messages[index]
            after = standing.get(index)
            if after is before:
                continue
            stage = _stage(before, gone=after is None, own=unit.turn == current)
            saved[stage] += source.costs[index] - (source.cost(after) if after is not None else 0)
            numbers[stage] += 1
    for stage, tokens in saved.items():
        if numbers[stage]:
            yield Step(stage, tokens, f"{numbers[stage]} messages")


def _stage(before: Message, *, gone: bool, own: bool) -> str:
    if gone:
        return "steps" if own else "turns"
    if before.get("role") in RESULT_ROLES:
        return "tool_results"
    if any(True for _ in media_parts(before)):
        return "media"
    return "reasoning" if carries_more(before) else "giant"


@dataclass(frozen=True, slots=True)
class Written:
    """What stands in for the folded part: the note, the quotes, and which lines went into them."""

    note: str
    quotes: Mapping[int, str]
    """By the message they stand in front of: the current question, and earlier ones since the cut."""
    pool: Pool
    taken: frozenset[int]
    """Positions in the pool of the lines in the note."""
    quoted: frozenset[int]
    """Those of the lines in the quotes."""
    stage: str
    """What the note is: ``digest``, ``summary``, or a bare ``note``."""


def write(source: Source, layout: Layout, standing: Mapping[int, Message]) -> Written:
    """Write the note and the quotes for a layout, within what the messages that stand leave of the room."""
    left = source.budget.room - sum(map(source.cost, standing.values())) - 4
    pool = pool_of(source, layout.folded)
    size = min(layout.cut.digest, left)
    text, taken, stage = _with_summary(source, layout, pool, size, left) or _digest(source, pool, 0, size)
    left -= source.counter.text(text) + 2
    quoted = _quotes(source, layout, pool, taken, left)
    # A cut that moved inside a turn has taken earlier questions with it.
    quoted = {index: places for index, places in quoted.items() if index in standing}
    quotes = {index: recall.render(pool, sorted(places)) for index, places in quoted.items()}
    return Written(text, quotes, pool, taken, frozenset().union(*quoted.values()), stage)


def _digest(source: Source, pool: Pool, skipped: int, size: int) -> tuple[str, frozenset[int], str]:
    """The digest of a pool, its positions counted from ``skipped``, or a bare note where there is no place for one."""
    count = source.counter.text
    size -= count(marks.HEAD) + 1
    if not pool.lines or size < LEAST:
        return marks.CUT, frozenset(), "note"
    known = frozenset().union(*[lines.facts(source.messages[index]) for index in source.conversation.pinned])

    def written() -> tuple[str, frozenset[int]]:
        chosen = digest.choose(pool, size, count, known=known)
        return digest.render(pool, chosen), frozenset(chosen)

    text, chosen_set = pool.once((size, count, known), written)
    if not text:
        return marks.CUT, frozenset(), "note"
    return f"{marks.HEAD}\n{text}", frozenset(place + skipped for place in chosen_set), "digest"


def _with_summary(
    source: Source, layout: Layout, pool: Pool, size: int, left: int
) -> tuple[str, frozenset[int], str] | None:
    """The summary and a digest of what it does not cover; None where there is none, or where it does not fit."""
    summary = source.summary
    if summary is None or not summary.text.strip() or source.rung > HARD_RUNG:
        return None
    pinned = set(source.conversation.pinned)
    stands = set(range(min(summary.covers, len(source.messages)))) - set(layout.folded) - pinned
    if summary.covers <= 0 or not layout.folded or stands - set(_asker(layout)):
        return None
    text = f"{marks.SUMMARY}\n{summary.text.strip()}"
    taken = source.counter.text(text) + 2
    if taken > left:
        return None
    # A client that sends our note back sends our summary with it.
    told = frozenset(map(str.strip, text.split("\n")))
    earlier = "\n".join(row for row in source.earlier.split("\n") if row.strip() not in told)
    later = pool_of(replace(source, earlier=earlier), [index for index in layout.folded if index >= summary.covers])
    rest, lines_taken, stage = _digest(source, later, len(pool.lines) - len(later.lines), size - taken)
    return (f"{text}\n\n{rest}", lines_taken, "summary") if stage == "digest" else (text, frozenset(), "summary")


def _asker(layout: Layout) -> tuple[int, ...]:
    """The user messages of the turn that is cut inside, which stand although the cut is behind them."""
    turn = layout.units[layout.cut.first].turn if layout.units else -1
    return next((unit.indices for unit in layout.units if unit.turn == turn and unit.step < 0), ())


TOLD: Final = 0.25
"""Of the place for quotes, what a message may take that asks nothing."""
STAYS: Final = 0.2
"""Of the place for quotes, what those of earlier questions may take: the rest is the current one's."""
LOOKED_AT: Final = 8
"""Questions since the cut, from the first on, whose quotes may stay: a replica that sees them for the first time searches for each."""
AROUND: Final = 4
"""Tokens that may come in where quotes and a message meet."""

Quoted = Mapping[int, frozenset[int]]
"""Positions of quoted lines, by the message they stand in front of."""


def _quotes(source: Source, layout: Layout, pool: Pool, taken: frozenset[int], left: int) -> Quoted:
    """Lines that bear on a question, from what was folded when it was asked; earlier questions since the cut keep theirs.

    So a request begins as the one before it did, as far as there is place: what a question has quoted beyond `STAYS` goes with the next.
    """
    tokens = layout.quoted.quotes
    if not layout.asked or layout.quoted.first == 0 or tokens < LEAST or source.rung > HARD_RUNG:
        return {}
    count = source.counter.text
    hidden = pool.once((layout.quoted.first, taken), partial(_hidden, layout, pool, taken))
    quoted: dict[int, frozenset[int]] = {}
    spent = 0
    for number, indices in enumerate(layout.asked):
        if indices != layout.current and (number >= LOOKED_AT or spent + LEAST > STAYS * tokens):
            continue
        query = "\n".join(text_of(source.messages[index])[-QUERY:] for index in indices)
        most = min(tokens if asks(query) else int(tokens * TOLD), tokens - spent)
        skipped = (hidden, *quoted.values())
        search = partial(_excerpts, pool, query, most, count, skipped)
        found, size = pool.once((query, most, count, skipped), search)
        if found and (indices == layout.current or spent + size <= STAYS * tokens):
            quoted[indices[0]] = found
            spent += size
    if spent > left:
        return {index: quoted[index] for index in layout.current[:1] if index in quoted}
    return quoted


def _excerpts(
    pool: Pool, query: str, most: int, count: Count, skipped: Sequence[frozenset[int]]
) -> tuple[frozenset[int], int]:
    """Lines that bear on a question, and what they take."""
    found = frozenset(recall.excerpts(pool, query, most, count, frozenset().union(*skipped)))
    return found, count(recall.render(pool, sorted(found))) + AROUND if found else 0


def _hidden(layout: Layout, pool: Pool, taken: frozenset[int]) -> frozenset[int]:
    """The lines that are not quoted: those in the digest, and those that still stood when the question was asked."""
    early = {index for unit in layout.units[: layout.quoted.first] for index in unit.indices}
    late = [place for index, places in pool.places.items() if index >= 0 and index not in early for place in places]
    # A short message is quoted whole or not at all, even where a sentence of it stands in the digest.
    taken_of = {pool.message_of[place] for place in taken} & pool.brief
    parts = {index for index in taken_of if not taken.issuperset(pool.places[index])}
    return frozenset(place for place in taken if pool.message_of[place] not in parts).union(late)


READ: Final = 120_000
"""Characters of a folded part, from its end, that are read in full."""
QUERY: Final = 4000
"""Characters of a question, from its end, that are searched for."""

_POOLS: Final[dict[object, tuple[object, Pool]]] = {}
_MOST_LINES: Final = 20_000
"""Lines of folded parts that are remembered, the last used longest: as long as a cut stands, its lines need not be weighed again."""


def pool_of(source: Source, folded: Sequence[int]) -> Pool:
    """The lines of the folded messages, each result's with the name of the tool that gave it."""
    messages = source.messages
    first = next((index for index, message in enumerate(messages) if message.get("role") == "user"), -1)
    callers = source.conversation.callers
    told = [messages[index] for index in folded]
    asked = [messages[callers[index]] for index in folded if index in callers]
    # A message seen before is the same object, and the pool keeps those it was made of, so that no other takes their place.
    key = (tuple(map(id, told)), tuple(map(id, asked)), tuple(folded), first, source.earlier)
    # Folds run in several threads: each of these steps is whole by itself, and what one misses another makes again.
    found = _POOLS.pop(key, None)
    if found is None:
        readings = list(_earlier(source.earlier))
        for index, read in zip(folded, _read(messages, folded), strict=True):
            readings.append(Reading(index, str(messages[index].get("role")), read, _tool(messages, index, callers)))
        found = (told, asked), Pool(readings, first)
        _forget(_MOST_LINES - len(found[1].lines))
    _POOLS[key] = found
    return found[1]


def _forget(most: int) -> None:
    """Forget the pools not asked for the longest until no more lines than these are kept."""
    pools = list(_POOLS.items())
    kept = sum(len(pool.lines) for _, (_, pool) in pools)
    for key, (_, pool) in pools:
        if kept <= most:
            break
        _POOLS.pop(key, None)
        kept -= len(pool.lines)


def _read(messages: Sequence[Message], folded: Sequence[int]) -> list[tuple[Line, ...]]:
    """The lines of each folded message, the oldest of very many only skimmed, so that the time it takes stays bounded."""
    left = READ
    readings: list[tuple[Line, ...]] = []
    for index in reversed(folded):
        message = messages[index]
        content = message.get("content")
        left -= len(content) if isinstance(content, str) else len(text_of(message))
        readings.append(lines.read(message) if left > 0 else lines.skim(message))
    readings.reverse()
    return readings


def _tool(messages: Sequence[Message], index: int, callers: Mapping[int, int]) -> str:
    """The call that a message is the result of, or its tool's name; empty for any other message."""
    message = messages[index]
    if message.get("role") not in RESULT_ROLES:
        return ""
    made = lines.read(messages[callers[index]]) if index in callers else ()
    calls = tool_calls(messages[callers[index]]) if index in callers else []
    for call, line in zip(calls, made, strict=False):
        if call.get("id") == message.get("tool_call_id"):
            return line.text if len(line.text) <= SHOWN else call_name(call)
    return str(message.get("name") or "tool")


SHOWN: Final = 72
"""Characters up to which a call stands in full in front of what came of it."""


def _earlier(text: str) -> Iterator[Reading]:
    """The lines of notes that the client sent back, each with the speaker it was quoted from."""
    rows = [row for row in text.split("\n") if row.strip()]
    for number, row in enumerate(rows):
        speaker, _, said = row.partition(": ")
        role = speaker if speaker in ("user", "assistant") else ""
        yield Reading(number - len(rows) - 1, role, lines.read({"role": role, "content": said if role else row}))


def _squeeze(source: Source, draft: Draft, *, cut_question: bool = False) -> Draft:
    """Shrink the largest messages that stand: results first, the last user message only where that was decided, pinned ones never."""
    messages = list(draft.messages)
    costs = list(draft.costs)
    room = source.budget.room - sum(map(source.cost, messages)) + draft.cost
    last = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    able = [place for place, message in enumerate(messages) if message.get("role") not in PINNED_ROLES]
    results = [place for place in able if messages[place].get("role") in RESULT_ROLES]
    others = [place for place in able if place != last]
    for places in (results, others, [last] if cut_question and last >= 0 else []):
        for place in sorted(places, key=lambda place: -costs[place]):
            over = sum(costs) - room
            if over <= 0:
                break
            messages[place] = shrink.shrink_message(messages[place], max(costs[place] - over, 12), source.counter)
            costs[place] = source.bare(messages[place])
    saved = draft.cost - sum(costs)
    steps = (*draft.steps, Step("giant", saved)) if saved else draft.steps
    return Draft(tuple(messages), tuple(costs), steps, draft.turns_folded)
