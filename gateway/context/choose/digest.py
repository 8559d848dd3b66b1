"""The digest: choose the lines of the folded part with the most new facts per token."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Final, NamedTuple

from gateway.context.choose.greedy import Greedy
from gateway.context.choose.rows import render
from gateway.context.count.counter import CountText
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import SURE_WISHES_SHARE_WITH_CALLS, WISHES_SHARE_OF_CHAT, WISHES_SHARE_WITH_CALLS

FULL_SHARE: Final = 0.97
"""Share of the room at which the choice ends. Chosen: sizes are estimates, and the rest is seldom enough for a line."""
MOST_TRIED_TOKENS: Final = 2500
"""The most tokens that are counted to find shorter lines for the rest of the room. Chosen: six lines of a digest of 400
tokens. Twice as many find no more and cost 2 % of a next turn."""

MOST_ROUNDS: Final = 4
"""Rounds of the choice. After each the written text is counted, and the estimate is corrected for the next. Chosen: of 231 choices from
the conversations in `benchmarks.recall` nine in ten needed one round, the others two."""
LEAST_ESTIMATE_RATIO: Final = 0.5
"""The least ratio of estimated to counted tokens by which the room that is left is estimated. Chosen, so that a few lines that cost more than
estimated do not end the choice."""


class Shown(NamedTuple):
    """What an earlier digest shows of the pool."""

    lines: frozenset[int]
    """Positions of its lines."""
    messages: frozenset[int]
    """The messages from which they were chosen."""


NOTHING_SHOWN: Final = Shown(frozenset(), frozenset())


def choose(
    pool: LinePool,
    tokens: int,
    count: CountText,
    *,
    known: frozenset[str] = frozenset(),
    earlier: Shown = NOTHING_SHOWN,
) -> list[int]:
    """Choose the lines of a digest, standing wishes first, then those with the most new facts per token; return their positions in order.

    ``known`` are facts that are elsewhere in the request. With an ``earlier`` digest only lines of other messages are chosen, for what follows it.
    """
    greedy = Greedy(pool, known, None)
    greedy.leave_out(earlier.messages, earlier.lines)
    if pool.has_many_calls:
        greedy.chosen.take_wishes(pool.wishes.sure, tokens * SURE_WISHES_SHARE_WITH_CALLS)
    few_wishes = pool.has_many_calls or pool.dialogue.between_people
    greedy.chosen.take_wishes(
        pool.wishes.ranked, tokens * (WISHES_SHARE_WITH_CALLS if few_wishes else WISHES_SHARE_OF_CHAT)
    )
    return _filled(greedy, tokens, count)


def choose_for_quotes(
    pool: LinePool, tokens: int, count: CountText, candidates: Collection[int], *, known: frozenset[str]
) -> list[int]:
    """Choose of the lines at some positions those with the most new facts per token, for the quotes of a question; return their positions in
    order. ``known`` are facts that are elsewhere in the request."""
    return _filled(Greedy(pool, known, candidates), tokens, count)


def _filled(greedy: Greedy, tokens: int, count: CountText) -> list[int]:
    """Take lines until so many tokens are full; return the positions of all taken lines in order."""
    pool, chosen = greedy.pool, greedy.chosen
    # The choice is made by estimated tokens. The count of the written text corrects the estimate for the next round.
    limit = float(tokens)
    spent = chosen_before = 0
    for _ in range(MOST_ROUNDS):
        greedy.grow(limit)
        if len(chosen.positions) == chosen_before:
            break
        chosen_before = len(chosen.positions)
        spent = count(render(pool, sorted(chosen.positions)))
        if spent > tokens * FULL_SHARE:
            break
        limit = chosen.used_tokens + (tokens - spent) * max(chosen.used_tokens / max(spent, 1), LEAST_ESTIMATE_RATIO)
    return sorted(chosen.positions if spent <= tokens else _fitting(pool, chosen.choices, tokens, spent, count))


def _fitting(
    pool: LinePool, choices: Sequence[tuple[int, ...]], tokens: int, spent: int, count: CountText
) -> list[int]:
    """Return as many of the choices as fit, in their order. ``spent`` are the tokens of all of them.

    If a line is too long for the rest of the room, shorter ones behind it are tried: no lines of the same record, and no wish
    without its revocation.
    """
    number, chosen = len(choices), list(chain.from_iterable(choices))
    while number and spent > tokens:
        number = min(int(number * tokens / spent), number - 1)
        chosen = list(chain.from_iterable(choices[:number]))
        spent = count(render(pool, sorted(chosen)))
    if not pool.has_calls:
        return chosen  # in a chat the rest is left for quotes
    left_out: set[tuple[int, int]] = set()
    for lines in choices[number : number + MOST_TRIED_TOKENS // max(tokens, 1)]:
        last = lines[-1]
        record = pool.message_of[last], pool.lines[last].group
        revocation = pool.wishes.revocations.get(last, last)
        if (
            record not in left_out
            and (revocation == last or revocation in chosen)
            and count(render(pool, sorted([*chosen, *lines]))) <= tokens
        ):
            chosen += lines
        else:
            left_out.add(record)
    return chosen
