"""Recall: choose the passages that are quoted for a question, by their `relevance` and their size."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from itertools import accumulate
from typing import NamedTuple

from gateway.context import frames
from gateway.context.choose import rows
from gateway.context.choose.rows import ROW_OPENING_TOKENS
from gateway.context.choose.title import title_lines
from gateway.context.count.counter import CountText
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weigh.passages import Passage
from gateway.context.weights import (
    LEAST_SCORE_SHARE,
    LEAST_SCORE_SHARE_AFTER_MANY,
    LEAST_SCORE_SHARE_BESIDE_BEST,
    LEAST_SCORE_SHARE_OF_LONG_HISTORY,
    MANY_QUOTE_TOKENS,
    MESSAGES_BESIDE_BEST,
)


class Reach(Enum):
    """How far below the best score a passage may be and still be quoted."""

    NEAR = "near"
    """The first `MANY_QUOTE_TOKENS` need `LEAST_SCORE_SHARE` of the best score, what follows needs `LEAST_SCORE_SHARE_AFTER_MANY`. For a
    question that may get much room."""
    FAR = "far"
    """All need the same share: `LEAST_SCORE_SHARE`, or `LEAST_SCORE_SHARE_OF_LONG_HISTORY` in a room for more than `MANY_QUOTE_TOKENS`. For a
    history that is many times the room, and where the room itself is the limit."""
    ALL = "all"
    """Any score, to fill a rest."""


class ScoreShares(NamedTuple):
    """The shares of the best passage's score that a passage needs to be quoted."""

    least: float
    after_many: float
    """The same for a passage that is not among the first `MANY_QUOTE_TOKENS`; 0 if these need no more than others."""


def choose(
    pool: LinePool,
    scores: Mapping[Passage, float],
    tokens: int,
    count: CountText,
    hidden: Collection[int],
    *,
    reach: Reach = Reach.FAR,
) -> list[int]:
    """Choose the best passages of a question, by their `relevance`, and return the positions of their lines in order.

    With their frame they take at most ``tokens``. ``hidden`` has the positions of lines that the model sees anyway or must not see.
    """
    room = tokens - frames.frame_tokens(frames.QUOTES, count)
    if room <= 0:
        return []
    skip = frozenset(hidden)
    ranked = _ranked(pool, scores, skip, _score_shares(pool, room, reach))
    return _fitting(pool, ranked, room, count, skip)


def _score_shares(pool: LinePool, room: int, reach: Reach) -> ScoreShares:
    """Return the shares of the best score that passages need in ``room`` tokens."""
    if reach is Reach.ALL:
        return ScoreShares(0.0, 0.0)
    is_far = reach is Reach.FAR
    takes_lower_scores = pool.dialogue.between_people or (is_far and room > MANY_QUOTE_TOKENS)
    least = LEAST_SCORE_SHARE_OF_LONG_HISTORY if takes_lower_scores else LEAST_SCORE_SHARE
    return ScoreShares(least, 0.0 if is_far else LEAST_SCORE_SHARE_AFTER_MANY)


def _ranked(
    pool: LinePool, scores: Mapping[Passage, float], hidden: frozenset[int], shares: ScoreShares
) -> list[Passage]:
    """Return the passages with at least these shares of the best score, the best first. Of two with the same score the newer one is first.

    The best passage is often an earlier question in the same words. Its answer has few of these words, so the messages beside it need less.
    """
    if not scores:
        return []

    def order(passage: Passage) -> tuple[float, int]:
        return -scores[passage], -passage.start

    best_passage = min(scores, key=order)
    best = scores[best_passage]
    beside = _messages_beside(pool, pool.message_of[best_passage.start])
    least = shares.least * best
    least_beside = LEAST_SCORE_SHARE_BESIDE_BEST * least
    ranked = sorted(
        (
            passage
            for passage, score in scores.items()
            if score >= (least_beside if pool.message_of[passage.start] in beside else least)
        ),
        key=order,
    )
    tokens_so_far = accumulate(
        sum([pool.lines[position].size + 1 for position in passage if position not in hidden]) for passage in ranked
    )
    least_after_many = shares.after_many * best
    return [
        passage
        for passage, tokens in zip(ranked, tokens_so_far, strict=True)
        if tokens <= MANY_QUOTE_TOKENS or scores[passage] >= least_after_many
    ]


def _messages_beside(pool: LinePool, message: int) -> frozenset[int]:
    """Return the indices of up to `MESSAGES_BESIDE_BEST` messages on either side of a message."""
    rank = pool.rank[message]
    near = pool.message_order[max(rank - MESSAGES_BESIDE_BEST, 0) : rank + MESSAGES_BESIDE_BEST + 1]
    return frozenset(near) - {message}


def _fitting(
    pool: LinePool, ranked: Sequence[Passage], room: int, count: CountText, hidden: frozenset[int]
) -> list[int]:
    """Return the positions of the best passages that fit, in order. Their size is estimated first and counted at the
    end."""
    chosen: list[tuple[Passage, list[int]]] = []

    def positions(number: int) -> list[int]:
        """Return the positions of the lines of the first so many chosen passages."""
        return sorted({position for _, new in chosen[:number] for position in new})

    def size(number: int) -> int:
        """Return the tokens of the first so many chosen passages."""
        return count(rows.render(pool, positions(number))) if number else 0

    title_of = cache(partial(title_lines, pool))
    left = float(room)
    for _ in range(3):  # the estimate is corrected by the count
        left = _add_by_estimate(pool, ranked, chosen, left, hidden=hidden, title_of=title_of)
        spent = size(len(chosen))
        if spent > room:
            # The size grows with the number of passages. Of the numbers from 0 on, as many as `bisect_right` returns fit; the last of these
            # is the largest number that fits.
            del chosen[bisect_right(range(len(chosen)), room, key=size) - 1 :]
            spent = size(len(chosen))
        if room - spent - left < ROW_OPENING_TOKENS or not chosen:
            break
        # The estimate was too high: the room that is left is filled in another round.
        left = float(room - spent)
    return positions(len(chosen))


def _add_by_estimate(
    pool: LinePool,
    ranked: Sequence[Passage],
    chosen: list[tuple[Passage, list[int]]],
    left: float,
    *,
    hidden: frozenset[int],
    title_of: Callable[[int], Sequence[int]],
) -> float:
    """Add to the chosen passages those that fit into ``left`` estimated tokens, with the positions of their lines. The first of a
    message brings its title. Return the tokens that are left."""
    taken = {passage for passage, _ in chosen}
    opened = {pool.message_of[passage.start] for passage in taken}
    for passage in ranked:
        new = {position for position in passage if position not in hidden}
        if passage in taken or not new:
            continue
        message = pool.message_of[passage.start]
        opening = 0.0
        if message not in opened:
            new.update([position for position in title_of(message) if position not in hidden])
            opening = ROW_OPENING_TOKENS
        cost = opening + sum([pool.lines[position].size + 1 for position in sorted(new)])
        if cost <= left:
            chosen.append((passage, sorted(new)))
            opened.add(message)
            left -= cost
        elif left < ROW_OPENING_TOKENS:
            break
    return left


def render(pool: LinePool, positions: Sequence[int]) -> str:
    """Write the block of quotes; empty when there are none."""
    return frames.framed(frames.QUOTES, rows.render(pool, positions)) if positions else ""
