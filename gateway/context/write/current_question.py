"""The current question of a layout: what the last user message asks.

There are two ways to tell whether a message asks for something that was said (`CurrentQuestion.judged_by_form`):

- In a chat, its words tell: any message may ask for it, and `choose.asking` returns how surely it does.
- In an agent's conversation, only its form tells: most questions are new tasks, in any words.
"""

from enum import Enum
from functools import cached_property
from math import inf
from typing import Final

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
from gateway.context.write.readings import words_of_pinned

QUESTION_CHARACTERS: Final = 4000
"""Characters at the end of a question that are used for the search."""
LEAST_ASKING: Final = -1.8
"""The least points of a message that gets quotes. Points are a logarithm of odds: at this number one message in seven asks for what was said."""
LIKELY_ASKING: Final = -0.8
"""The least points of a message that gets more quotes: three in ten ask."""
SURE_ASKING: Final = 0.2
"""The least points of a message that gets most quotes: more than half of these messages ask. If it has the form of a question, it counts as one."""
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
    asking_part: AskingPart | None = None
    """The part of the text that asks for something that was said, and how surely. None if it is `judged_by_form`, or if there is no text."""

    @property
    def points(self) -> float:
        """How surely it asks for something that was said; minus infinity without an `asking_part`."""
        return self.asking_part.points if self.asking_part is not None else -inf

    @cached_property
    def kind(self) -> Kind:
        if self._has_form_of_question and (self.asking_part is None or self.points >= SURE_ASKING):
            return Kind.QUESTION
        return Kind.PERHAPS if self.points >= LEAST_ASKING else Kind.STATEMENT

    @cached_property
    def judged_by_form(self) -> bool:
        """Whether only the form of the message tells what it asks, and not its words.

        This holds for a message without a subject: it asks how to go on, or nothing. It also holds in an agent's conversation, where a question or an
        instruction may be a new task, in any words. The exception is an agent that works on its own: it is asked about its work in other
        forms, too (*root cause of the double booking*).
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
        return self.text if self.asking_part is None else self.asking_part.text

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
        if not self.layout.has_agent or self.asking_part is not None:
            return True
        return self.layout.ends_with_question and (self.layout.autonomous or asks_for_information(self.text))

    @property
    def is_searched(self) -> bool:
        """Whether the folded part is searched for it."""
        return self.kind is not Kind.STATEMENT

    @cached_property
    def folded_tokens(self) -> int:
        """The tokens of the folded part."""
        return sum([unit.cost for unit in self.layout.units[: self.layout.cut.first_kept]])

    @cached_property
    def of_long_history(self) -> bool:
        """Whether the folded part is many times the room: then only quotes have what a question asks for."""
        return self.folded_tokens > LONG_HISTORY * self.layout.room.free


def current_question_of(source: Source, layout: Layout) -> CurrentQuestion:
    """Return the current question of a layout. Its text is empty if there is none, or no quotes are wanted."""
    wants_quotes = layout.question and source.policy.recall_share and not source.rung_limits.newest_only
    question = CurrentQuestion(question_text(source, layout.question) if wants_quotes else "", layout)
    if not question.text or question.judged_by_form:
        return question
    pool, pinned_words = pool_of(source, layout.folded), words_of_pinned(source)
    key = ("asking part", question.text, pinned_words)
    return replace(
        question, asking_part=pool.choices.get_or_make(key, lambda: surest_part(pool, question.text, pinned_words))
    )


def question_text(source: Source, indices: tuple[int, ...]) -> str:
    """Return the end of what the user says in a question's last message: what is asked, without pasted documents."""
    return spoken(said_in(source.messages[indices[-1]]))[-QUESTION_CHARACTERS:]
