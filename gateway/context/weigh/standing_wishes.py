"""Find the user's standing wishes among the lines of a folded part, and the sentences that revoke wishes."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from math import fsum
from typing import Final, NamedTuple

from gateway.context import weights
from gateway.context.read import wishes
from gateway.context.read.line import Line
from gateway.context.read.words import NAME, Word, Words, lexicon_of, stem
from gateway.context.weigh.folded_lines import FoldedLines, reply_to, sentences_of, user_messages_of
from gateway.context.weigh.revocations import Revocations

ADDED_TOKENS: Final = 12
"""Tokens that are added to a line's size in comparisons: the beginning of its message. Short lines get no advantage."""
ADDED_WORDS: Final = 3
"""Words that are added to a line's number of words for its share of rare words: a short line seldom has more than one."""
REPLY_CHARACTERS: Final = 160
"""Characters of a reply that are read."""
MOST_DOUBTED: Final = 100
"""The surest wishes, for which revocations are looked for. Chosen to bound the time: a digest and quotes have room for fewer."""


class StandingWishes(NamedTuple):
    """The positions of the user's standing wishes. It does not refer to the lines, because they refer to it: Python frees a
    reference cycle late."""

    ranked: list[int]
    """All of them, and the sentences that probably revoke one, the best to show first. A revoked wish follows its revocation."""
    sure: list[int]
    """The same for the sure wishes alone."""
    revocations: dict[int, int]
    """For each revoked wish, the sentence that most probably revokes it. The wish alone would mislead."""


def standing_wishes(pool: FoldedLines) -> StandingWishes:
    """Find the standing wishes of a folded part."""
    finder = _Finder(pool)
    all_wishes = finder.ranked_wishes()
    surest = [wish.position for wish in all_wishes[:MOST_DOUBTED]]
    revocations_of = Revocations(pool, surest).of
    probabilities = {wish: revocations_of(wish) for wish in surest}
    best = {
        wish: max(each.items(), key=lambda item: (item[1], item[0])) for wish, each in probabilities.items() if each
    }
    revocations = {
        wish: revocation
        for wish, (revocation, probability) in best.items()
        if probability >= weights.SURE_CHANGE_PROBABILITY
    }
    sure = [wish for wish in all_wishes if wish.points >= finder.criteria.sure_points]
    ranked = _in_order(all_wishes, probabilities, revocations)
    return StandingWishes(
        ranked, ranked if len(sure) == len(all_wishes) else _in_order(sure, probabilities, revocations), revocations
    )


class _Wish(NamedTuple):
    """A sentence that may be a standing wish."""

    value: float
    """What it is worth to show it if it is valid: its points, less for a long sentence."""
    position: int
    points: float


def _in_order(
    found: Sequence[_Wish], probabilities: Mapping[int, Mapping[int, float]], revocations: Mapping[int, int]
) -> list[int]:
    """Return wishes and the sentences that may revoke one of them, in the order in which they are worth most.

    A wish loses value by the probability that a sentence that is not shown revokes it. Such a sentence gains as much value for each wish that
    is shown. So a doubtful wish comes later, or the sentence that may revoke it is shown, too. ``revocations`` always come before their wishes.
    """
    doubt = weights.DOUBT
    revoked_by = {wish.position: probabilities.get(wish.position, {}) for wish in found}
    values = {wish.position: wish.value - doubt * fsum(revoked_by[wish.position].values()) for wish in found}
    revokes: dict[int, list[tuple[int, float]]] = {}
    for wish, its_revocations in revoked_by.items():
        for revocation, probability in its_revocations.items():
            revokes.setdefault(revocation, []).append((wish, probability))
    heap = [(-value, position) for position, value in values.items()]
    heapify(heap)
    order: dict[int, None] = {}

    def show(position: int) -> None:
        """Add a sentence, behind its revocation, and raise the values that depend on it."""
        if position in order:
            return
        if position in revocations:
            show(revocations[position])
        order[position] = None
        for other, probability in (*revokes.get(position, ()), *revoked_by.get(position, {}).items()):
            if other not in order:
                values[other] = values.get(other, 0.0) + doubt * probability
                heappush(heap, (-values[other], other))

    while heap:
        negative, position = heappop(heap)
        if -negative == values[position]:
            show(position)
    return list(order)


class _Criteria(NamedTuple):
    """What a wish needs in one kind of conversation: a chat, or one whose folded part has many calls."""

    cues: float
    """Factor for the points of the classes of words."""
    learned: float
    """Factor for the learned points."""
    least_points: float
    """The least points of a wish."""
    sure_points: float
    """The least points of a sure wish."""


def _criteria_of(pool: FoldedLines) -> _Criteria:
    """Return the criteria for a conversation. Requests to an agent have the same classes of words as wishes. So these classes
    count less if the folded part has many calls, and the learned words more."""
    if pool.has_many_calls:
        return _Criteria(
            weights.CUES_WITH_CALLS,
            weights.LEARNED_WITH_CALLS,
            weights.LEAST_WISH_POINTS_WITH_CALLS,
            weights.SURE_WISH_POINTS_WITH_CALLS,
        )
    return _Criteria(1.0, weights.LEARNED, weights.LEAST_WISH_POINTS, weights.LEAST_WISH_POINTS)


class _Finder:
    """One search for wishes."""

    def __init__(self, pool: FoldedLines) -> None:
        self._pool = pool
        self.criteria = _criteria_of(pool)
        self._user_messages = user_messages_of(pool)
        self._words = lexicon_of(None)

    def ranked_wishes(self) -> list[_Wish]:
        """Return the user's standing wishes, the surest first."""
        replies = [self._reply(reading.message) for reading in self._user_messages]
        assented = [wishes.is_assent(reply.text) for reply in replies]
        # The more replies agree, the less it says: an assistant that agrees to everything gives no evidence.
        assent_points = weights.ASSENT_IN_REPLY * (1 - sum(assented) / max(len(assented), 1))
        outdated = self._pool.outdated
        candidates = [
            (position, line, reply, assent_points * assents)
            for reading, reply, assents in zip(self._user_messages, replies, assented, strict=True)
            for position, line in sentences_of(self._pool, reading)
            if position not in outdated
        ]
        # Most requests to an agent have the same classes of words, so these say little. In a chat hardly any class is common,
        # and the common ones are the best evidence: there each has its full weight.
        class_weights = wishes.class_weights(
            [line.wish_cues.class_counts for _, line, _, _ in candidates] if self._pool.has_many_calls else []
        )
        accepted: list[_Wish] = []
        for position, line, reply, assent in candidates:
            points = assent + self._points(position, line, class_weights)
            # The cheap terms are added first: most sentences already have too few points after them.
            if points + _MOST_REPLY_POINTS < self.criteria.least_points:
                continue
            points += reply.points_for(line)
            if points >= self.criteria.least_points:
                points += weights.TOOL_WORDS * self._tool_words_share(line)
            if points >= self.criteria.least_points:
                # The sentence with the least points has the same rank value in both kinds of conversation.
                above = points - self.criteria.least_points + weights.LEAST_WISH_POINTS
                accepted.append(_Wish(above / (line.size + ADDED_TOKENS) ** weights.WISH_SIZE_POWER, position, points))
        return sorted(accepted, key=lambda wish: (-wish.value, wish.position))

    def _points(self, position: int, line: Line, class_weights: Sequence[float]) -> float:
        """Return the points of a line, without those of its reply and of tool words."""
        wish_cues, words = line.wish_cues, line.words
        rare_share = fsum(map(self._rarity_of_words.__getitem__, words)) / (len(words) + ADDED_WORDS)
        by_class = wishes.cue_points(wish_cues.class_counts, class_weights, is_aside=wish_cues.is_aside)
        points = self.criteria.cues * by_class + self.criteria.learned * wish_cues.wish
        points += weights.REVOCATION_WEIGHT * wish_cues.revocation + (
            weights.WISH_BINDING * line.binding + weights.RARE_WORDS * rare_share
        )
        alone = len(self._pool.positions[self._pool.message_of[position]]) == 1
        return points + weights.WHOLE_MESSAGE if alone else points

    @cached_property
    def _rarity_of_words(self) -> dict[Word, float]:
        """Return the rarity of each word of the user; 1 for a word that is not ordinary."""
        rarity = self._pool.rarity
        return {word: rarity.get(word.key, 1.0) for word in self._pool.tally.counts.by_user}

    def _tool_words_share(self, line: Line) -> float:
        """Return the share of a line's content words that are in calls or results: such a line is about the task, and no wish."""
        content_words = [word.key for word in line.words if not word.ordinary or wishes.is_content_word(word.key)]
        return sum(map(self._is_tool_word, content_words)) / (len(content_words) + 1)

    def _is_tool_word(self, key: str) -> bool:
        """Return whether a word, in any spelling, is in a call or a result."""
        counts = self._pool.tally.counts
        return any([word in counts.in_calls or word in counts.in_results for word in self._pool.tally.spellings[key]])

    def _reply(self, message: int) -> "_ReplyOpening":
        """Return the beginning of the assistant's reply to a message."""
        reply = reply_to(self._pool, message)
        return _ReplyOpening(reply.lines[0].text[:REPLY_CHARACTERS] if reply is not None else "", self._words)


class _ReplyOpening:
    """The beginning of the assistant's reply to a message; empty without a reply."""

    def __init__(self, text: str, words: Words) -> None:
        self.text = text
        self._words = words

    def points_for(self, line: Line) -> float:
        """Return the points of a line whose name or content word the reply uses."""
        if self.addresses_by_a_name_in(line):
            return weights.NAME_IN_REPLY
        return weights.WORD_IN_REPLY if self.repeats_a_word_of(line) else 0.0

    def repeats_a_word_of(self, line: Line) -> bool:
        """Return whether the reply begins with a short sentence that has a content word of a line: *Ninety-five it is.*"""
        repeated = self._first_words
        return bool(repeated) and any([word.key in repeated for word in line.words])

    def addresses_by_a_name_in(self, line: Line) -> bool:
        """Return whether the reply addresses the user by a name in a line: between commas or at an end."""
        names = [word.key for word in line.words if word.shape is NAME]
        return bool(names) and not self._names.isdisjoint(names)

    @cached_property
    def _first_words(self) -> frozenset[str]:
        first = _SHORT_FIRST_SENTENCE.match(self.text)
        first_words = self._words(first[0]) if first is not None else ()
        return frozenset([word.key for word in first_words if wishes.is_content_word(word.key)])

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset([name for found in _VOCATIVE.findall(self.text[:80]) if len(name := stem(found)) > 1])


_MOST_REPLY_POINTS: Final = max(weights.NAME_IN_REPLY, weights.WORD_IN_REPLY)
"""Points that `_ReplyOpening.points_for` returns at most."""
_SHORT_FIRST_SENTENCE: Final = re.compile(r"[^.!?:。！？：\n]{1,40}(?:[.:。：]|$)")
_VOCATIVE: Final = re.compile(
    r"(?:^|[,!] |\b(?:Hello|Hi|Thanks|Hallo|Danke|Gern|Bonjour|Merci|Hola|Gracias|Ciao|Grazie) )([^\W\d_]+)(?=[,.!:])"
)
