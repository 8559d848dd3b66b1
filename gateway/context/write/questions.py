"""The quotes behind the questions since the cut, the current one's last: how many tokens each gets."""

from collections.abc import Mapping
from typing import Final

from gateway.context.choose import lines
from gateway.context.choose.cues import is_question, wants_to_know
from gateway.context.choose.subject import names_a_subject
from gateway.context.choose.weights import QUOTED_UNASKED, STAYS, STAYS_WITH_CALLS
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.cut.replay import calls_often
from gateway.context.write.aside import is_about_talk, is_far, most_quotes, question_text, tokens_for_question
from gateway.context.write.search import AROUND, NO_QUOTE, LineKey, Quote, Search
from gateway.wire.message import Message

SMALLEST_NOTE: Final = 24
"""Tokens. A smaller digest or quote says less than it costs."""
LOOKED_AT: Final = 8
"""Questions since the cut, from the first on, whose quotes may stay: a new replica searches once for each of them."""


def quotes_of(  # noqa: PLR0917  # as a search has
    source: Source, layout: Layout, standing: Mapping[int, Message], pool: LinePool, taken: frozenset[int], left: int
) -> dict[int, Quote]:
    """Choose lines that bear on a question from the part folded when it was sent; earlier questions since the cut keep
    theirs.

    So a request begins like the one before it, as far as there is room: quotes beyond `STAYS` are dropped with the next
    question, where tools are called none before the next cut.
    """
    if not layout.asked or source.rung.newest_only or not source.policy.recall_share:
        return {}
    known = frozenset().union(
        *[lines.facts(source.messages[index], source.memory) for index in source.conversation.pinned]
    )
    search = Search(source, layout, pool, taken, known)
    quoted = _earlier(search, standing) if layout.quoted.first and not layout.aside else {}
    spent = sum([quote.size for quote in quoted.values()])
    current = _current(search, standing, spent, left - spent, _lines_of(quoted))
    if spent + current.size > left:
        quoted = {}
    if current.lines:
        quoted[layout.current[0]] = current
    return quoted


def _earlier(search: Search, standing: Mapping[int, Message]) -> dict[int, Quote]:
    """Return the quotes that stay behind earlier questions since the cut.

    A cut that has moved inside a turn has folded these too: their quotes are the current question's again.
    """
    layout = search.layout
    stays = layout.quoted.quotes * (STAYS_WITH_CALLS if calls_often(layout.units) else STAYS)
    quoted: dict[int, Quote] = {}
    spent = looked = 0
    for indices in [indices for indices in layout.asked[:-1] if indices[0] in standing]:
        if looked == LOOKED_AT or spent + SMALLEST_NOTE > stays:
            break
        query = question_text(search.source, indices)
        most = _share(query, layout, spent)
        if most < SMALLEST_NOTE:
            continue
        looked += 1
        quote = search.find(query, most, _lines_of(quoted))
        if quote.lines and spent + quote.size <= stays:
            quoted[indices[0]] = quote
            spent += quote.size
    return quoted


def _current(
    search: Search, standing: Mapping[int, Message], spent: int, left: int, quoted: frozenset[LineKey]
) -> Quote:
    """Return the quotes of the current question.

    A question about what was said gets free room, as much as history would give way for. Any other that is the newest message gets it
    where that costs only itself: where the request begins unlike the one before it in any case. Else quotes behind a question with calls stay for
    many requests, and have to be few, unless the folded part is so long that its digest tells little of it.
    """
    layout = search.layout
    query = question_text(search.source, layout.current)
    most, free = _share(query, layout, spent), left - AROUND
    about_talk = is_about_talk(layout, query)
    asks_far = is_question(query) and is_far(layout)
    if is_question(query) and (about_talk or (layout.asked_last and (layout.breaks or asks_far))):
        limit = most_quotes(layout, query) if about_talk and not (asks_far and names_a_subject(query)) else None
        size = _beside_steps(search, standing, free, limit)
        return search.filled(query, size, quoted, standing) if size >= SMALLEST_NOTE else NO_QUOTE
    if asks_far:
        most = max(most, min(layout.room.recall - spent, free))
    return search.find(query, most, quoted) if layout.quoted.first and most >= SMALLEST_NOTE else NO_QUOTE


def _beside_steps(search: Search, standing: Mapping[int, Message], free: int, limit: int | None) -> int:
    """Return the tokens of a question's quotes, ``limit`` at most: what was free when it was asked. Where steps of its turn take their room, half of
    what history gives way for, or a quarter, and so on: so they stay the same in most requests of the turn."""
    layout, cost = search.layout, search.source.cost
    steps = 0 if layout.asked_last else sum([cost(standing[index]) for index in standing if index > layout.current[-1]])
    size = free + steps if limit is None else min(free + steps, limit)
    if size > free:
        size = min(size, tokens_for_question(search.source, layout))
    while size > max(free, 0):
        size //= 2
    return size


def _share(query: str, layout: Layout, spent: int) -> int:
    """Return the tokens of quotes for a message, when those before it have spent some: one that asks nothing gets a part,
    and none where tools are called; there a question leaves half to those that follow."""
    tokens = layout.quoted.quotes
    if calls_often(layout.units):
        return (tokens - spent) // 2 if wants_to_know(query) else 0
    return min(tokens if wants_to_know(query) else int(tokens * QUOTED_UNASKED), tokens - spent)


def _lines_of(quoted: Mapping[int, Quote]) -> frozenset[LineKey]:
    return frozenset[LineKey]().union(*[quote.lines for quote in quoted.values()])
