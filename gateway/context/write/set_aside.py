"""The room for the quotes of a question: which kept turns are set aside for it, and how far the digest is shortened.

After a cut the kept turns grow until the room is full, so ever less room is left for quotes. A question of a chat may be
about anything that was said. For such a request the oldest kept turns are *set aside*: they are left out, and are
searched and quoted like folded ones.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import Final

from msgspec.structs import replace

from gateway.context.cut.layout import Layout
from gateway.context.cut.source import Source
from gateway.context.cut.units import USER, Cut, Unit, newest_question
from gateway.context.write.allowance import set_aside_tokens
from gateway.context.write.current_question import CurrentQuestion
from gateway.context.write.readings import FULLY_READ_CHARACTERS, messages_by_relevance, number_skimmed
from gateway.wire.message import media_parts

MOST_REREAD: Final = 1.0
"""Tokens that may be processed again for each token that quotes gain. The turns after those set aside are no longer in the prompt
cache. If they have more tokens than this allows, nothing is set aside."""
MOST_REREAD_WITH_CALLS: Final = 0.5
"""The same in an agent's conversation. After the first call the question has no quotes: the turns come back, and the turns
after them are processed a second time."""
QUOTES_BEFORE_DIGEST: Final = 6000
"""Tokens. If less room is left for quotes, the digest is shortened for them. This applies where the folded part is long
and its old part is only skimmed. Chosen: with 8,000 tokens of quotes, the shorter digest loses what these do not find."""
SHORTENED_DIGEST_SHARE: Final = 1 / 4
"""Share of its tokens that a shortened digest keeps: standing wishes come first in it. Without a digest, quotes find no more."""
TOPIC_MESSAGES: Final = 20
"""Number of the messages most relevant to a question. They tell which part of the conversation it is about."""
OLD_TOPIC_SHARE: Final = 0.95
"""Share of these in the skimmed part. With fewer, the question is about the newer part. Chosen: the digest then keeps what
a running task asks for (24 requests of joined conversations with tools; with 0.9 of ten messages one of these loses it).
"""


def with_room_for_quotes(source: Source, question: CurrentQuestion) -> CurrentQuestion:
    """Return the question with a layout in which the oldest kept turns are set aside, if it would get too few quotes.

    The turn before the question stays (in an agent's conversation only its end), and everything from the first media on. The
    boundary moves in steps, so that the next question's request begins like this one.
    """
    layout = question.layout
    first, units = layout.cut.first_kept, layout.units
    wanted = set_aside_tokens(question)
    if not wanted:
        return question
    sums = _kept_sums(layout)
    missing = wanted - _free_beside_turns(layout, sums)
    if missing <= 0:
        return question
    step = max(wanted // 2, 1)
    boundary = min(first + bisect_left(sums, ceil(missing / step) * step), len(units) - 1)
    reread = sums[-1] - sums[min(boundary - first, len(sums) - 1)]
    if reread > _most_reread(layout) * missing:
        return question
    set_aside = (_steps_before if layout.has_agent else _turns_before)(source, layout, boundary)
    return replace(question, layout=replace(layout, set_aside=set_aside))


def _turns_before(source: Source, layout: Layout, boundary: int) -> tuple[int, ...]:
    """Return the messages of the kept turns before the one with a boundary, up to the first media."""
    units = layout.units
    folded = set(layout.folded)
    kept = [(unit.turn, index) for unit in units for index in unit.indices if index not in folded]
    turns_with_media = [turn for turn, index in kept if _has_media(source, index)]
    first_turn = min([units[boundary].turn, units[-1].turn - 1, *turns_with_media])
    return tuple(index for turn, index in kept if turn < first_turn)


def _most_reread(layout: Layout) -> float:
    """Return the tokens that may be processed again for each token that quotes gain. The turns of an agent that works on its own are
    long, and few of its requests are questions."""
    return MOST_REREAD_WITH_CALLS if layout.has_agent and not layout.autonomous else MOST_REREAD


def _steps_before(source: Source, layout: Layout, boundary: int) -> tuple[int, ...]:
    """Return the messages of the kept units before a boundary, up to the first media. Turns with calls are long, so one may be set
    aside in part: its user messages stay, and its last step before the question, the report."""
    units, folded = layout.units, set(layout.folded)
    end = min(boundary, newest_question(units) - 1)
    kept = [(position, index) for position in range(end) for index in units[position].indices if index not in folded]
    end = next((position for position, index in kept if _has_media(source, index)), end)
    current = units[end].turn
    return tuple(
        index
        for position, index in kept
        if position < end and (units[position].kind is not USER or units[position].turn != current)
    )


def _has_media(source: Source, index: int) -> bool:
    """Return whether a message has an image, a file or the like."""
    return any(True for _ in media_parts(source.messages[index]))


def digest_tokens_beside_quotes(source: Source, question: CurrentQuestion, wanted: int, left: int) -> int:
    """Return the tokens of a digest that shares ``left`` tokens with quotes: the ``wanted`` tokens, or fewer if the question is about the part
    that is only skimmed. Then the quotes need the room."""
    layout = question.layout
    if left - wanted >= QUOTES_BEFORE_DIGEST or not (layout.ends_with_question and question.of_long_history):
        return wanted
    is_searched = question.is_searched and question.names_subject
    skimmed = number_skimmed(source.messages, layout.folded, FULLY_READ_CHARACTERS) if is_searched else 0
    if not skimmed or not _is_about(source, question, frozenset(layout.folded[:skimmed])):
        return wanted
    return max(min(wanted, left - QUOTES_BEFORE_DIGEST), int(wanted * SHORTENED_DIGEST_SHARE))


def _is_about(source: Source, question: CurrentQuestion, part: frozenset[int]) -> bool:
    """Return whether a question is about a part of the conversation: nearly all the most relevant messages are in it."""
    not_searched = {*question.layout.question, *source.structure.pinned}
    indices = [index for index in range(len(source.messages)) if index not in not_searched]
    best = messages_by_relevance(source, indices, question.text)[:TOPIC_MESSAGES]
    return sum([index in part for index in best]) >= OLD_TOPIC_SHARE * len(best)


def quotes_fit_beside_turns(layout: Layout, quote_tokens: int) -> bool:
    """Return whether so many tokens of quotes fit into the room although all kept turns are sent, up to the current question."""
    return quote_tokens <= _free_beside_turns(layout, _kept_sums(layout))


def _free_beside_turns(layout: Layout, sums: Sequence[int]) -> int:
    """Return the tokens that the digest and the kept turns leave; negative if they need more than there is. ``sums`` are `_kept_sums`."""
    return layout.room.free - layout.cut.digest_tokens - sums[-1]


def _kept_sums(layout: Layout) -> list[int]:
    """Return the running sums of the kept units' costs, up to the current question: the steps of its turn do not change what is
    set aside."""
    cut, first, units = layout.cut, layout.cut.first_kept, layout.units
    kept = enumerate(units[first : newest_question(units) + 1], first)
    return [0, *accumulate([_kept_cost(cut, position, unit) for position, unit in kept])]


def _kept_cost(cut: Cut, position: int, unit: Unit) -> int:
    """Return the tokens of a kept unit in its form."""
    if position < cut.stubs_end:
        return unit.stubbed_cost
    return unit.trimmed_cost if position < cut.trims_end else unit.cost
