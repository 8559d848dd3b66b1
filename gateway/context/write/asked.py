"""The current question of a layout, and the quotes that it gets."""

from enum import Enum
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.context.choose.asking import asking, asking_by_words
from gateway.context.choose.need import need
from gateway.context.cut.layout import Layout
from gateway.context.cut.source import Source
from gateway.context.read.as_said import said_in
from gateway.context.read.instructions import is_errand, is_unmarked_request, request_in
from gateway.context.read.questions import asks_for_information, is_question
from gateway.context.read.spoken import spoken
from gateway.context.read.subject import names_a_subject
from gateway.context.write.pools import pool_of
from gateway.context.write.search import words_of_pinned

MOST_SET_ASIDE_OF_FREE: Final = 0.6
"""Share of the free room: the most tokens of quotes for which turns are set aside. It counts in a small window."""
MOST_SET_ASIDE_OF_FOLDED: Final = 1 / 3
"""The same as a share of the folded part. Quotes of more of it cost more than they find."""
QUESTION_CHARACTERS: Final = 4000
"""Characters at the end of a question that are used for the search."""
LEAST_NEED: Final = 0.8
"""Points of a request from which it gets quotes (see `choose.need`). Chosen on six chats: 35 of 36 instructions that need the folded part have
as many, and a third of those that do not."""
LEAST_ASKING: Final = -1.75
"""Points of any other message from which it gets a few quotes (see `choose.asking`). A trade: with -2 one more of a hundred questions is found at a
tenth of everyday chats, and chats cost 2 % more by llama.cpp's rule."""
SURE_ASKING: Final = 0.0
"""Points of such a message from which it gets more than a request with a mark: as many of these messages ask as do not."""
FACT_TOKENS: Final = 200
"""Tokens of calls and records that fill the rest of the quotes of a question. Measured with customer service in windows of 40 to 60 %: without this
limit 3 % more tokens are processed, and questions and later calls find the same."""
LONG_HISTORY: Final = 4
"""Times the free room. Of a longer folded part a digest says so little that questions are answered from quotes. Measured
with 135,000 tokens with calls: without quotes a tenth of what is asked is found, with them eight tenths."""


class Kind(Enum):
    """What a message does."""

    QUESTION = "question"
    """It is mainly a question."""
    REQUEST = "request"
    """It asks or instructs among other things, and names a subject: *Draft a mail to Sam about the boiler*."""
    STATEMENT = "statement"
    """Any other message."""


class Needs(Enum):
    """How surely a message that is no question needs what is folded."""

    NOTHING = "nothing"
    PERHAPS = "perhaps"
    """It has no mark, and sounds like a request for what was said."""
    PROBABLY = "probably"
    """It has a mark or a verb of instruction, and its subject was spoken of (see `choose.need`)."""
    SURELY = "surely"
    """It has no mark, and more likely asks for what was said than not."""


class Ask(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """What the last user message of a layout asks."""

    text: str
    """The user's own words, at most `QUESTION_CHARACTERS`. Empty if there is no question, or no quotes are wanted: then it is a statement, and
    gets none."""
    layout: Layout
    needs: Needs = Needs.NOTHING
    """How surely it needs the folded part. It is not found out for a question."""

    @cached_property
    def kind(self) -> Kind:
        if is_question(self.text) and (self.layout.has_agent or not is_errand(self.text)):
            return Kind.QUESTION
        if self.is_marked and names_a_subject(self.request):
            return Kind.REQUEST
        return Kind.STATEMENT if self.needs is Needs.NOTHING else Kind.REQUEST

    @cached_property
    def is_marked(self) -> bool:
        """Whether it asks with a question mark, or instructs with a verb."""
        return not is_unmarked_request(self.text)

    @cached_property
    def request(self) -> str:
        """The sentences that ask or instruct; empty if none seems to."""
        return request_in(self.text)

    @property
    def searched(self) -> str:
        """What is searched for: the sentences that ask or instruct, else all of the message."""
        return self.request or self.text

    @cached_property
    def names_subject(self) -> bool:
        """Whether it says what it is about. *What now?* does not."""
        return names_a_subject(self.text)

    @cached_property
    def about_conversation(self) -> bool:
        """Whether it is likely about what was said before.

        In a chat it is, also after calls that look something up for the answer. In an agent's conversation a new task has
        the form of a question, too: there only a question for information is, before any call. An agent that works on its own is
        asked about its work in any form (*root cause of the double booking?*).
        """
        layout = self.layout
        if not layout.has_agent:
            return True
        asks_about_work = layout.autonomous and (
            self.kind is Kind.QUESTION or (self.kind is Kind.REQUEST and not self.is_marked)
        )
        return layout.ends_with_question and (asks_for_information(self.text) or asks_about_work)

    @property
    def is_searched(self) -> bool:
        """Whether the folded part is searched for more than a few quotes: for a question, and for a request that may need it."""
        return self.kind is Kind.QUESTION or self.needs is not Needs.NOTHING

    @property
    def gets_all_or_nothing(self) -> bool:
        """Whether it does not get the few quotes of other messages: a request in a chat needs what was said, or it asks for something new."""
        return self.kind is Kind.REQUEST and not self.layout.has_agent

    @cached_property
    def of_long_history(self) -> bool:
        """Whether the folded part is many times the room: then only quotes have what a question asks for."""
        return _folded_tokens(self.layout) > LONG_HISTORY * self.layout.room.free


class Allowance(NamedTuple):
    """Limits of the quotes for a message, besides the few that any message may have (`quotes_of`)."""

    set_aside_tokens: int = 0
    """Most tokens for which kept turns are set aside; 0: none are."""
    free_tokens: float = 0
    """Most tokens in room that is free; infinite: all of it."""
    fills: bool = False
    """Whether less relevant lines fill the rest of the tokens."""
    fact_tokens: float = FACT_TOKENS
    """Most tokens of calls and records among these lines that share no words with the question."""


NOTHING: Final = Allowance()
FOR_REQUEST: Final = Allowance(set_aside_tokens=1000, free_tokens=1000)
"""A trade: with 600 tokens, a tenth less is found of what a request needs at a quarter of a chat, and 3 % fewer tokens are processed in
windows of 4,096 to 16,384. With 2,000 tokens for requests of 2 points and more, one to five points more are found at a quarter, for a
fifth more tokens of quotes."""
FOR_PERHAPS_ASKING: Final = Allowance(set_aside_tokens=400, free_tokens=400)
"""A trade: chats cost 0.4 % more for each 100 tokens by OpenAI's rule, 1.2 % more by llama.cpp's. With 300 tokens four to seven points less are found at a
tenth of a chat, with 500 hardly more."""
FOR_SURELY_ASKING: Final = Allowance(set_aside_tokens=2000, free_tokens=2000)
"""A trade: with 1,000 tokens one to two points less are found at a quarter of everyday chats and of chats in applications, and chats cost 3 % less by
llama.cpp's rule."""
FOR_QUESTION: Final = Allowance(set_aside_tokens=4000, free_tokens=4000, fills=True)
"""Chosen: the best 2,600 tokens of quotes have four in five of the remarks that questions about natural chats need."""
FOR_QUESTION_WITHOUT_SUBJECT: Final = Allowance(set_aside_tokens=1600, free_tokens=1600, fills=True)
"""Such a question gets standing wishes, about seventy of them. The newest messages say more about what comes next."""
FOR_QUESTION_ABOUT_WORK: Final = Allowance(set_aside_tokens=6000, free_tokens=8000, fills=True)
"""For a question to an agent that works on its own, whose calls return whole pages and files. Measured with agents for research and for code:
with 4,000 tokens, at a quarter of the history 4 % less of what questions need is found; with 10,000 no more, and 2 % more tokens are
processed. With 8,000 instead of 6,000 in free room one to two more of a hundred questions are answered, with 12,000 no more."""
FOR_QUESTION_OF_LONG_HISTORY: Final = Allowance(set_aside_tokens=10_000, free_tokens=inf, fills=True, fact_tokens=inf)
"""Measured with 135,000 tokens in a room of 13,500: quotes of 10,000 tokens have 89 % of what is asked, quotes of 4,000 tokens 83 %; digest
and kept turns have little of it."""


FOR_REQUESTS: Final = {
    Needs.NOTHING: NOTHING,
    Needs.PERHAPS: FOR_PERHAPS_ASKING,
    Needs.PROBABLY: FOR_REQUEST,
    Needs.SURELY: FOR_SURELY_ASKING,
}
"""The limits of the quotes for a message that is no question, by how surely it needs what is folded."""


def ask_of(source: Source, layout: Layout) -> Ask:
    """Return what the current question asks; an empty text if there is none, or no quotes are wanted."""
    wants_quotes = layout.question and source.policy.recall_share and not source.rung.newest_only
    ask = Ask(question_text(source, layout.question) if wants_quotes else "", layout)
    return replace(ask, needs=_needs(source, ask))


def _needs(source: Source, ask: Ask) -> Needs:
    """Return how surely a message needs what is folded, if it is no question.

    A long message needs it *perhaps* if the clauses with question words do, by both measures.
    """
    if not ask.text or ask.kind is Kind.QUESTION or not names_a_subject(ask.searched):
        return Needs.NOTHING
    if ask.is_marked:
        return Needs.PROBABLY if ask.about_conversation and _need(source, ask) >= LEAST_NEED else Needs.NOTHING
    if ask.layout.has_agent and not (ask.layout.autonomous and ask.layout.ends_with_question):
        return Needs.NOTHING
    points = _asking(source, ask, ask.text)
    if points >= LEAST_ASKING:
        return Needs.SURELY if points >= SURE_ASKING else Needs.PERHAPS
    clauses_ask = ask.request and _asking(source, ask, ask.request) >= LEAST_ASKING
    return Needs.PERHAPS if clauses_ask and _need(source, ask) >= LEAST_NEED else Needs.NOTHING


def _need(source: Source, ask: Ask) -> float:
    """Return the points of a request by the subject that it names."""
    asked, pinned_words = ask.searched, words_of_pinned(source)
    pool = pool_of(source, ask.layout.folded)
    return pool.get_or_make(("need", asked, pinned_words), lambda: need(pool, asked, pinned_words))


def _asking(source: Source, ask: Ask, text: str) -> float:
    """Return the points of a text without a mark. Most texts have too few by their words alone, and the folded part need not be looked at."""
    most = asking_by_words(text)
    if most < LEAST_ASKING:
        return most
    pool = pool_of(source, ask.layout.folded)
    return pool.get_or_make(("asking", text), lambda: asking(pool, text))


def question_text(source: Source, indices: tuple[int, ...]) -> str:
    """Return the end of what the user says in a question's last message: what is asked, without pasted documents."""
    return spoken(said_in(source.messages[indices[-1]]))[-QUESTION_CHARACTERS:]


def allowance(ask: Ask) -> Allowance:
    """Return the limits of the quotes for a message. Those that any message may have are not in them."""
    if ask.kind is Kind.STATEMENT:
        return NOTHING
    if ask.kind is Kind.REQUEST:
        return FOR_REQUESTS[ask.needs] if ask.about_conversation else NOTHING
    return _for_question_about_conversation(ask) if ask.about_conversation else _for_other_question(ask)


def _for_question_about_conversation(ask: Ask) -> Allowance:
    if not ask.names_subject:
        return FOR_QUESTION_WITHOUT_SUBJECT
    if ask.of_long_history:
        return FOR_QUESTION_OF_LONG_HISTORY
    return FOR_QUESTION_ABOUT_WORK if ask.layout.autonomous else FOR_QUESTION


def _for_other_question(ask: Ask) -> Allowance:
    """Return the limits for a question that is a new task of an agent, or that the agent is working on: quotes stay for many requests,
    so there are none unless only they have what is asked, or unless they cost only their own tokens."""
    if not ask.layout.ends_with_question:
        return NOTHING
    if ask.of_long_history:
        chosen = FOR_QUESTION_OF_LONG_HISTORY if ask.names_subject else FOR_QUESTION_WITHOUT_SUBJECT
        return chosen._replace(free_tokens=inf, fact_tokens=inf)
    # The request begins unlike the one before it in any case.
    return NOTHING._replace(free_tokens=inf, fills=True, fact_tokens=inf) if ask.layout.prefix_breaks else NOTHING


def set_aside_tokens(ask: Ask) -> int:
    """Return the tokens of quotes for which kept turns are set aside, at most their shares of the free room and of the folded part."""
    most = allowance(ask).set_aside_tokens
    free, folded = ask.layout.room.free, _folded_tokens(ask.layout)
    return int(min(most, MOST_SET_ASIDE_OF_FREE * free, MOST_SET_ASIDE_OF_FOLDED * folded)) if most else 0


def tokens_before_digest(ask: Ask) -> int:
    """Return the tokens of quotes that a digest leaves free although it may take the whole room: those for a question about the
    conversation. What a task needs next is seldom named by its words."""
    return set_aside_tokens(ask) if ask.about_conversation else 0


def _folded_tokens(layout: Layout) -> int:
    """Return the tokens of the folded part."""
    return sum([unit.cost for unit in layout.units[: layout.cut.first_kept]])
