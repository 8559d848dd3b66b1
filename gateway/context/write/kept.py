"""The kept messages of a fold, each in its form: in full, trimmed, or with tool results as stubs."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from gateway.context.cut.layout import Layout
from gateway.context.cut.media_and_reasoning import has_media_or_reasoning, without_media_and_reasoning
from gateway.context.cut.question import kept_whole, question_indices
from gateway.context.cut.result_limits import result_limits, tokens_of_characters
from gateway.context.cut.source import Source
from gateway.context.cut.unit_limits import unit_limits
from gateway.context.cut.units import USER
from gateway.context.read.words import words
from gateway.context.shrink.message import fair_limits, shrink_message
from gateway.wire.message import RESULT_ROLES, Message, text_of

QUESTION_END_CHARACTERS: Final = 2000
"""Characters at the end of a question. When a message of its turn is shortened, rows with words of these are kept. Chosen: what is asked is at
the end."""


def kept_messages(source: Source, layout: Layout) -> dict[int, Message]:
    """Return the kept messages by index. The question, and messages that must stay whole, are not shortened here."""
    limits = unit_limits(layout.units, layout.room)
    left_out = set(layout.left_out)
    untouched = kept_whole(source) | set(question_indices(source))
    questions = {unit.turn: unit.indices for unit in layout.units if unit.kind is USER}
    # With the words of the current question, old messages would change with every question.
    words_in_turn = cache(lambda turn: words_of_question(source, questions.get(turn, ())))
    kept = {index: source.messages[index] for index in source.structure.pinned}
    for position, unit in enumerate(layout.units):
        if unit.indices[0] not in left_out:
            forms = dict(_forms(source, layout, position, untouched))
            for index, limit in _too_large(source, forms, untouched, limits[position]):
                forms[index] = shrink_message(
                    forms[index], limit, source.counter, words_in_turn(unit.turn), thorough=source.thorough
                )
            kept.update(forms)
    return kept


def _too_large(
    source: Source, forms: Mapping[int, Message], untouched: frozenset[int], most: int
) -> list[tuple[int, int]]:
    """Return which messages of a unit must be shortened so that it has at most ``most`` tokens, each with its limit for `shrink_message`:
    that counts without call ids, which it cannot shorten."""
    shrinkable = [index for index in forms if index not in untouched]
    costs = [source.cost(forms[index]) for index in shrinkable]
    whole = sum(source.cost(forms[index]) for index in forms if index in untouched)
    limits = fair_limits(costs, max(most - whole, 0))
    return [
        (index, limit - cost + source.cost_without_ids(forms[index]))
        for index, cost, limit in zip(shrinkable, costs, limits, strict=True)
        if limit < cost
    ]


def words_of_question(source: Source, question: tuple[int, ...]) -> frozenset[str]:
    """Return the keys of the words at the end of a question's messages."""
    texts = [text_of(source.messages[index])[-QUESTION_END_CHARACTERS:] for index in question]
    return frozenset(word.key for text in texts for word in words(text, source.memory))


def _forms(source: Source, layout: Layout, position: int, untouched: frozenset[int]) -> Iterator[tuple[int, Message]]:
    """Yield the messages of a kept unit by index: in full, trimmed or stubbed."""
    unit, cut = layout.units[position], layout.cut
    is_old = position < len(layout.units) - 1 and unit.indices != layout.question
    is_trimmed = is_old and position < max(cut.trims_end, cut.stubs_end)
    for index in unit.indices:
        message = source.messages[index]
        if index not in untouched:
            if is_trimmed:
                message = _trimmed(source, layout, message, stub=position < cut.stubs_end)
            if source.rung_limits.max_characters is not None:
                message = _with_characters(source, message, source.rung_limits.max_characters)
        yield index, message


def _trimmed(source: Source, layout: Layout, message: Message, *, stub: bool) -> Message:
    """Return an old message without media and reasoning, its tool result shortened or reduced to a stub."""
    if has_media_or_reasoning(message):
        message = without_media_and_reasoning(message)
    if message.get("role") not in RESULT_ROLES:
        return message
    limits = result_limits(source, layout.room, message)
    most = limits.stubbed if stub else limits.trimmed
    return shrink_message(message, most, source.counter, thorough=source.thorough)


def _with_characters(source: Source, message: Message, characters: int) -> Message:
    """Return a message with at most about so many characters of text."""
    most = tokens_of_characters(source, message, characters)
    return message if most is None else shrink_message(message, most, source.counter, thorough=source.thorough)
