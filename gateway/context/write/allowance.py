"""The allowance of the current question: how many tokens of quotes it may get."""

from math import inf
from typing import Final, NamedTuple

from gateway.context.write.current_question import LEAST_ASKING, LIKELY_ASKING, SURE_ASKING, CurrentQuestion, Kind

MOST_SET_ASIDE_OF_FREE: Final = 0.6
"""Share of the free room: the most tokens of quotes for which turns are set aside. It counts in a small window."""
MOST_SET_ASIDE_OF_FOLDED: Final = 1 / 3
"""The same as a share of the folded part. Quotes of more of it cost more than they find."""
FACT_TOKENS: Final = 200
"""Tokens of calls and records that fill the rest of the quotes of a question. Measured with customer service in windows of 40 to 60 %: without this
limit 3 % more tokens are processed, and questions and later calls find the same."""


class Allowance(NamedTuple):
    """Limits of the quotes for a message."""

    set_aside_tokens: int = 0
    """The most tokens for which kept turns are set aside; 0: none are."""
    free_tokens: float = 0
    """The most tokens in room that is free; infinite: all of it."""
    fills: bool = False
    """Whether less relevant lines fill the rest of the tokens."""
    fact_tokens: float = FACT_TOKENS
    """The most tokens of calls and records among these lines that share no words with the question."""


NOTHING: Final = Allowance()
FOR_PERHAPS: Final = (
    (SURE_ASKING, Allowance(set_aside_tokens=1500, free_tokens=1500)),
    (LIKELY_ASKING, Allowance(set_aside_tokens=700, free_tokens=700)),
    (LEAST_ASKING, Allowance(set_aside_tokens=300, free_tokens=300)),
)
"""The limits of the quotes for a message that may ask, each behind the least points for it. If the message asks, a
hundred more tokens find ten of a hundred remarks after the first 100, and one after the first 800. If it does not ask, they are wasted."""
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
    """Return the limits for a question that is a new task of an agent, or that the agent is working on: none, unless only quotes have what
    is asked, or unless they cost only their own tokens."""
    if not question.layout.ends_with_question:
        return NOTHING
    if question.of_long_history:
        chosen = FOR_QUESTION_OF_LONG_HISTORY if question.names_subject else FOR_QUESTION_WITHOUT_SUBJECT
        return chosen._replace(free_tokens=inf, fact_tokens=inf)
    # The request begins unlike the one before it in any case.
    return NOTHING._replace(free_tokens=inf, fills=True, fact_tokens=inf) if question.layout.prefix_breaks else NOTHING


def set_aside_tokens(question: CurrentQuestion) -> int:
    """Return the tokens of quotes for which kept turns are set aside: those of the allowance, but at most a share of the free room and a share of
    the folded part."""
    most = allowance(question).set_aside_tokens
    if not most:
        return 0
    free, folded = question.layout.room.free, question.folded_tokens
    return int(min(most, MOST_SET_ASIDE_OF_FREE * free, MOST_SET_ASIDE_OF_FOLDED * folded))


def tokens_before_digest(question: CurrentQuestion) -> int:
    """Return the tokens of quotes that a digest leaves free although it may take the whole room: those for a question about the
    conversation. What a task needs next is seldom named by its words."""
    return set_aside_tokens(question) if question.about_conversation else 0
