"""The current question of a layout, and the quotes that it gets.

Whether a message asks for something that was said is told in one of two ways (`CurrentQuestion.is_told_by_form`):

- In a chat by its words: any message may ask for it, and `choose.asking` says how surely it does.
- In an agent's conversation by its form alone: most questions are new tasks, in any words.
"""

from enum import Enum
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.context.choose.asking import AskingPart, surest_part
from gateway.context.cut.layout import Layout
from gateway.context.cut.source import Source
from gateway.context.read.as_said import said_in
from gateway.context.read.instructions import is_errand, is_unmarked_request
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
LEAST_ASKING: Final = -1.8
"""Points of a message from which it gets quotes: a logarithm of odds. One in seven of the messages with just so many asks for what was said."""
LIKELY_ASKING: Final = -0.8
"""Points of a message from which it gets more quotes: three in ten ask."""
SURE_ASKING: Final = 0.2
"""Points of a message from which it gets most: more of these messages ask than do not. If it has the form of a question, it counts as one."""
FACT_TOKENS: Final = 200
"""Tokens of calls and records that fill the rest of the quotes of a question. Measured with customer service in windows of 40 to 60 %: without this
limit 3 % more tokens are processed, and questions and later calls find the same."""
LONG_HISTORY: Final = 4
"""Times the free room. Of a longer folded part a digest says so little that questions are answered from quotes. Measured
with 135,000 tokens with calls: without quotes a tenth of what is asked is found, with them eight tenths."""


class Kind(Enum):
    """What a message does."""

    QUESTION = "question"
    """It has the form of a question and, where its words tell what it asks, at least `SURE_ASKING` points."""
    PERHAPS = "perhaps"
    """Any other message with at least `LEAST_ASKING` points."""
    STATEMENT = "statement"
    """Any other message."""


class CurrentQuestion(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """The question of a layout, which is its last user message, and what that asks."""

    text: str
    """The user's own words, at most `QUESTION_CHARACTERS`. Empty if there is no question, or no quotes are wanted: then it is a statement, and
    gets none."""
    layout: Layout
    part: AskingPart | None = None
    """The part that asks for something that was said, and how surely; None where the form alone tells what the message asks (`is_told_by_form`)."""

    @property
    def points(self) -> float:
        """How surely it asks for something that was said; minus infinity where its form alone tells what it asks."""
        return self.part.points if self.part is not None else -inf

    @cached_property
    def kind(self) -> Kind:
        if self._has_form_of_question and (self.part is None or self.points >= SURE_ASKING):
            return Kind.QUESTION
        return Kind.PERHAPS if self.points >= LEAST_ASKING else Kind.STATEMENT

    @cached_property
    def is_told_by_form(self) -> bool:
        """Whether the form of the message tells what it asks, and not its words.

        A message without a subject asks how to go on, or nothing. In an agent's conversation a question or an instruction may be a new task, in any words. But
        an agent that works on its own is asked about its work in other forms, too (*root cause of the double booking*).
        """
        if not self.names_subject:
            return True
        layout = self.layout
        asks_about_work = layout.autonomous and layout.ends_with_question and is_unmarked_request(self.text)
        return layout.has_agent and (self._has_form_of_question or not asks_about_work)

    @cached_property
    def _has_form_of_question(self) -> bool:
        return is_question(self.text) and (self.layout.has_agent or not is_errand(self.text))

    @property
    def search_text(self) -> str:
        """The words that are searched for."""
        return self.text if self.part is None else self.part.text

    @cached_property
    def names_subject(self) -> bool:
        """Whether it says what it is about. *What now?* does not."""
        return names_a_subject(self.text)

    @cached_property
    def about_conversation(self) -> bool:
        """Whether it is likely about what was said before.

        In a chat it is, also after calls that look something up for the answer. In an agent's conversation only a question for information is, before any
        call. An agent that works on its own is asked about its work in any form.
        """
        if not self.layout.has_agent or self.part is not None:
            return True
        return self.layout.ends_with_question and (self.layout.autonomous or asks_for_information(self.text))

    @property
    def is_searched(self) -> bool:
        """Whether the folded part is searched for it."""
        return self.kind is not Kind.STATEMENT

    @cached_property
    def of_long_history(self) -> bool:
        """Whether the folded part is many times the room: then only quotes have what a question asks for."""
        return _folded_tokens(self.layout) > LONG_HISTORY * self.layout.room.free


class Allowance(NamedTuple):
    """Limits of the quotes for a message."""

    set_aside_tokens: int = 0
    """Most tokens for which kept turns are set aside; 0: none are."""
    free_tokens: float = 0
    """Most tokens in room that is free; infinite: all of it."""
    fills: bool = False
    """Whether less relevant lines fill the rest of the tokens."""
    fact_tokens: float = FACT_TOKENS
    """Most tokens of calls and records among these lines that share no words with the question."""


NOTHING: Final = Allowance()
FOR_PERHAPS: Final = (
    (SURE_ASKING, Allowance(set_aside_tokens=1500, free_tokens=1500)),
    (LIKELY_ASKING, Allowance(set_aside_tokens=700, free_tokens=700)),
    (LEAST_ASKING, Allowance(set_aside_tokens=300, free_tokens=300)),
)
"""The limits of the quotes for a message that may ask, from so many points on. A trade: what another hundred tokens find falls from ten of a hundred remarks (behind
100 tokens) to one (behind 800), if the message asks. They pay as long as that is worth the quotes of the others with as many points."""
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


def current_question_of(source: Source, layout: Layout) -> CurrentQuestion:
    """Return the current question of a layout. Its text is empty if there is none, or no quotes are wanted."""
    wants_quotes = layout.question and source.policy.recall_share and not source.rung_limits.newest_only
    question = CurrentQuestion(question_text(source, layout.question) if wants_quotes else "", layout)
    if not question.text or question.is_told_by_form:
        return question
    pool, pinned_words = pool_of(source, layout.folded), words_of_pinned(source)
    key = ("asking part", question.text, pinned_words)
    return replace(question, part=pool.choices.get_or_make(key, lambda: surest_part(pool, question.text, pinned_words)))


def question_text(source: Source, indices: tuple[int, ...]) -> str:
    """Return the end of what the user says in a question's last message: what is asked, without pasted documents."""
    return spoken(said_in(source.messages[indices[-1]]))[-QUESTION_CHARACTERS:]


def allowance(question: CurrentQuestion) -> Allowance:
    """Return the limits of the quotes for a message."""
    if question.kind is Kind.STATEMENT:
        return NOTHING
    if question.kind is Kind.PERHAPS:
        return next(allowed for least, allowed in FOR_PERHAPS if question.points >= least)
    return _for_question_about_conversation(question) if question.about_conversation else _for_other_question(question)


def _for_question_about_conversation(question: CurrentQuestion) -> Allowance:
    if not question.names_subject:
        return FOR_QUESTION_WITHOUT_SUBJECT
    if question.of_long_history:
        return FOR_QUESTION_OF_LONG_HISTORY
    return FOR_QUESTION_ABOUT_WORK if question.layout.autonomous else FOR_QUESTION


def _for_other_question(question: CurrentQuestion) -> Allowance:
    """Return the limits for a question that is a new task of an agent, or that the agent is working on: quotes stay for many requests,
    so there are none unless only they have what is asked, or unless they cost only their own tokens."""
    if not question.layout.ends_with_question:
        return NOTHING
    if question.of_long_history:
        chosen = FOR_QUESTION_OF_LONG_HISTORY if question.names_subject else FOR_QUESTION_WITHOUT_SUBJECT
        return chosen._replace(free_tokens=inf, fact_tokens=inf)
    # The request begins unlike the one before it in any case.
    return NOTHING._replace(free_tokens=inf, fills=True, fact_tokens=inf) if question.layout.prefix_breaks else NOTHING


def set_aside_tokens(question: CurrentQuestion) -> int:
    """Return the tokens of quotes for which kept turns are set aside, at most their shares of the free room and of the folded part."""
    most = allowance(question).set_aside_tokens
    free, folded = question.layout.room.free, _folded_tokens(question.layout)
    return int(min(most, MOST_SET_ASIDE_OF_FREE * free, MOST_SET_ASIDE_OF_FOLDED * folded)) if most else 0


def tokens_before_digest(question: CurrentQuestion) -> int:
    """Return the tokens of quotes that a digest leaves free although it may take the whole room: those for a question about the
    conversation. What a task needs next is seldom named by its words."""
    return set_aside_tokens(question) if question.about_conversation else 0


def _folded_tokens(layout: Layout) -> int:
    """Return the tokens of the folded part."""
    return sum([unit.cost for unit in layout.units[: layout.cut.first_kept]])
