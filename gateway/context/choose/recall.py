"""Recall: find passages of the folded part that bear on the current question.

A passage is a short message, a part of a longer one, or a record. It is found by its own words and by those of
neighbouring messages, because an answer seldom repeats its question. Rare words count by the square of their rarity,
those that tell little in any conversation for less.
Where vectors of meaning are at hand (`embedding`), a passage near the question counts without any word of it.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from math import inf, log, sqrt
from typing import Final, NamedTuple

from gateway.context import marks
from gateway.context.choose import fields, rows
from gateway.context.choose.cues import instructs, wants_to_know
from gateway.context.choose.lookup import beside, distinguishes
from gateway.context.choose.salience import salience
from gateway.context.choose.speakers import answer_factors
from gateway.context.choose.subject import names_a_subject
from gateway.context.choose.weights import (
    FAMILY_WORD,
    FIELD_WORD,
    LEAST_SCORE_SHARE,
    LEAST_SCORE_SHARE_AFTER_MANY,
    LEAST_SCORE_SHARE_OF_LONG_HISTORY,
    LEAST_STATEMENT_SHARE,
    LEAST_STATEMENT_WORDS,
    MANY_QUOTE_TOKENS,
    MEANING_WEIGHT,
    PINNED_WORD,
)
from gateway.context.choose.words import Word, words
from gateway.context.choose.worth import FAMILY, LinePool, Passage
from gateway.context.count.counter import CountText

OPENING: Final = 4.0
"""Tokens of the beginning of another message's line."""
MOST_ALIKE: Final = 12
"""Words of one family that are searched."""
MOST_WORDS: Final = 200
"""Different words of one question that are searched, the rarest first: a pasted file is not a question."""
MOST_MEANT: Final = 4_000
"""Passages, the newest, whose meaning is compared: those of 120,000 characters of ordinary messages are a third of them."""

Nearness = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns how near each of the texts is to a question in meaning: standard deviations above their mean, never negative."""

Meaning = str | int
"""What a word stands for: its own stem, or the number of a field."""


class Subject(NamedTuple):
    """A field that a question is about."""

    field: int
    worth: float
    """What a passage gets that has one of its words."""
    said: tuple[str, ...]
    """The stems by which the folded part speaks of it."""


def excerpts(  # noqa: PLR0917  # a search has that many sides
    pool: LinePool,
    query: str,
    tokens: int,
    count: CountText,
    skip: Collection[int],
    known: Collection[str] = (),
    *,
    many: float = inf,
    nearness: Nearness | None = None,
    least_share: float = 0.0,
) -> list[int]:
    """Choose the passages that bear on a question, as positions of their lines; none when none does.

    ``skip`` has the positions of lines that the model sees anyway or must not see, ``known`` the words of pinned
    messages. Beyond ``many`` tokens a passage must bear more on the question; infinite where the folded part is many times the room. With
    ``nearness``, meaning counts beside words. With ``least_share`` nothing is chosen unless a passage has that share of what is asked.
    """
    room = tokens - count(marks.QUOTES) - count(marks.END) - 3
    if room <= 0:
        return []
    scores = relevance(pool, query, known, nearness, least_share)
    hidden = frozenset(skip)
    weak = pool.dialogue.between_people or (many == inf and room > MANY_QUOTE_TOKENS)
    least = LEAST_SCORE_SHARE_OF_LONG_HISTORY if weak else LEAST_SCORE_SHARE
    return _fitting(pool, _ranked(pool, scores, least, hidden, many), room, count, hidden)


def _ranked(
    pool: LinePool, scores: Mapping[Passage, float], least: float, skip: frozenset[int], many: float
) -> list[Passage]:
    """Return the passages that have this share of the best score at ``least``, the best first; beyond so many tokens each needs more of it."""
    best = max(scores.values(), default=0.0)
    ranked = sorted(
        (passage for passage, score in scores.items() if score >= least * best),
        key=lambda passage: (-scores[passage], -passage.start),
    )
    totals = accumulate(sum([pool.lines[place].size + 1 for place in each if place not in skip]) for each in ranked)
    few = LEAST_SCORE_SHARE_AFTER_MANY * best
    return [each for each, total in zip(ranked, totals, strict=True) if total <= many or scores[each] >= few]


def _fitting(pool: LinePool, ranked: Sequence[Passage], room: int, count: CountText, skip: frozenset[int]) -> list[int]:
    """Return the positions of the best passages that fit, in order. Their size is estimated first and counted at the
    end."""
    chosen: list[tuple[Passage, list[int]]] = []

    def positions(number: int) -> list[int]:
        return sorted(place for _, new in chosen[:number] for place in new)

    def size(number: int) -> int:
        return count(rows.render(pool, positions(number))) if number else 0

    left = float(room)
    opened: set[int] = set()
    for _ in range(3):
        taken = {passage for passage, _ in chosen}
        for passage in ranked:
            if passage in taken:
                continue
            new = [place for place in passage if place not in skip]
            if not new:
                continue
            message = pool.message_of[passage.start]
            cost = sum([pool.lines[place].size + 1 for place in new]) + (0 if message in opened else OPENING)
            if cost <= left:
                chosen.append((passage, new))
                opened.add(message)
                left -= cost
            elif left < OPENING:
                break
        spent = size(len(chosen))
        if spent > room:
            # More passages take more tokens: search for the most that fit.
            del chosen[bisect_right(range(len(chosen)), room, key=size) - 1 :]
            spent = size(len(chosen))
        if room - spent - left < OPENING or not chosen:
            break
        # The estimate was too high: distribute the rest.
        left = float(room - spent)
    return positions(len(chosen))


def relevance(
    pool: LinePool, query: str, known: Collection[str] = (), nearness: Nearness | None = None, least_share: float = 0.0
) -> dict[Passage, float]:
    """Return how much passages bear on a question: by their own words, and by those of neighbouring messages.

    With ``nearness`` a question also finds passages of like meaning. A message that asks nothing does not, and finds nothing unless it
    says enough: its quotes would cost part of a cached prefix for a guess.
    """
    if not names_a_subject(query):
        return {}
    asked = [word for word in words(query) if word.key not in pool.dialogue.role_of_name]
    sought = _sought(pool, asked, known)
    subjects = _subjects(pool, asked, known)
    wants = wants_to_know(query) or instructs(query)
    if not wants and len(sought.keys() & {word.key for word in asked}) < LEAST_STATEMENT_WORDS:
        return {}
    if wants:
        least = least_share * _weight_of(pool, asked, known)
    else:
        least = LEAST_STATEMENT_SHARE * (sum(sought.values()) + sum([each.worth for each in subjects]))
    own = _by_words(pool, _bearing(pool, sought, subjects))
    if nearness is not None and wants:
        weight = MEANING_WEIGHT * _weight_of(pool, asked, known)
        for passage, near in _by_meaning(pool, query, nearness).items():
            own[passage] = own.get(passage, 0.0) + weight * near
    best: dict[int, float] = {}
    for passage, score in own.items():
        index = pool.message_of[passage.start]
        best[index] = max(best.get(index, 0.0), score)
    if max(best.values(), default=0.0) <= least:
        return {}
    return _spread(pool, own, best, answer_factors(query, pool.dialogue))


def _by_words(pool: LinePool, bearing: Mapping[Word, Sequence[tuple[Meaning, float]]]) -> dict[Passage, float]:
    """Return by passage the worth of the words in it that bear on a question, where it has any."""
    own: dict[Passage, float] = {}
    elsewhere = frozenset(bearing).isdisjoint
    for index, facts in pool.facts.items():
        if elsewhere(facts):
            continue
        for passage in pool.passages(index):
            found = {
                meaning: worth
                for place in passage
                for word in pool.lines[place].words
                if word in bearing
                for meaning, worth in bearing[word]
            }
            if found:
                own[passage] = sum(found.values())
    return own


def _by_meaning(pool: LinePool, query: str, nearness: Nearness) -> dict[Passage, float]:
    """Return by passage how near it is to a question, where it is nearer than most."""
    passages = pool.once("passages", lambda: tuple(chain.from_iterable(map(pool.passages, pool.order))))[-MOST_MEANT:]
    texts = [" ".join([pool.lines[place].text for place in passage]) for passage in passages]
    found = nearness(query, texts) if texts else ()
    return {passage: near for passage, near in zip(passages, found, strict=True) if near > 0.0}


def _weight_of(pool: LinePool, asked: Iterable[Word], known: Collection[str]) -> float:
    """Return the worth of a passage that would have all words of a question, those included that the folded part lacks."""
    total = len(pool.lines)
    counts = {word.key: pool.count(word.key) for word in asked}
    return sum(
        _rarity(max(number, 1), total) * (PINNED_WORD if key in known else 1.0)
        for key, number in counts.items()
        if distinguishes(number, total)
    )


def _sought(pool: LinePool, asked: Iterable[Word], known: Collection[str]) -> dict[str, float]:
    """Return by word the worth of a passage that has it. Words of one family count for less than the word itself, and
    words that tell little in any conversation for less than others."""
    total = len(pool.lines)
    sought: dict[str, float] = {}
    for word in asked:
        number = pool.count(word.key)
        if number and distinguishes(number, total):
            sought[word.key] = _rarity(number, total) * (PINNED_WORD if word.key in known else 1.0)
    if len(sought) > MOST_WORDS:
        sought = dict(sorted(sought.items(), key=lambda item: -item[1])[:MOST_WORDS])
    for word in asked:
        if len(word.key) >= FAMILY and len(sought) <= 2 * MOST_WORDS:
            for other in pool.family(word.key[:FAMILY], MOST_ALIKE):
                worth = FAMILY_WORD * _rarity(pool.count(other), total)
                if worth > sought.get(other, 0.0):
                    sought[other] = worth
    return {key: worth * salience(key) for key, worth in sought.items()}


def _subjects(pool: LinePool, asked: Collection[Word], known: Collection[str]) -> list[Subject]:
    """Return the fields of the question's words, with the words by which the folded part speaks of them."""
    if len(asked) > MOST_WORDS:
        return []
    total = len(pool.lines)
    found: dict[int, Subject] = {}
    for word in asked:
        if not word.ordinary or not distinguishes(pool.count(word.key), total):
            continue
        share = FIELD_WORD * (PINNED_WORD if word.key in known else 1.0)
        for field in fields.fields_of(word.key):
            said = tuple([key for key in fields.stems_of(field) if key in pool.spellings])
            number = sum(map(pool.count, said))
            if number and distinguishes(number, total):
                worth = max(share * _rarity(number, total), found[field].worth if field in found else 0.0)
                found[field] = Subject(field, worth, said)
    return list(found.values())


def _bearing(
    pool: LinePool, sought: Mapping[str, float], subjects: Iterable[Subject]
) -> dict[Word, list[tuple[Meaning, float]]]:
    """Return by word what a passage that has it bears on, and how much that is worth."""
    bearing: dict[Word, list[tuple[Meaning, float]]] = {}
    for key, worth in sought.items():
        for word in pool.spellings.get(key, ()):
            bearing.setdefault(word, []).append((key, worth))
    for subject in subjects:
        for key in subject.said:
            for word in pool.spellings[key]:
                bearing.setdefault(word, []).append((subject.field, subject.worth))
    return bearing


def _rarity(number: int, total: int) -> float:
    return log(1 + (total - number + 0.5) / (number + 0.5)) ** 2


def _spread(
    pool: LinePool, own: Mapping[Passage, float], best: Mapping[int, float], likely: Mapping[str, float]
) -> dict[Passage, float]:
    """Give passages a share in the score of neighbouring messages, and weigh them by size and speaker."""
    order, rank = pool.order, pool.rank
    ranked = {rank[index]: score for index, score in best.items()}
    around = beside(ranked, len(order))
    scores: dict[Passage, float] = {}
    for place in ranked.keys() | around.keys():
        index, share = order[place], around.get(place, 0.0)
        speaker = likely.get(pool.readings[index].role, 1.0)
        for passage in pool.passages(index):
            score = (own.get(passage, 0.0) + share) * speaker
            if score > 0.0:
                scores[passage] = score / sqrt(pool.size(passage) + OPENING)
    return scores


def render(pool: LinePool, positions: Sequence[int]) -> str:
    """Write the block of quotes; empty when there are none."""
    return marks.framed(marks.QUOTES, rows.render(pool, positions)) if positions else ""
