"""The standing messages of a fold, each in its form."""

from collections.abc import Iterator
from typing import Final

from gateway.context.choose.words import words
from gateway.context.cut import replay
from gateway.context.cut.attachments import has_media_or_reasoning, without_media_and_reasoning
from gateway.context.cut.layout import STUB_TOKENS, Layout, Source, tokens_of_characters
from gateway.context.cut.question import kept_whole, question_of
from gateway.context.write import shrink
from gateway.wire.message import RESULT_ROLES, Message, text_of

ASKED_CHARACTERS: Final = 2000
"""Characters at the end of a question that state its request."""


def standing_of(source: Source, layout: Layout) -> dict[int, Message]:
    """Return the standing messages by index. The question, and messages that must stay whole, are not cut here."""
    allowed = replay.unit_limits(layout.units, layout.room)
    gone = set(layout.left_out)
    untouched = kept_whole(source) | set(question_of(source))
    asked = words_asked_for(source)
    standing = {index: source.messages[index] for index in source.conversation.pinned}
    for position, unit in enumerate(layout.units):
        if unit.indices[0] in gone:
            continue
        standing.update(_forms(source, layout, position, untouched))
        able = [index for index in unit.indices if index not in untouched]
        costs = [source.cost(standing[index]) for index in able]
        whole = sum(source.cost(standing[index]) for index in unit.indices if index in untouched)
        levels = shrink.levels(costs, max(allowed[position] - whole, 0))
        for index, cost, level in zip(able, costs, levels, strict=True):
            if level < cost:
                allowance = level - cost + source.cost_without_ids(standing[index])
                standing[index] = shrink.shrink_message(
                    standing[index], allowance, source.counter, asked, thorough=source.thorough
                )
    return standing


def words_asked_for(source: Source) -> frozenset[str]:
    """Return the keys of the words in the current question."""
    texts = [text_of(source.messages[index])[-ASKED_CHARACTERS:] for index in question_of(source)]
    return frozenset(word.key for text in texts for word in words(text, source.memory))


def _forms(source: Source, layout: Layout, position: int, untouched: frozenset[int]) -> Iterator[tuple[int, Message]]:
    """Return the messages of a unit in its form: full, with results cut, or with results as a line."""
    unit = layout.units[position]
    old = position < len(layout.units) - 1 and unit.indices != layout.question
    trimmed = old and position < max(layout.cut.trims_end, layout.cut.stubs_end)
    for index in unit.indices:
        message = source.messages[index]
        if index not in untouched:
            if trimmed:
                message = _trimmed(source, layout, message, stub=position < layout.cut.stubs_end)
            if source.rung.max_characters is not None:
                message = _at_most(source, message, source.rung.max_characters)
        yield index, message


def _trimmed(source: Source, layout: Layout, message: Message, *, stub: bool) -> Message:
    """Return an old message without media and reasoning, its result cut or reduced to a line."""
    if has_media_or_reasoning(message):
        message = without_media_and_reasoning(message)
    if message.get("role") not in RESULT_ROLES:
        return message
    most = (
        STUB_TOKENS
        if stub
        else min(
            tokens_of_characters(source, message, source.policy.tool_result_chars) or layout.trimmed_result_tokens,
            layout.trimmed_result_tokens,
        )
    )
    return shrink.shrink_message(message, most, source.counter, thorough=source.thorough)


def _at_most(source: Source, message: Message, longest: int) -> Message:
    """Return a message with at most about so many characters of text."""
    most = tokens_of_characters(source, message, longest)
    return message if most is None else shrink.shrink_message(message, most, source.counter, thorough=source.thorough)
