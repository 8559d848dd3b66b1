"""The room for the quotes of a question: which kept turns are set aside for it, and how far the digest is shortened.

After a cut the kept turns grow until the room is full, so ever less room is left for quotes. A question of a chat may be
about anything that was said. For such a request the oldest kept turns are *set aside*: they are left out, and are
searched and quoted like folded ones.
"""

from bisect import bisect_left
from itertools import accumulate
from typing import Final

from msgspec.structs import replace

from gateway.context.choose import lookup
from gateway.context.cut.layout import Layout, Source
from gateway.context.cut.units import Cut, Unit
from gateway.context.read.cues import asks_for_information, is_question, request_in
from gateway.context.read.lines import head_and_tail
from gateway.context.read.pasted import own_words
from gateway.context.read.subject import names_a_subject
from gateway.context.weigh import speakers
from gateway.context.write.readings import FULLY_READ_CHARACTERS, skimmed_messages
from gateway.wire.message import media_parts, text_of

QUOTE_TOKENS: Final = 4000
"""Most tokens of quotes for a question of a chat. Chosen: the best 2,600 tokens of quotes have four in five of the remarks that
questions about natural chats need."""
QUOTE_TOKENS_OF_LONG_HISTORY: Final = 10_000
"""The same if the folded part is long (`LONG_HISTORY`). Measured with 135,000 tokens in a room of 13,500: quotes of
10,000 tokens have 89 % of what is asked, quotes of 4,000 tokens 83 %; digest and kept turns have little of it."""
QUOTE_TOKENS_OF_AUTONOMOUS: Final = 6000
"""The same for an agent that works on its own: its calls return whole pages and files. Measured with agents for research and for code: with
4,000 tokens, at a quarter of the history 4 % less of what questions need is found; with 10,000 no more, and 2 % more tokens are processed."""
QUOTE_TOKENS_OF_AUTONOMOUS_IN_FREE_ROOM: Final = 8000
"""The same if the room is free: no turns are set aside for the tokens beyond `QUOTE_TOKENS_OF_AUTONOMOUS`. Measured with agents for research
and for code: with 8,000 instead of 6,000 one to two more of a hundred questions are answered at a quarter of the history, with 12,000 no more."""
QUOTE_TOKENS_WITHOUT_SUBJECT: Final = 1_600
"""The same for a question that names no subject (*What now?*). Its quotes are standing wishes, about seventy of them; the
newest messages say more about what comes next."""
QUOTE_TOKENS_OF_REQUEST: Final = 1000
"""The same for a message that asks or instructs among other things (*Draft a mail to Sam about the boiler*). A trade: with 600, a tenth less is
found of what such a message needs at a quarter of a chat, and 3 % fewer tokens are processed in windows of 4,096 to 16,384."""
REQUEST_SHARE: Final = 0.2
"""Share of the worth of such a message's words that the best passage must have; else nothing is quoted for it. Most such messages ask about something
new. Nine in ten questions about chats have a better passage, and half of the instructions in them."""
MOST_QUOTES_OF_ROOM: Final = 0.6
"""Share of the free room that these quotes may have. It counts in a small window."""
MOST_QUOTES_OF_FOLDED: Final = 1 / 3
"""Share of the folded part that these quotes may have. Quotes of more of it cost more than they find."""
MOST_REREAD: Final = 1.0
"""Tokens that may be processed again for each token that quotes gain. The turns after those set aside are no longer in the prompt
cache. If they have more tokens than this allows, nothing is set aside."""
MOST_REREAD_WITH_CALLS: Final = 0.5
"""The same in an agent's conversation. After the first call the question has no quotes: the turns come back, and the turns
after them are processed a second time."""
QUESTION_CHARACTERS: Final = 4000
"""Characters at the end of a question that are used for the search."""

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

LONG_HISTORY: Final = 4
"""Times the free room. Of a longer folded part a digest says so little that questions are answered from quotes. Measured
with 135,000 tokens with calls: without quotes a tenth of what is asked is found, with them eight tenths."""


def with_room_for_quotes(source: Source, layout: Layout) -> Layout:
    """Return the layout with the oldest kept turns set aside, if the current question would get too few quotes.

    The turn before the question stays (in an agent's conversation only its end), and everything from the first media on. The
    boundary moves in steps, so that the next question's request begins like this one.
    """
    first, units = layout.cut.first_kept, layout.units
    wanted = quote_tokens_for_question(source, layout)
    if not wanted:
        return layout
    sums = _kept_sums(layout)
    missing = wanted - (layout.room.free - layout.cut.digest_tokens - sums[-1])
    if missing <= 0:
        return layout
    step = max(wanted // 2, 1)
    boundary = min(first + bisect_left(sums, -(-missing // step) * step), len(units) - 1)
    reread = sums[-1] - sums[min(boundary - first, len(sums) - 1)]
    if reread > _most_reread(layout) * missing:
        return layout
    if layout.has_agent:
        return replace(layout, set_aside=_steps_before(source, layout, boundary))
    folded = set(layout.folded)
    kept = [(unit.turn, index) for unit in units for index in unit.indices if index not in folded]
    turns_with_media = [turn for turn, index in kept if _has_media(source, index)]
    first_turn = min([units[boundary].turn, units[-1].turn - 1, *turns_with_media])
    return replace(layout, set_aside=tuple(index for turn, index in kept if turn < first_turn))


def _most_reread(layout: Layout) -> float:
    """Return the tokens that may be processed again for each token that quotes gain. The turns of an agent that works on its own are
    long, and few of its requests are questions."""
    return MOST_REREAD_WITH_CALLS if layout.has_agent and not layout.autonomous else MOST_REREAD


def _steps_before(source: Source, layout: Layout, boundary: int) -> tuple[int, ...]:
    """Return the messages of the kept units before a boundary, up to the first media. Turns with calls are long, so one may be set
    aside in part: its user messages stay, and its last step before the question, the report."""
    units, folded = layout.units, set(layout.folded)
    question = next(position for position in range(len(units) - 1, -1, -1) if units[position].step < 0)
    end = min(boundary, question - 1)
    kept = [(position, index) for position in range(end) for index in units[position].indices if index not in folded]
    end = next((position for position, index in kept if _has_media(source, index)), end)
    current = units[end].turn
    return tuple(
        index
        for position, index in kept
        if position < end and (units[position].step >= 0 or units[position].turn != current)
    )


def _has_media(source: Source, index: int) -> bool:
    """Return whether a message has an image, a file or the like."""
    return any(True for _ in media_parts(source.messages[index]))


def quote_tokens_for_question(source: Source, layout: Layout) -> int:
    """Return the tokens of quotes for which kept turns are set aside; 0 for a message that asks nothing."""
    query = _searched_question(source, layout)
    if not query:
        return 0
    answer_is_folded = layout.ends_with_question and is_long(layout) and is_question(query)
    return _quote_tokens(layout, query) if answer_is_folded or is_about_conversation(layout, query) else 0


def quote_tokens_before_digest(source: Source, layout: Layout) -> int:
    """Return the tokens of quotes that a digest leaves free although it may take the whole room: those for a question about the
    conversation. What a task needs next is seldom named by its words."""
    query = _searched_question(source, layout)
    return _quote_tokens(layout, query) if query and is_about_conversation(layout, query) else 0


def _searched_question(source: Source, layout: Layout) -> str:
    """Return the text of the current question if old messages are searched for it. Return an empty text if nothing is folded or
    asked, and where no quotes are wanted."""
    if not (layout.cut.first_kept and layout.question and source.policy.recall_share and not source.rung.newest_only):
        return ""
    query = question_text(source, layout.question)
    return query if asked_in(query) else ""


def _quote_tokens(layout: Layout, query: str) -> int:
    """Return the most tokens of quotes for a question, within its shares of the free room and of the folded part."""
    free = layout.room.free
    return int(
        min(most_quotes(layout, query), MOST_QUOTES_OF_ROOM * free, MOST_QUOTES_OF_FOLDED * _folded_tokens(layout))
    )


def is_about_conversation(layout: Layout, query: str) -> bool:
    """Return whether the current question is likely about what was said before.

    In a chat it is, also after calls that look something up for the answer. In an agent's conversation a new task has
    the form of a question, too: there only a question for information is, before any call. An agent that works on its own is
    asked about its work in any form (*root cause of the double booking?*).
    """
    if not layout.has_agent:
        return True
    return layout.ends_with_question and (asks_for_information(query) or (layout.autonomous and is_question(query)))


def most_quotes(layout: Layout, query: str) -> int:
    """Return the most tokens of quotes for a question of a chat."""
    if not is_question(query):
        return QUOTE_TOKENS_OF_REQUEST
    if not names_a_subject(query):
        return QUOTE_TOKENS_WITHOUT_SUBJECT
    if is_long(layout):
        return QUOTE_TOKENS_OF_LONG_HISTORY
    return QUOTE_TOKENS_OF_AUTONOMOUS if layout.autonomous else QUOTE_TOKENS


def most_quotes_in_free_room(layout: Layout, query: str) -> int:
    """Return the most tokens of quotes for a question in room that is free, without setting more turns aside."""
    most = most_quotes(layout, query)
    if layout.autonomous and is_question(query) and names_a_subject(query):
        return max(most, QUOTE_TOKENS_OF_AUTONOMOUS_IN_FREE_ROOM)
    return most


def asked_in(text: str) -> str:
    """Return what a message asks: all of a question, else the sentences that ask or instruct, if they name a subject."""
    if is_question(text):
        return text
    request = request_in(text)
    return request if request and names_a_subject(request) else ""


def question_text(source: Source, indices: tuple[int, ...]) -> str:
    """Return the end of what the user says in a question's last message: what is asked, without pasted documents."""
    return own_words(head_and_tail(text_of(source.messages[indices[-1]])))[-QUESTION_CHARACTERS:]


def is_long(layout: Layout) -> bool:
    """Return whether the folded part is many times the room: then only quotes have what a question asks for."""
    return _folded_tokens(layout) > LONG_HISTORY * layout.room.free


def digest_beside_quotes(source: Source, layout: Layout, digest: int, left: int) -> int:
    """Return the tokens of a digest that shares ``left`` tokens with quotes: ``digest``, or fewer if the question is about the part
    that is only skimmed, for which the quotes need the room."""
    if left - digest >= QUOTES_BEFORE_DIGEST or not (layout.ends_with_question and is_long(layout)):
        return digest
    query = _searched_question(source, layout)
    skimmed = skimmed_messages(source.messages, layout.folded, FULLY_READ_CHARACTERS) if query else 0
    if not skimmed or not _is_about(source, query, frozenset(layout.folded[:skimmed]), frozenset(layout.question)):
        return digest
    return max(min(digest, left - QUOTES_BEFORE_DIGEST), int(digest * SHORTENED_DIGEST_SHARE))


def _is_about(source: Source, query: str, part: frozenset[int], question: frozenset[int]) -> bool:
    """Return whether a question is about a part of the conversation: nearly all the most relevant messages are in it."""
    if not names_a_subject(query):
        return False
    not_searched = question.union(source.structure.pinned)
    indices = [index for index in range(len(source.messages)) if index not in not_searched]
    texts = [text_of(source.messages[index]) for index in indices]
    roles = [str(source.messages[index].get("role")) for index in indices]
    dialogue = speakers.dialogue_of(zip(reversed(roles), reversed(texts), strict=True))
    factors = speakers.answer_factors(query, dialogue)
    best = lookup.most_relevant(texts, roles, query, (), factors)[:TOPIC_MESSAGES]
    return sum([indices[position] in part for position in best]) >= OLD_TOPIC_SHARE * len(best)


def fits_beside_set_aside(layout: Layout, quoted: int) -> bool:
    """Return whether turns are set aside although quotes of so many tokens fitted beside them when the question was asked."""
    free = layout.room.free - layout.cut.digest_tokens - _kept_sums(layout)[-1]
    return bool(layout.set_aside) and quoted <= free


def _folded_tokens(layout: Layout) -> int:
    """Return the tokens of the folded part."""
    return sum([unit.cost for unit in layout.units[: layout.cut.first_kept]])


def _kept_sums(layout: Layout) -> list[int]:
    """Return the running sums of the kept units' costs, up to the current question: the steps of its turn do not change what is
    set aside."""
    cut, first, units = layout.cut, layout.cut.first_kept, layout.units
    end = len(units)
    while end and units[end - 1].step >= 0:
        end -= 1
    return [0, *accumulate([_kept_cost(cut, position, unit) for position, unit in enumerate(units[first:end], first)])]


def _kept_cost(cut: Cut, position: int, unit: Unit) -> int:
    """Return the tokens of a kept unit in its form."""
    if position < cut.stubs_end:
        return unit.stubbed_cost
    return unit.trimmed_cost if position < cut.trims_end else unit.cost
