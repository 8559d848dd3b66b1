"""The quotes for the current question, and how many tokens they may have."""

from collections.abc import Mapping
from typing import Final

from gateway.context import frames
from gateway.context.read.instructions import without_frame
from gateway.context.write.allowance import allowance, set_aside_tokens
from gateway.context.write.current_question import CurrentQuestion, Kind
from gateway.context.write.search import NO_QUOTES, Query, Quotes, Search
from gateway.wire.message import Message

LEAST_SEARCH_TOKENS: Final = 24
"""Tokens. Quotes of fewer tokens say less than they cost, so nothing is searched for them."""


def quotes_of(search: Search, question: CurrentQuestion, kept: Mapping[int, Message], left: int) -> Quotes:
    """Return the quotes for the current question, in ``left`` tokens.

    They have lines of the part that was folded when the question was sent. They go with the next question, which gets its own.

    1. A question with an allowance: its quotes may fill the free room.
    2. A message with an allowance that may ask: it gets what is relevant to it.
    3. A question that has no allowance, because its turn has calls already: if the folded part is so long that the digest says little
       of it, it gets the tokens for quotes.
    """
    layout, source, allowed = search.layout, search.source, allowance(question)
    if not layout.question or source.rung_limits.newest_only or not source.policy.recall_share:
        return NO_QUOTES
    free = left - frames.JOINT_TOKENS
    if allowed.free_tokens:
        tokens = _beside_steps(search, kept, free, question)
        query = Query(
            without_frame(question.search_text),
            tokens,
            of_long_history=question.of_long_history,
            fact_tokens=allowed.fact_tokens,
        )
        if tokens < LEAST_SEARCH_TOKENS:
            return NO_QUOTES
        return search.find_and_fill(query, kept) if allowed.fills else search.find(query)
    if question.kind is not Kind.QUESTION or not question.of_long_history:
        return NO_QUOTES
    tokens = min(layout.room.quote_tokens, free)
    return search.find(Query(question.text, tokens)) if tokens >= LEAST_SEARCH_TOKENS else NO_QUOTES


def _beside_steps(search: Search, kept: Mapping[int, Message], free: int, question: CurrentQuestion) -> int:
    """Return the tokens of the current question's quotes, at most those that it is allowed.

    That is the room that was free when the question was asked. When the steps of its turn take some of it, the quotes shrink by a
    quarter at a time. So they stay the same in most requests of the turn.
    """
    layout, cost = search.layout, search.source.cost
    steps = 0 if layout.ends_with_question else sum([cost(kept[at]) for at in kept if at > layout.question[-1]])
    tokens = int(min(free + steps, allowance(question).free_tokens))
    if tokens > free:
        tokens = min(tokens, set_aside_tokens(question))
    while tokens > max(free, 0):
        tokens = tokens * 3 // 4
    return tokens
