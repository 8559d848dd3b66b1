"""The quotes behind the questions since the cut, the current one's last: how many tokens each gets."""

from collections.abc import Mapping
from typing import Final

from gateway.context.choose import lines
from gateway.context.choose.cues import is_question, wants_to_know
from gateway.context.choose.subject import names_a_subject
from gateway.context.choose.weights import QUOTED_UNASKED, STAYS, STAYS_WITH_CALLS
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.write.aside import is_far, most_quotes, question_text
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
    if not layout.questions or source.rung.newest_only or not source.policy.recall_share:
        return {}
    known = frozenset().union(
        *[lines.facts(source.messages[index], source.memory) for index in source.conversation.pinned]
    )
    search = Search(source, layout, pool, taken, known)
    quoted = _earlier(search, standing) if layout.cut_at_question.first_kept and not layout.set_aside else {}
    spent = sum([quote.size for quote in quoted.values()])
    current = _current(search, standing, spent, left - spent, _lines_of(quoted))
    if spent + current.size > left:
        quoted = {}
    if current.lines:
        quoted[layout.question[0]] = current
    return quoted


def _earlier(search: Search, standing: Mapping[int, Message]) -> dict[int, Quote]:
    """Return the quotes that stay behind earlier questions since the cut.

    A cut that has moved inside a turn has folded these too: their quotes are the current question's again.
    """
    layout = search.layout
    stays = layout.cut_at_question.quote_tokens * (STAYS_WITH_CALLS if _calls(layout) else STAYS)
    quoted: dict[int, Quote] = {}
    spent = looked = 0
    for indices in [indices for indices in layout.questions[:-1] if indices[0] in standing]:
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

    If it is the newest message, and chiefly a question, it gets free room where that costs only itself: where no tools are
    called, as much as history would give way for, and all where the request begins unlike the one before it in any case. Quotes
    behind a question with calls stay for many requests, and have to be few, unless the folded part is so long that its digest
    tells little of it.
    """
    layout = search.layout
    query = question_text(search.source, layout.question)
    most = _share(query, layout, spent)
    free, calls = left - AROUND, _calls(layout)
    asks_far = is_question(query) and is_far(layout)
    if layout.ends_with_question and is_question(query) and (layout.prefix_breaks or asks_far or not calls):
        if not calls and not (asks_far and names_a_subject(query)):
            free = min(free, most_quotes(layout, query))
        return search.filled(query, free, quoted, standing) if free >= SMALLEST_NOTE else NO_QUOTE
    if asks_far:
        most = max(most, min(layout.room.recall - spent, free))
    return search.find(query, most, quoted) if layout.cut_at_question.first_kept and most >= SMALLEST_NOTE else NO_QUOTE


def _share(query: str, layout: Layout, spent: int) -> int:
    """Return the tokens of quotes for a message, when those before it have spent some: one that asks nothing gets a part,
    and none where tools are called; there a question leaves half to those that follow."""
    tokens = layout.cut_at_question.quote_tokens
    if _calls(layout):
        return (tokens - spent) // 2 if wants_to_know(query) else 0
    return min(tokens if wants_to_know(query) else int(tokens * QUOTED_UNASKED), tokens - spent)


def _calls(layout: Layout) -> bool:
    """Return whether tools were called before the current question: calls for it change none of its quotes."""
    current = layout.units[-1].turn if layout.units else 0
    return any(unit.step >= 0 and unit.can_end_request and unit.turn < current for unit in layout.units)


def _lines_of(quoted: Mapping[int, Quote]) -> frozenset[LineKey]:
    return frozenset[LineKey]().union(*[quote.lines for quote in quoted.values()])
