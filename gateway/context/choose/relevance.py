"""The relevance of passages to a question.

A passage is a short message, a part of a longer one, or a record. It is found by its own words and by those of
neighbouring messages, because an answer seldom repeats its question. The weight of a word is the square of its rarity, less
for a word that says little in any conversation. With vectors of meaning (`embedding`) a passage can be found without any
word of the question.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from math import log, sqrt
from typing import Final, NamedTuple

from gateway.context.choose import fields
from gateway.context.choose.lookup import distinguishes, neighbour_shares, pinned_factor
from gateway.context.choose.rows import ROW_OPENING_TOKENS
from gateway.context.choose.salience import salience
from gateway.context.read.line import SENTENCE
from gateway.context.read.subject import names_a_subject
from gateway.context.read.words import Word, words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weigh.passages import Passage
from gateway.context.weigh.speakers import answer_factors
from gateway.context.weights import FAMILY_WORD, FIELD_WORD, MEANING_WEIGHT, USER_FACTOR

MOST_WORDS: Final = 200
"""The most different words of one question that are searched, the rarest first. Longer text is a pasted file, not a question."""
MOST_COMPARED_PASSAGES: Final = 4_000
"""The most passages that are compared by meaning, the newest. A text of 120,000 characters in ordinary messages has a third of this number."""

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
