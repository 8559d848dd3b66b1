"""Let history give way to the quotes of a question, for this request alone.

After a cut the standing history grows until the window is full, and leaves ever less room for quotes. A question of a chat
may be about anything that was said: then the oldest standing turns are searched and quoted like folded ones.
"""

from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate
from typing import Final

from gateway.context.choose import lookup, speakers
from gateway.context.choose.cues import asks_for_a_fact, is_question
from gateway.context.choose.subject import names_a_subject
from gateway.context.cut.layout import Layout, Source
from gateway.context.cut.replay import Cut, Unit, calls_often
from gateway.context.write.readings import READ, first_read
from gateway.wire.message import media_parts, text_of

QUOTES_OF_QUESTION: Final = 4000
"""Tokens of quotes that a question of a chat gets, whether history gives way or room is free. Chosen: of the remarks that questions about natural
chats need, the best 2,600 tokens of quotes hold four in five."""
QUOTES_FAR: Final = 10_000
"""The same where the folded part is many times the room (`FAR`): of what is asked of 135,000 tokens in a room of 13,500 a digest and what
stands tell little, 10,000 tokens of quotes 89 %, 4,000 83 %."""
QUOTES_WITHOUT_SUBJECT: Final = 1_600
"""The same behind a question that names no subject (*What now?*), whose quotes are standing wishes: some seventy of them. Of what comes next, the newest
messages tell more."""
SHARE_OF_QUOTES: Final = 0.6
"""Share of the free room that they may take in a small window."""
SHARE_OF_FOLDED: Final = 1 / 3
"""Share of the folded part that they may take: quotes that give back more of it cost more than they find."""
READ_ANEW: Final = 1.0
"""Tokens that are read anew, because those before them give way, for each token that quotes gain; beyond that nothing does. A cache that holds
one prompt reads them anew in the next request, too."""
QUERY: Final = 4000
"""Characters at the end of a question that are used for the search."""

BEFORE_DIGEST: Final = 6000
"""Tokens of quotes below which a digest gives way, too, where the folded part is many times the room and only skimmed. Chosen: with 8,000 tokens of quotes a
smaller digest loses what these do not find."""
LEAST_DIGEST: Final = 1 / 4
"""Share of its tokens that the digest keeps then: standing wishes come first in it. Nothing of it finds no more."""
BEARING: Final = 20
"""Messages that bear most on a question, by which it is told what part of the conversation it is about."""
PAST: Final = 0.95
"""Share of these in the part that is only skimmed. Chosen: what a running errand asks for then stays in the digest (24 requests of joined
conversations with tools; with 0.9 of ten one of these loses it)."""

FAR: Final = 4
"""Times the free room. Of a folded part beyond that, a digest tells so little that questions are answered from quotes: without them a
tenth of what is asked of 135,000 tokens with calls is found, with them eight tenths."""


def with_room_for_quotes(source: Source, layout: Layout) -> Layout:
    """Return the layout with the oldest standing turns aside, where the current question would get too few quotes.

    The turn before the question stands, and what comes after media. The boundary moves in steps, so that the next
    question's request begins like this one.
    """
    first, units = layout.cut.first, layout.units
    wanted = tokens_for_question(source, layout)
    if not wanted:
        return layout
    sums = _sums(layout)
    missing = wanted - (layout.room.free - layout.cut.digest - sums[-1])
    if missing <= 0:
        return layout
    step = max(wanted // 2, 1)
    boundary = min(first + bisect_left(sums, -(-missing // step) * step), len(units) - 1)
    if sums[-1] - sums[min(boundary - first, len(sums) - 1)] > READ_ANEW * missing:
        return layout
    turn = min(units[boundary].turn, units[-1].turn - 1)
    gone = set(layout.folded)
    standing = [(unit.turn, index) for unit in units for index in unit.indices if index not in gone]
    turn = min(
        [turn, *[number for number, index in standing if any(True for _ in media_parts(source.messages[index]))]]
    )
    return replace(layout, aside=tuple(index for number, index in standing if number < turn))


def tokens_for_question(source: Source, layout: Layout) -> int:
    """Return the tokens of quotes for which history gives way: none behind a message that asks nothing."""
    if not (layout.cut.first and layout.current and source.policy.recall_share and not source.rung.newest_only):
        return 0
    query = question_text(source, layout.current)
    about_talk = is_about_talk(layout, query) or (layout.asked_last and is_far(layout))
    if not (about_talk and is_question(query)):
        return 0
    return int(min(most_quotes(layout, query), SHARE_OF_QUOTES * layout.room.free, SHARE_OF_FOLDED * _folded(layout)))


def tokens_before_digest(source: Source, layout: Layout) -> int:
    """Return the tokens of quotes for which a digest gives way that could take the whole room: those of a chat's question."""
    return 0 if calls_often(layout.units) else tokens_for_question(source, layout)


def is_about_talk(layout: Layout, query: str) -> bool:
    """Return whether the current question is likely about what was said: in a chat, also once it has looked something up for the answer. Where
    tools are often called a request for a new errand has the same form, except for a question that asks for a fact."""
    return not calls_often(layout.units) or (layout.asked_last and asks_for_a_fact(query))


def most_quotes(layout: Layout, query: str) -> int:
    """Return the tokens of quotes that a question of a chat gets at most."""
    if not names_a_subject(query):
        return QUOTES_WITHOUT_SUBJECT
    return QUOTES_FAR if is_far(layout) else QUOTES_OF_QUESTION


def question_text(source: Source, indices: tuple[int, ...]) -> str:
    """Return the end of a question's last message, which says what is asked."""
    return text_of(source.messages[indices[-1]])[-QUERY:]


def is_far(layout: Layout) -> bool:
    """Return whether the folded part is many times the room: then only quotes tell what a question asks for."""
    return _folded(layout) > FAR * layout.room.free


def digest_beside_quotes(source: Source, layout: Layout, digest: int, left: int) -> int:
    """Return the tokens of a digest in ``left`` tokens that it shares with quotes: fewer where only quotes can tell what is asked for."""
    if not (layout.asked_last and layout.cut.first and source.policy.recall_share and is_far(layout)):
        return digest
    query = question_text(source, layout.current)
    skimmed = first_read(source.messages, layout.folded, READ)
    if source.rung.newest_only or not skimmed or left - digest >= BEFORE_DIGEST or not is_question(query):
        return digest
    if not _asks_of(source, query, frozenset(layout.folded[:skimmed]), frozenset(layout.current)):
        return digest
    return max(min(digest, left - BEFORE_DIGEST), int(digest * LEAST_DIGEST))


def _asks_of(source: Source, query: str, past: frozenset[int], current: frozenset[int]) -> bool:
    """Return whether a question is about the past: whether nearly all messages that bear most on it are of that part."""
    if not names_a_subject(query):
        return False
    left_out = current.union(source.conversation.pinned)
    indices = [index for index in range(len(source.messages)) if index not in left_out]
    texts = [text_of(source.messages[index]) for index in indices]
    roles = [str(source.messages[index].get("role")) for index in indices]
    best = lookup.bearing(
        texts,
        roles,
        query,
        (),
        speakers.likely(query, speakers.dialogue_of(zip(reversed(roles), reversed(texts), strict=True))),
    )[:BEARING]
    return sum([indices[place] in past for place in best]) >= PAST * len(best)


def gives_way_for_nothing(layout: Layout, quoted: int) -> bool:
    """Return whether quotes of so many tokens had room beside the turns that are aside when the question was asked."""
    return bool(layout.aside) and quoted <= layout.room.free - layout.cut.digest - _sums(layout)[-1]


def _folded(layout: Layout) -> int:
    return sum([unit.cost for unit in layout.units[: layout.cut.first]])


def _sums(layout: Layout) -> list[int]:
    """Return the running sums of what stands after the cut, up to the current question: its steps do not move what gives way."""
    first, units = layout.cut.first, layout.units
    steps = 0
    while steps < len(units) and units[-1 - steps].step >= 0:
        steps += 1
    standing = units[first : len(units) - steps]
    return [0, *accumulate(_cost(layout.cut, place, unit) for place, unit in enumerate(standing, first))]


def _cost(cut: Cut, place: int, unit: Unit) -> int:
    return unit.stubbed_cost if place < cut.stubbed else unit.trimmed_cost if place < cut.trimmed else unit.cost
