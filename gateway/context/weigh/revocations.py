"""The later sentences that may revoke a wish, and how probable each is.

A person seldom takes a wish back in its own words. So no single sign decides. The candidates are sentences that sound like a change, and
sentences that share rare words with the wish. Each gets a probability. The rest is the probability that the wish still holds.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import accumulate
from math import exp, fsum
from typing import Final

from gateway.context import weights
from gateway.context.read import wishes
from gateway.context.weigh.folded_lines import FoldedLines, reply_to, sentences_of, user_messages_of

MOST_CANDIDATES: Final = 400
"""Sentences of the user that are compared with wishes, those that sound most like a change. Chosen to bound the time: the longest of the
chats on which the weights were fitted has 299."""

LEAST_RARITY: Final = 0.1
"""The least rarity of a word that counts as shared. More common words cost time and say nothing: a tenth of a point is half of a word
of change."""

MOST_SHARED_RARITY: Final = 100.0
"""The most that shared words count, as the sum of their rarities. It changes no probability: a sentence that shares so much has all of it. Chosen
so that the odds stay a finite number: in Chinese a sentence has up to 359 words."""


class Revocations:
    """The candidates of one folded part, for wishes at some positions."""

    def __init__(self, pool: FoldedLines, wish_positions: Iterable[int]) -> None:
        self._pool = pool
        keys = {word.key for at in wish_positions for word in pool.lines[at].words}
        rarity = {key: pool.rarity.get(key, 1.0) for key in keys}
        self._rarity = {
            key: rare for key, rare in rarity.items() if rare >= LEAST_RARITY and wishes.is_content_word(key)
        }
        """The rarity of each rare content word of these wishes."""
        points = {
            position: _change_points(line.wish_cues)
            for reading in user_messages_of(pool)
            for position, line in sentences_of(pool, reading)
        }
        candidates = sorted(nlargest(MOST_CANDIDATES, points, key=points.__getitem__))
        self._odds = {
            at: exp(weights.CHANGE_SHARPNESS * (points[at] - weights.EVEN_CHANGE_POINTS)) for at in candidates
        }
        """For the position of each candidate, the odds that it revokes a wish with which it shares no word, against the wish being valid."""
        self._strong = [at for at in candidates if self._odds[at] >= weights.LEAST_CHANGE_PROBABILITY]
        self._candidates = candidates
        self._odds_from = [0.0, *accumulate([self._odds[at] for at in reversed(candidates)])][::-1]
        """For each candidate the sum of the odds from it on, and 0 behind the last one."""
        self._with_word, self._near_word = self._by_word()

    def _by_word(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Return for each content word the candidates that have it, and the candidates that only have it nearby: in the rest of their message
        or in the assistant's reply."""
        pool, wanted = self._pool, frozenset(self._rarity)
        with_word: dict[str, list[int]] = {}
        near_word: dict[str, list[int]] = {}
        for message in dict.fromkeys([pool.message_of[position] for position in self._odds]):
            nearby = [pool.readings[message], reply_to(pool, message)]
            keys = wanted.intersection(
                [word.key for reading in nearby if reading for line in reading.lines for word in line.words]
            )
            for position in pool.positions[message] if keys else ():
                if position in self._odds:
                    own = keys.intersection([word.key for word in pool.lines[position].words])
                    for key in keys:
                        (with_word if key in own else near_word).setdefault(key, []).append(position)
        return with_word, near_word

    def of(self, wish: int) -> Mapping[int, float]:
        """Return the positions of the later sentences that may revoke the line at ``wish``, each with its probability. Improbable ones are left
        out."""
        pool = self._pool
        last = pool.positions[pool.message_of[wish]].stop - 1
        shared: dict[int, float] = {}
        for key in dict.fromkeys([word.key for word in pool.lines[wish].words]):
            if key not in self._rarity:
                continue
            rarity = self._rarity[key]
            for by_word, share in ((self._with_word, 1.0), (self._near_word, weights.SHARED_NEARBY)):
                for at in by_word.get(key, ()):
                    if at > last:
                        shared[at] = shared.get(at, 0.0) + share * rarity
        odds = {at: self._odds[at] for at in self._strong if at > last}
        odds |= {
            at: self._odds[at] * exp(weights.CHANGE_SHARPNESS * min(each, MOST_SHARED_RARITY))
            for at, each in shared.items()
        }
        # 1 for the wish itself, the odds of all later candidates as if they shared no word with it, and what they gain by shared words.
        total = (
            1.0
            + self._odds_from[bisect_right(self._candidates, last)]
            + fsum([each - self._odds[at] for at, each in odds.items()])
        )
        return {at: each / total for at, each in odds.items() if each >= weights.LEAST_CHANGE_PROBABILITY * total}


def _change_points(cues: wishes.WishCues) -> float:
    """Return the points of a sentence as a revocation of any wish."""
    return (
        weights.CHANGE_FOR_REVOCATION * cues.revocation
        + weights.CHANGE_FOR_PHRASE * cues.has_revoking_phrase
        + weights.CHANGE_FOR_STRENGTH * cues.strength
    )
