"""The quotes for the questions since the cut, in their order, and how many tokens each question gets."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from gateway.context import frames
from gateway.context.cut.units import Cut
from gateway.context.read.instructions import without_frame
from gateway.context.read.questions import wants_to_know
from gateway.context.write.allowance import allowance, set_aside_tokens
from gateway.context.write.current_question import CurrentQuestion, Kind, question_text
from gateway.context.write.line_keys import LineKey
from gateway.context.write.search import NO_QUOTES, Query, Quotes, Search
from gateway.wire.message import Message

LEAST_SEARCH_TOKENS: Final = 24
"""Tokens. Quotes of fewer tokens say less than they cost, so nothing is searched for them."""
MOST_EARLIER_QUESTIONS: Final = 8
"""Questions of an agent's conversation since the cut, from the first on, whose quotes may stay. A new replica searches once for each of them."""


def quotes_of(search: Search, question: CurrentQuestion, kept: Mapping[int, Message], left: int) -> dict[int, Quotes]:
    """Return the quotes for the current question, in ``left`` tokens, and for earlier questions since the cut; by the
    index of the message that they follow.

    Each has lines of the part that was folded when its question was sent. In an agent's conversation earlier quotes stay until the next cut,
    so that a request begins like the one before it. In a chat a question has so many that they are dropped with the next one.
    """
    layout, source = search.layout, search.source
    if not layout.questions or source.rung_limits.newest_only or not source.policy.recall_share:
        return {}
    may_stay = layout.has_agent and layout.cut_at_question.first_kept and not layout.set_aside
    earlier = _earlier_quotes(search, kept) if may_stay else {}
    current = _current_quotes(search, question, kept, earlier, left)
    if _tokens_of(earlier) + current.tokens > left:
        earlier = {}
    return {**earlier, layout.question[-1]: current} if current.lines else earlier


def _earlier_quotes(search: Search, kept: Mapping[int, Message]) -> dict[int, Quotes]:
    """Return the quotes that stay after earlier questions since the cut. A question that is folded has no quotes."""
    quotes: dict[int, Quotes] = {}
    searched = 0
    for indices, cut in search.layout.questions[:-1]:
        if searched == MOST_EARLIER_QUESTIONS:
            break
        if indices[-1] not in kept:
            continue
        text = question_text(search.source, indices)
        most = _tokens_kept_free(text, cut, _tokens_of(quotes))
        if most < LEAST_SEARCH_TOKENS:
            continue
        searched += 1
        layout = replace(search.layout, cut_at_question=cut)
        quoted = replace(search, layout=layout).find(Query(text, most, _lines_of(quotes)))
        if quoted.lines:
            quotes[indices[-1]] = quoted
    return quotes


def _current_quotes(
    search: Search, question: CurrentQuestion, kept: Mapping[int, Message], earlier: Mapping[int, Quotes], left: int
) -> Quotes:
    """Return the quotes for the current question. It shares ``left`` tokens with ``earlier`` quotes.

    1. A question with an allowance: its quotes may fill the free room.
    2. A message with an allowance that may ask: it gets what is relevant to it.
    3. Another question of an agent's conversation: its quotes are small, because they stay for many requests.
    """
    allowed, quoted_before, spent = allowance(question), _lines_of(earlier), _tokens_of(earlier)
    free = left - spent - frames.JOINT_TOKENS
    if allowed.free_tokens:
        tokens = _beside_steps(search, kept, free, question)
        query = Query(
            without_frame(question.search_text),
            tokens,
            quoted_before,
            of_long_history=question.of_long_history,
            fact_tokens=allowed.fact_tokens,
        )
        if tokens < LEAST_SEARCH_TOKENS:
            return NO_QUOTES
        return search.find_and_fill(query, kept) if allowed.fills else search.find(query)
    few = (
        _few_tokens(question, spent, free)
        if search.layout.has_agent and search.layout.cut_at_question.first_kept
        else 0
    )
    return search.find(Query(question.text, few, quoted_before)) if few >= LEAST_SEARCH_TOKENS else NO_QUOTES


def _few_tokens(question: CurrentQuestion, spent: int, free: int) -> int:
    """Return the tokens of quotes for a message without an allowance. A question gets more if the folded part is so long that the digest
    says little of it."""
    few = _tokens_kept_free(question.text, question.layout.cut_at_question, spent)
    if question.kind is Kind.QUESTION and question.of_long_history:
        return max(few, min(question.layout.room.quote_tokens - spent, free))
    return few


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


def _tokens_kept_free(text: str, cut: Cut, spent: int) -> int:
    """Return the part for a message of the tokens that the cut has kept free for quotes; quotes of earlier messages have ``spent`` so many.

    Only a question gets some: half of the rest, so that later questions get some.
    """
    return (cut.quote_tokens - spent) // 2 if wants_to_know(text) else 0


def _tokens_of(quotes: Mapping[int, Quotes]) -> int:
    return sum([each.tokens for each in quotes.values()])


def _lines_of(quotes: Mapping[int, Quotes]) -> frozenset[LineKey]:
    return frozenset[LineKey]().union(*[each.lines for each in quotes.values()])
