"""Recall: find the passages of the folded part that are relevant to the current question.

A passage is a short message, a part of a longer one, or a record. It is found by its own words and by those of
neighbouring messages, because an answer seldom repeats its question. The weight of a word is the square of its rarity, less
for a word that says little in any conversation. With vectors of meaning (`embedding`) a passage can be found without any
word of the question.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from itertools import accumulate, chain
from math import log, sqrt
from typing import Final, NamedTuple

from gateway.context import frames
from gateway.context.choose import fields, rows
from gateway.context.choose.lookup import distinguishes, neighbour_shares, pinned_factor
from gateway.context.choose.salience import salience
from gateway.context.choose.title import title_lines
from gateway.context.count.counter import CountText
from gateway.context.read.line import SENTENCE
from gateway.context.read.subject import names_a_subject
from gateway.context.read.words import Word, words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weigh.passages import Passage
from gateway.context.weigh.speakers import answer_factors
from gateway.context.weights import (
    FAMILY_WORD,
    FIELD_WORD,
    LEAST_SCORE_SHARE,
    LEAST_SCORE_SHARE_AFTER_MANY,
    LEAST_SCORE_SHARE_BESIDE_BEST,
    LEAST_SCORE_SHARE_OF_LONG_HISTORY,
    MANY_QUOTE_TOKENS,
    MEANING_WEIGHT,
    MESSAGES_BESIDE_BEST,
    USER_FACTOR,
)

ROW_OPENING_TOKENS: Final = 4.0
"""Approximate tokens with which a row begins: its speaker, or the tool of a result. They are added to the size of every passage, too, so
that very short ones get no advantage."""
MOST_WORDS: Final = 200
"""Different words of one question that are searched, the rarest first: a pasted file is not a question."""
MOST_COMPARED_PASSAGES: Final = 4_000
"""Passages, the newest, whose meaning is compared. 120,000 characters of ordinary messages have a third of this number."""

Nearness = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns how near each of the texts is to a question in meaning: standard deviations above their mean, never negative."""

Term = str | int
"""What a passage can match: a word by its stem, or a field by its number. Each term counts once in a passage."""


class QueryField(NamedTuple):
    """A field of the question's words."""

    number: int
    weight: float
    """The score of a passage that has one of its words."""
    stems: tuple[str, ...]
    """The words of the field that the folded part has, as stems."""


class Reach(Enum):
    """How far below the best score a passage may be and still be quoted."""

    NEAR = "near"
    """`LEAST_SCORE_SHARE` of the best score, and after `MANY_QUOTE_TOKENS` more: for a question that may get much room."""
    FAR = "far"
    """`LEAST_SCORE_SHARE`, in a room for more than `MANY_QUOTE_TOKENS` less. For a history that is many times the room, and where the
    room itself is the limit."""
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
    """Return the passages with at least these shares of the best score, the best first, of equals the newest.

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
    totals = accumulate(
        sum([pool.lines[position].size + 1 for position in each if position not in hidden]) for each in ranked
    )
    after_many = shares.after_many * best
    return [
        each
        for each, total in zip(ranked, totals, strict=True)
        if total <= MANY_QUOTE_TOKENS or scores[each] >= after_many
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


def relevance(
    pool: LinePool, query: str, pinned_words: Collection[str] = (), nearness: Nearness | None = None
) -> dict[Passage, float]:
    """Return the relevance of passages to a question: scores of their own words and those of neighbouring messages.

    With ``nearness`` a question also finds passages with a similar meaning. ``pinned_words`` are the words of pinned messages, which count less.
    """
    if not names_a_subject(query):
        return {}
    query_words = [word for word in words(query) if word.key not in pool.dialogue.role_of_name]
    word_weights = _word_weights(pool, query_words, pinned_words)
    query_fields = _query_fields(pool, query_words, pinned_words)
    own_scores = _word_scores(pool, _terms_of_words(pool, word_weights, query_fields))
    if nearness is not None:
        weight = MEANING_WEIGHT * _full_weight(pool, query_words, pinned_words)
        for passage, near in _nearness_of_passages(pool, query, nearness).items():
            own_scores[passage] = own_scores.get(passage, 0.0) + weight * near
    return _with_neighbours(pool, own_scores, answer_factors(query, pool.dialogue)) if own_scores else {}


def _word_scores(pool: LinePool, terms_of_words: Mapping[Word, Sequence[tuple[Term, float]]]) -> dict[Passage, float]:
    """Return by passage the sum of the weights of the terms that its words match, if they match any."""
    scores: dict[Passage, float] = {}
    has_none_of = frozenset(terms_of_words).isdisjoint
    for index, words_of_message in pool.words_of.items():
        if has_none_of(words_of_message):
            continue
        for passage in pool.passages(index):
            matched = {
                term: weight
                for position in passage
                for word in pool.lines[position].words
                if word in terms_of_words
                for term, weight in terms_of_words[word]
            }
            if matched:
                scores[passage] = sum(matched.values())
    return scores


def _nearness_of_passages(pool: LinePool, query: str, nearness: Nearness) -> dict[Passage, float]:
    """Return by passage how near it is to a question in meaning, if it is nearer than the mean."""
    every = pool.choices.get_or_make(
        "passages", lambda: tuple(chain.from_iterable(map(pool.passages, pool.message_order)))
    )
    passages = every[-MOST_COMPARED_PASSAGES:]
    texts = [" ".join([pool.lines[position].text for position in passage]) for passage in passages]
    nearness_of_texts = nearness(query, texts) if texts else ()
    return {passage: near for passage, near in zip(passages, nearness_of_texts, strict=True) if near > 0.0}


def _full_weight(pool: LinePool, query_words: Iterable[Word], pinned_words: Collection[str]) -> float:
    """Return the score of a passage with all words of a question, also those that the folded part does not have."""
    total = len(pool.lines)
    counts = {word.key: pool.lines_with(word.key) for word in query_words}
    return sum(
        _squared_rarity(max(number, 1), total) * pinned_factor(key, pinned_words)
        for key, number in counts.items()
        if distinguishes(number, total)
    )


def _word_weights(pool: LinePool, query_words: Iterable[Word], pinned_words: Collection[str]) -> dict[str, float]:
    """Return by word its weight for the question. Other words of one family have less weight than the word itself, and words
    that say little in any conversation less than others."""
    total = len(pool.lines)
    weights: dict[str, float] = {}
    for word in query_words:
        number = pool.lines_with(word.key)
        if number and distinguishes(number, total):
            weights[word.key] = _squared_rarity(number, total) * pinned_factor(word.key, pinned_words)
    if len(weights) > MOST_WORDS:
        weights = dict(sorted(weights.items(), key=lambda item: -item[1])[:MOST_WORDS])
    for word in query_words:
        if len(weights) <= 2 * MOST_WORDS:
            for other in pool.family_of(word.key):
                weight = FAMILY_WORD * _squared_rarity(pool.lines_with(other), total)
                if weight > weights.get(other, 0.0):
                    weights[other] = weight
    return {key: weight * salience(key) for key, weight in weights.items()}


def _query_fields(pool: LinePool, query_words: Collection[Word], pinned_words: Collection[str]) -> list[QueryField]:
    """Return the fields of the question's words, with those of their words that the folded part has."""
    if len(query_words) > MOST_WORDS:
        return []
    total = len(pool.lines)
    fields_by_number: dict[int, QueryField] = {}
    for word in query_words:
        if not word.ordinary or not distinguishes(pool.lines_with(word.key), total):
            continue
        factor = FIELD_WORD * pinned_factor(word.key, pinned_words)
        for field in fields.fields_of(word.key):
            stems = tuple([key for key in fields.stems_of(field) if key in pool.spellings])
            number = sum(map(pool.lines_with, stems))
            if number and distinguishes(number, total):
                weight = factor * _squared_rarity(number, total)
                if field not in fields_by_number or weight > fields_by_number[field].weight:
                    fields_by_number[field] = QueryField(field, weight, stems)
    return list(fields_by_number.values())


def _terms_of_words(
    pool: LinePool, word_weights: Mapping[str, float], query_fields: Iterable[QueryField]
) -> dict[Word, list[tuple[Term, float]]]:
    """Return by word of the folded part the terms of the question that it matches, each with its weight."""
    terms: dict[Word, list[tuple[Term, float]]] = {}
    for key, weight in word_weights.items():
        for word in pool.spellings.get(key, ()):
            terms.setdefault(word, []).append((key, weight))
    for field in query_fields:
        for key in field.stems:
            for word in pool.spellings[key]:
                terms.setdefault(word, []).append((field.number, field.weight))
    return terms


def _squared_rarity(number: int, total: int) -> float:
    """Return the square of the rarity of a word that ``number`` of ``total`` lines have: the weight of BM25, squared."""
    return log(1 + (total - number + 0.5) / (number + 0.5)) ** 2


def _with_neighbours(
    pool: LinePool, own_scores: Mapping[Passage, float], role_factors: Mapping[str, float]
) -> dict[Passage, float]:
    """Return the relevance of passages: the score of its own words divided by the square root of its size, plus a share of the best such
    score in each neighbouring message, times the factor of its speaker.

    The share is of scores that are divided by size, so that a very short neighbour does not get more than the passage beside it. In a message
    of many passages, such as a page, each is less likely to be meant.
    """
    by_size = {passage: score / sqrt(pool.size(passage) + ROW_OPENING_TOKENS) for passage, score in own_scores.items()}
    best_by_rank: dict[int, float] = {}
    for passage, score in by_size.items():
        rank = pool.rank[pool.message_of[passage.start]]
        best_by_rank[rank] = max(best_by_rank.get(rank, 0.0), score)
    shares = _neighbour_shares_by_rank(pool, best_by_rank)
    scores: dict[Passage, float] = {}
    for rank in best_by_rank.keys() | shares.keys():
        index, share = pool.message_order[rank], shares.get(rank, 0.0)
        role = pool.readings[index].role
        factor = role_factors.get(role, 1.0)
        tells_findings = pool.has_many_calls and role == "assistant"
        passages = pool.passages(index)
        for passage in passages:
            if pool.envelope.issuperset(passage):
                continue
            score = (by_size.get(passage, 0.0) + share / sqrt(len(passages))) * factor
            if tells_findings and pool.lines[passage.start].kind is SENTENCE:
                score *= USER_FACTOR
            if score > 0.0:
                scores[passage] = score
    return scores


def _neighbour_shares_by_rank(pool: LinePool, best_by_rank: Mapping[int, float]) -> dict[int, float]:
    """Return by rank of a message the share that it gets of its neighbours' scores. ``best_by_rank`` has each message's best score."""
    shares = neighbour_shares(best_by_rank, len(pool.message_order))
    if pool.has_many_calls:
        # Hundreds of calls may be between two messages without calls. So these are neighbours of each other, too.
        ranks = [pool.rank[index] for index in pool.messages_without_calls]
        best_by_number = {number: best_by_rank[rank] for number, rank in enumerate(ranks) if rank in best_by_rank}
        for number, share in neighbour_shares(best_by_number, len(ranks)).items():
            shares[ranks[number]] = max(share, shares.get(ranks[number], 0.0))
    return shares


def render(pool: LinePool, positions: Sequence[int]) -> str:
    """Write the block of quotes; empty when there are none."""
    return frames.framed(frames.QUOTES, rows.render(pool, positions)) if positions else ""
