"""The stages of a fold: they make a conversation smaller, one after the other, until it fits its room.

From the first value to the last one:

1. `Source`: the conversation and its budget. Its `Layout` says what is kept and what is folded.
2. The kept messages, whole or shortened (`kept_messages`), and the `Replacement` of the others: a note and quotes (`replacement_of`).
3. `Sketch`: both together (`first_sketch`). It usually fits.
4. If it does not, each stage of `STAGES` returns a smaller sketch. The question is shortened last.
5. `Draft`: the last sketch's messages, which are sent, and the steps that made them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from gateway.context.cut.cutting import layout_of
from gateway.context.cut.layout import Layout
from gateway.context.cut.media_and_reasoning import has_media_or_reasoning
from gateway.context.cut.question import kept_whole, may_fit, question_indices
from gateway.context.cut.rungs import QUESTION_ONLY
from gateway.context.cut.source import Source
from gateway.context.cut.unit_limits import gets_final_size
from gateway.context.shrink.gaps import characters_without_markers
from gateway.context.shrink.message import fair_limits, shrink_message
from gateway.context.write.current_question import CurrentQuestion, current_question_of
from gateway.context.write.draft import NOTE_STAGES, QUOTES_STAGE, Draft, QuestionKept, Step
from gateway.context.write.kept import kept_messages, words_of_question
from gateway.context.write.replacement import Replacement, replacement_of
from gateway.context.write.search import by_meaning
from gateway.context.write.set_aside import quotes_fit_beside_turns, with_room_for_quotes
from gateway.context.write.sketch import Sketch
from gateway.wire.message import RESULT_ROLES, Message, media_parts, text_of

LEAST_MESSAGE_TOKENS: Final = 12
"""Tokens that remain of a message that is shortened to make room, if its form allows."""

DIGEST_SHARE_BESIDE_QUESTION: Final = 1 / 3
"""Share of the free room for a digest if only the question and the newest step are kept: a kept message, such as pages that a server's
tool read, was too large and cannot be shortened. Chosen: nothing else tells what was said, and the rest is left for the next step."""

MOST_JOINT_TOKENS: Final = 8
"""Tokens by which a note and quotes may exceed the sum of their parts: one or two where two parts meet."""

LEAST_REST_SHARE: Final = 0.02
"""Share of the room. A smaller rest is not worth shortening the newest results again."""

Stage = Callable[[Sketch, Source], Sketch]


def fold(source: Source) -> Draft:
    """Fold a conversation to fit its budget, as far as possible."""
    sketch = last_sketch(source)
    costs = tuple(map(source.cost_without_ids, sketch.messages))
    return Draft(sketch.messages, costs, sketch.steps, sketch.layout.turns_folded, sketch.question_kept)


def last_sketch(source: Source) -> Sketch:
    """Return the sketch that fits the budget, or the smallest one."""
    sketch = first_sketch(source, layout_of(source))
    for stage in STAGES:
        if _excess(sketch, source) <= 0:
            break
        sketch = stage(sketch, source)
    return sketch


def first_sketch(source: Source, layout: Layout) -> Sketch:
    """Return the sketch of a layout: the kept messages, and a note and quotes for the others.

    Turns are set aside for quotes before it is known how many quotes are found. If these fit beside the turns, the turns are kept after all.
    """
    question_beside_turns = current_question_of(source, layout)
    question = with_room_for_quotes(source, question_beside_turns)
    kept = kept_messages(source, question.layout)
    replacement = _replacement(source, question, kept)
    if question.layout.set_aside and _turns_can_stay(source, question.layout, kept, replacement):
        question = question_beside_turns
        kept = kept_messages(source, layout)
        replacement = _replacement(source, question, kept)
    return _sketch_of(source, question.layout, kept, replacement)


def _turns_can_stay(
    source: Source, layout: Layout, kept: Mapping[int, Message], replacement: Replacement | None
) -> bool:
    """Return whether the quotes of the current question fit although no turns are set aside. ``replacement`` is that of this request.

    The request that ended with the question decides it for the whole turn. So all requests of the turn begin alike.
    """
    if not layout.ends_with_question:
        before = {index: message for index, message in kept.items() if index <= layout.question[-1]}
        replacement = _replacement(
            source, current_question_of(source, replace(layout, ends_with_question=True)), before
        )
    return replacement is None or quotes_fit_beside_turns(layout, source.counter.text(replacement.quotes))


def _sketch_of(source: Source, layout: Layout, kept: Mapping[int, Message], replacement: Replacement | None) -> Sketch:
    """Return the sketch with these messages and texts, and the steps that made it. The newest results get the rest of the room."""
    steps = (*_savings(source, kept, layout), *_written(source, replacement))
    return _with_larger_results(Sketch(layout, kept, replacement, steps), source)


def _written(source: Source, replacement: Replacement | None) -> Iterator[Step]:
    """Yield the steps that wrote the note and the quotes. They save a negative number of tokens."""
    if replacement is None:
        return
    chosen, total = len(replacement.in_note), len(replacement.pool.lines)
    if replacement.note:
        note_tokens = source.counter.text(replacement.note)
        yield Step(replacement.stage, -note_tokens, f"{chosen} of {total} lines", chosen, total)
    if replacement.quotes:
        lines = replacement.quoted_lines
        detail = f"{lines} lines{', by words and meaning' if by_meaning(source) else ''}"
        yield Step(QUOTES_STAGE, -source.counter.text(replacement.quotes), detail, lines)


def _replacement(source: Source, question: CurrentQuestion, kept: Mapping[int, Message]) -> Replacement | None:
    """Return the note and the quotes of a layout; None if every message is kept as it came."""
    is_changed = any(kept[index] is not source.messages[index] for index in kept)
    if question.layout.folded or source.earlier_notes or is_changed:
        return replacement_of(source, question, kept)
    return None


def _with_larger_results(sketch: Sketch, source: Source) -> Sketch:
    """Give the rest of the room to shortened tool results of the newest step. In the next request they are old, and are shortened again in
    any case."""
    newest = sketch.layout.units[-1] if sketch.layout.units else None
    if newest is None or gets_final_size(newest, sketch.layout.room) or source.rung_limits.max_characters is not None:
        return sketch
    messages, kept = source.messages, sketch.kept
    shortened = [
        index
        for index in newest.indices
        if kept[index].get("role") in RESULT_ROLES and kept[index] is not messages[index]
    ]
    rest = -_excess(sketch, source) if shortened else 0
    if not shortened or rest < LEAST_REST_SHARE * source.budget.room:
        return sketch
    costs = [source.cost_without_ids(messages[index]) for index in shortened]
    total = rest + sum([source.cost_without_ids(kept[index]) for index in shortened])
    question_words = words_of_question(source, question_indices(source))
    larger = {
        index: shrink_message(messages[index], limit, source.counter, question_words, thorough=source.thorough)
        for index, limit in zip(shortened, fair_limits(costs, total), strict=True)
    }
    return replace(sketch, kept={**kept, **larger})


def write_shorter(sketch: Sketch, source: Source) -> Sketch:
    """Write the note and the quotes again, a little shorter, if the sketch is too large by only a few tokens: a joined text may
    have some more tokens than its parts."""
    excess = _excess(sketch, source)
    if excess > MOST_JOINT_TOKENS or sketch.replacement is None:
        return sketch
    question = current_question_of(source, sketch.layout)
    for spare in (excess, excess + 2, excess + MOST_JOINT_TOKENS):
        replacement = replacement_of(source, question, sketch.kept, spare)
        shorter = _sketch_of(source, sketch.layout, sketch.kept, replacement)
        if _excess(shorter, source) <= 0:
            return shorter
    return sketch


def shrink_others(sketch: Sketch, source: Source) -> Sketch:
    """Shorten the largest kept messages, tool results first; never the question or messages that must stay whole."""
    untouched = kept_whole(source) | set(question_indices(source))
    shrinkable = [index for index in sketch.kept if index not in untouched]
    results = [index for index in shrinkable if sketch.kept[index].get("role") in RESULT_ROLES]
    kept, saved = _shrink_largest(sketch, source, (results, shrinkable), _excess(sketch, source))
    return _with_step(sketch, kept, Step("giant", saved)) if saved else sketch


def keep_question_only(sketch: Sketch, source: Source) -> Sketch:
    """Fold everything except the question and the newest step. Unlike on the last rung, the room is known, and a digest has its share."""
    if sketch.layout.cut.first_kept >= len(sketch.layout.units) - 1:
        return sketch
    source = replace(source, rung_limits=QUESTION_ONLY)
    layout = layout_of(source)
    digest_tokens = int(DIGEST_SHARE_BESIDE_QUESTION * layout.room.free)
    return first_sketch(source, replace(layout, cut=replace(layout.cut, digest_tokens=digest_tokens)))


def drop_note_and_quotes(sketch: Sketch, source: Source) -> Sketch:
    """Drop both, because the question's own words are worth more."""
    if sketch.replacement is None:
        return sketch
    steps = tuple(step for step in sketch.steps if step.stage not in NOTE_STAGES and step.stage != QUOTES_STAGE)
    return replace(sketch, replacement=None, steps=steps)


def cut_question(sketch: Sketch, source: Source) -> Sketch:
    """Shorten a question that does not fit the window beside the newest step: its earlier messages first, then its last one."""
    if source.policy.question == "refuse":
        return sketch
    question = [index for index in question_indices(source) if index in sketch.kept]
    shorter, saved = sketch, 0
    for part in filter(None, (question[:-1], question[-1:])):
        total = sum(map(source.cost_without_ids, shorter.messages))
        if not may_fit(source, total):
            cost = sum(source.cost_without_ids(shorter.kept[index]) for index in part)
            excess = cost - source.budget.question_room(total - cost)
            kept, less = _shrink_largest(shorter, source, (part,), excess)
            shorter, saved = replace(shorter, kept=kept), saved + less
    if not saved:
        return sketch
    changed = [index for index in question if shorter.kept[index] is not sketch.kept[index]]
    before = sum(len(text_of(sketch.kept[index])) for index in changed)
    after = sum(characters_without_markers(text_of(shorter.kept[index])) for index in changed)
    shorter = _with_step(shorter, shorter.kept, Step("question", saved, f"{after} of {before} characters"))
    return replace(shorter, question_kept=QuestionKept(after, before))


STAGES: Final[tuple[Stage, ...]] = (
    write_shorter,
    shrink_others,
    keep_question_only,
    drop_note_and_quotes,
    shrink_others,
    cut_question,
)
"""The stages in order. Each runs only if the sketch is still too large."""


def _excess(sketch: Sketch, source: Source) -> int:
    """Return the tokens by which a sketch is too large; negative if there is room."""
    return sum(map(source.cost, sketch.messages)) - source.budget.room


def _with_step(sketch: Sketch, kept: Mapping[int, Message], step: Step) -> Sketch:
    return replace(sketch, kept=kept, steps=(*sketch.steps, step))


def _shrink_largest(
    sketch: Sketch, source: Source, groups: tuple[list[int], ...], excess: int
) -> tuple[Mapping[int, Message], int]:
    """Shorten the messages of each group, the largest first, until ``excess`` tokens are saved. Return the kept messages
    and the saved tokens."""
    kept = dict(sketch.kept)
    question_words = words_of_question(source, question_indices(source))
    saved = 0
    for group in groups:
        for index in sorted(group, key=lambda index: -source.cost_without_ids(kept[index])):
            if saved >= excess:
                break
            cost = source.cost_without_ids(kept[index])
            target = max(cost - (excess - saved), LEAST_MESSAGE_TOKENS)
            kept[index] = shrink_message(kept[index], target, source.counter, question_words, thorough=source.thorough)
            saved += cost - source.cost_without_ids(kept[index])
    return kept, saved


def _savings(source: Source, kept: Mapping[int, Message], layout: Layout) -> Iterator[Step]:
    """Yield a step for each way in which the layout saved tokens, in order."""
    saved = {"media": 0, "reasoning": 0, "tool_results": 0, "turns": 0, "steps": 0, "giant": 0}
    numbers = dict.fromkeys(saved, 0)
    current_turn = layout.units[-1].turn if layout.units else 0
    for unit in layout.units:
        for index in unit.indices:
            before = source.messages[index]
            after = kept.get(index)
            if after is before:
                continue
            stage = _stage_of(before, left_out=after is None, in_current_turn=unit.turn == current_turn)
            saved[stage] += source.costs[index] - (source.cost(after) if after is not None else 0)
            numbers[stage] += 1
    for stage, tokens in saved.items():
        if numbers[stage]:
            yield Step(stage, tokens, f"{numbers[stage]} messages", numbers[stage])


def _stage_of(message: Message, *, left_out: bool, in_current_turn: bool) -> str:
    """Return the name of the way in which a message was left out or shortened; ``giant`` if it was only too large."""
    if left_out:
        return "steps" if in_current_turn else "turns"
    if message.get("role") in RESULT_ROLES:
        return "tool_results"
    if any(True for _ in media_parts(message)):
        return "media"
    return "reasoning" if has_media_or_reasoning(message) else "giant"
