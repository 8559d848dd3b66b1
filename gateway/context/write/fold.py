"""The fold: stages that make a conversation smaller, one after the other, until it fits its room."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from gateway.context.cut import replay
from gateway.context.cut.attachments import carries_more
from gateway.context.cut.layout import Layout, Source
from gateway.context.cut.question import kept_whole, question_of
from gateway.context.cut.rungs import QUESTION
from gateway.context.write import shrink
from gateway.context.write.aside import gives_way_for_nothing, with_room_for_quotes
from gateway.context.write.draft import Draft, Kept, Sketch, Step
from gateway.context.write.gaps import kept_characters
from gateway.context.write.quotes import Written, write
from gateway.context.write.search import by_meaning
from gateway.context.write.standing import standing_of, words_asked_for
from gateway.wire.message import RESULT_ROLES, Message, media_parts, text_of

LEAST_OF_MESSAGE: Final = 12
"""Tokens that remain of a message that is cut to make room, if its form allows."""

MOST_JOINED: Final = 8
"""Tokens that a note and quotes may have more than the sum of their parts, each joint one or two."""

LEAST_FILLED: Final = 0.02
"""Share of the room. A smaller rest is not worth cutting the newest results anew."""

Stage = Callable[[Sketch, Source], Sketch]


def fold(source: Source) -> Draft:
    """Fold a conversation to fit its budget, as far as possible."""
    sketch = begin(source, source.layout)
    for stage in STAGES:
        if _over(sketch, source) <= 0:
            break
        sketch = stage(sketch, source)
    costs = tuple(map(source.bare, sketch.messages))
    return Draft(sketch.messages, costs, sketch.steps, sketch.layout.turns_folded, sketch.question_kept)


def begin(source: Source, layout: Layout) -> Sketch:
    """Apply a layout: the standing messages, and a note and quotes for the others.

    Turns give way to quotes only where more is found than has room beside them.
    """
    whole, layout = layout, with_room_for_quotes(source, layout)
    standing = standing_of(source, layout)
    written = _written(source, layout, standing)
    asked = written if layout.asked_last else _when_asked(source, layout, standing)
    if layout.aside and (asked is None or gives_way_for_nothing(layout, _tokens(source, asked))):
        layout, standing = whole, standing_of(source, whole)
        written = _written(source, layout, standing)
    return _sketch(source, layout, standing, written)


def _sketch(source: Source, layout: Layout, standing: Mapping[int, Message], written: Written | None) -> Sketch:
    """Return the sketch of a layout with its note and quotes, and what each step of it saved."""
    steps = list(_yields(source, standing, layout))
    if written is None:
        return Sketch(layout, standing, steps=tuple(steps))
    chosen, given = len(written.taken), len(written.pool.lines)
    steps.append(Step(written.stage, -source.counter.text(written.note), f"{chosen} of {given} lines", chosen, given))
    if written.quotes:
        detail = f"{written.quoted_lines} lines{', by words and meaning' if by_meaning(source) else ''}"
        steps.append(Step("recall", -_tokens(source, written), detail, written.quoted_lines))
    return _filled(Sketch(layout, standing, written.note, written.quotes, tuple(steps)), source)


def _written(source: Source, layout: Layout, standing: Mapping[int, Message]) -> Written | None:
    """Return the note and the quotes of a layout; None where every message stands as it came."""
    if layout.folded or source.earlier or any(standing[index] is not source.messages[index] for index in standing):
        return write(source, layout, standing)
    return None


def _when_asked(source: Source, layout: Layout, standing: Mapping[int, Message]) -> Written | None:
    """Return the note and the quotes as they were when the current question was asked, so that its steps change nothing that stands before them."""
    if not layout.aside:
        return None
    before = {index: message for index, message in standing.items() if index <= layout.current[-1]}
    return _written(source, replace(layout, asked_last=True), before)


def _tokens(source: Source, written: Written) -> int:
    """Return the tokens of the quotes."""
    return sum(map(source.counter.text, written.quotes.values()))


def _filled(sketch: Sketch, source: Source) -> Sketch:
    """Give what is left of the room to results of the newest step that were cut: as old ones they are cut anew anyway."""
    last = sketch.layout.units[-1] if sketch.layout.units else None
    newest = last.indices if last and not replay.lasts(last, sketch.layout.room) else ()
    cut = [
        index
        for index in newest
        if sketch.standing[index].get("role") in RESULT_ROLES and sketch.standing[index] is not source.messages[index]
    ]
    left = -_over(sketch, source)
    if not cut or source.rung.characters is not None or left < LEAST_FILLED * source.budget.room:
        return sketch
    costs = [source.bare(source.messages[index]) for index in cut]
    limits = shrink.levels(costs, left + sum([source.bare(sketch.standing[index]) for index in cut]))
    asked = words_asked_for(source)
    forms = {
        index: shrink.shrink_message(source.messages[index], limit, source.counter, asked, thorough=source.thorough)
        for index, limit in zip(cut, limits, strict=True)
    }
    return replace(sketch, standing={**sketch.standing, **forms})


def write_shorter(sketch: Sketch, source: Source) -> Sketch:
    """Write note and quotes anew where only they are too long: joined, texts may have some tokens more than their sum."""
    over = _over(sketch, source)
    if over > MOST_JOINED or not (sketch.note or sketch.quotes):
        return sketch
    for spare in (over, over + 2, over + MOST_JOINED):
        written = write(source, sketch.layout, sketch.standing, spare)
        shorter = _sketch(source, sketch.layout, sketch.standing, written)
        if _over(shorter, source) <= 0:
            return shorter
    return sketch


def shrink_others(sketch: Sketch, source: Source) -> Sketch:
    """Cut the largest standing messages, results first; never the question or messages that must stay whole."""
    untouched = kept_whole(source) | set(question_of(source))
    able = [index for index in sketch.standing if index not in untouched]
    results = [index for index in able if sketch.standing[index].get("role") in RESULT_ROLES]
    standing, saved = _cut_largest(sketch, source, (results, able), _over(sketch, source))
    return _with(sketch, standing, Step("giant", saved)) if saved else sketch


def keep_question_only(sketch: Sketch, source: Source) -> Sketch:
    """Fold everything except the question and the newest step."""
    if sketch.layout.cut.first >= len(sketch.layout.units) - 1:
        return sketch
    source = replace(source, rung=QUESTION)
    return begin(source, source.layout)


def drop_note(sketch: Sketch, source: Source) -> Sketch:
    """Drop note and quotes: the question's own words are worth more than a report of the fold."""
    if not sketch.note and not sketch.quotes:
        return sketch
    stages = {"digest", "summary", "note", "recall"}
    return replace(sketch, note="", quotes={}, steps=tuple(step for step in sketch.steps if step.stage not in stages))


def cut_question(sketch: Sketch, source: Source) -> Sketch:
    """Cut a question that does not fit the window: earlier messages first, the last one to the remaining room."""
    untouched = kept_whole(source)
    question = [index for index in question_of(source) if index not in untouched and index in sketch.standing]
    if not question:
        return sketch
    cost = sum(source.bare(sketch.standing[index]) for index in question)
    others = sum(map(source.bare, sketch.messages)) - cost
    over = cost - source.budget.question_room(others)
    total = sum(len(text_of(sketch.standing[index])) for index in question)
    standing, saved = _cut_largest(sketch, source, (question[:-1], question[-1:]), over)
    if not saved:
        return sketch
    kept = Kept(sum(kept_characters(text_of(standing[index])) for index in question), total)
    return replace(
        _with(sketch, standing, Step("question", saved, f"{kept.characters} of {total} characters")), question_kept=kept
    )


STAGES: Final[tuple[Stage, ...]] = (
    write_shorter,
    shrink_others,
    keep_question_only,
    drop_note,
    shrink_others,
    cut_question,
)
"""The stages in order; each runs only while the draft is still too large."""


def _over(sketch: Sketch, source: Source) -> int:
    """Return the excess of a sketch in tokens."""
    return sum(map(source.cost, sketch.messages)) - source.budget.room


def _with(sketch: Sketch, standing: Mapping[int, Message], step: Step) -> Sketch:
    return replace(sketch, standing=standing, steps=(*sketch.steps, step))


def _cut_largest(
    sketch: Sketch, source: Source, groups: tuple[list[int], ...], over: int
) -> tuple[Mapping[int, Message], int]:
    """Cut so many tokens from the messages of each group, the largest first; return the standing messages and the
    saving."""
    standing = dict(sketch.standing)
    asked = words_asked_for(source)
    saved = 0
    for group in groups:
        for index in sorted(group, key=lambda index: -source.bare(standing[index])):
            if saved >= over:
                break
            cost = source.bare(standing[index])
            standing[index] = shrink.shrink_message(
                standing[index],
                max(cost - over + saved, LEAST_OF_MESSAGE),
                source.counter,
                asked,
                thorough=source.thorough,
            )
            saved += cost - source.bare(standing[index])
    return standing, saved


def _yields(source: Source, standing: Mapping[int, Message], layout: Layout) -> Iterator[Step]:
    """Return the saving of each stage, in order."""
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
            yield Step(stage, tokens, f"{numbers[stage]} messages", numbers[stage])


def _stage(before: Message, *, gone: bool, own: bool) -> str:
    if gone:
        return "steps" if own else "turns"
    if before.get("role") in RESULT_ROLES:
        return "tool_results"
    if any(True for _ in media_parts(before)):
        return "media"
    return "reasoning" if carries_more(before) else "giant"
