"""The fold: the messages that stand, and the shorter text that stands in for the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gateway.context.choose.words import words
from gateway.context.cut import replay as prefix
from gateway.context.cut.attachments import carries_more, without_media
from gateway.context.cut.layout import CUT, LAST_RUNG, STUB, Layout, Source, lay_out
from gateway.context.write import note, shrink
from gateway.context.write.draft import Draft, Step
from gateway.context.write.quotes import HARD_RUNG, write
from gateway.wire.chat import PINNED_ROLES, RESULT_ROLES, Message, media_parts, text_of

HARD: Final = 10_000
"""Characters that any text may keep on the hard rung."""
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
