"""The quotes behind the questions since the cut, the current one's last: how many tokens each gets."""

from collections.abc import Mapping
from typing import Final

from gateway.context.choose import lines
from gateway.context.choose.cues import asks, is_question
from gateway.context.choose.weights import QUOTED_UNASKED, STAYS, STAYS_WITH_CALLS
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.write.search import AROUND, NO_QUOTE, Quote, Search, Told
from gateway.wire.message import Message, text_of

SMALLEST_NOTE: Final = 24
"""Tokens. A smaller digest or quote says less than it costs."""
LOOKED_AT: Final = 8
"""Questions since the cut, from the first on, whose quotes may stay: a new replica searches once for each of them."""
QUERY: Final = 4000
"""Characters at the end of a question that are used for the search."""


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
    quoted = _earlier(search) if layout.quoted.first else {}
    spent = sum([quote.size for quote in quoted.values()])
    current = _current(search, standing, spent, left - spent, _told(quoted))
    if spent + current.size > left:
        quoted = {}
    if current.lines:
        quoted[layout.current[0]] = current
    # A cut that moved inside a turn has folded earlier questions too.
    return {index: quote for index, quote in quoted.items() if index in standing}


def _earlier(search: Search) -> dict[int, Quote]:
    """Return the quotes that stay behind earlier questions since the cut."""
    layout, tokens = search.layout, search.layout.quoted.quotes
    calls = any(unit.step >= 0 and unit.asks for unit in layout.units)
    stays = tokens * (STAYS_WITH_CALLS if calls else STAYS)
    quoted: dict[int, Quote] = {}
    spent = 0
    for indices in layout.asked[:-1][:LOOKED_AT]:
        if spent + SMALLEST_NOTE > stays:
            break
        query = _query(search.source, indices)
        quote = search.find(query, min(_share(query, tokens), tokens - spent), _told(quoted))
        if quote.lines and spent + quote.size <= stays:
            quoted[indices[0]] = quote
            spent += quote.size
    return quoted


def _current(search: Search, standing: Mapping[int, Message], spent: int, left: int, told: frozenset[Told]) -> Quote:
    """Return the quotes of the current question.

    As the newest message it gets all free room; as its turn continues, what the turn can spare.
    """
    layout = search.layout
    query = _query(search.source, layout.current)
    tokens = layout.quoted.quotes
    most = min(_share(query, tokens), tokens - spent)
    free = left - AROUND
    if layout.asked_last and (is_question(query) or layout.breaks):
        return search.filled(query, free, told, standing) if free >= SMALLEST_NOTE else NO_QUOTE
    if is_question(query) and layout.spare <= free:
        most = max(most, layout.spare)
    return search.find(query, most, told) if layout.quoted.first and most >= SMALLEST_NOTE else NO_QUOTE


def _share(query: str, tokens: int) -> int:
    """Return the tokens of quotes for a message: a message that asks nothing gets a part."""
    return tokens if asks(query) else int(tokens * QUOTED_UNASKED)


def _query(source: Source, indices: tuple[int, ...]) -> str:
    return text_of(source.messages[indices[-1]])[-QUERY:]


def _told(quoted: Mapping[int, Quote]) -> frozenset[Told]:
    return frozenset[Told]().union(*[quote.lines for quote in quoted.values()])
