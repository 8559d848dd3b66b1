"""Replaced statements: find older statements whose value a newer statement in the same words replaces.

Only sentences are compared. The older statement of a pair is replaced if both share rare words and differ in a value of the
same shape. Only the newer one is worth quoting, because the older contradicts it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from math import fsum
from typing import Final, NamedTuple

from gateway.context.read.words import CODE, DATE, IDENT, NAME, NUMBER, SYMBOL, Word
from gateway.context.weigh.folded_lines import FoldedLines, user_messages_of
from gateway.context.weigh.statements import describing_words, is_statement
from gateway.context.weights import LEAST_COMMON_RARITY, LEAST_COMMON_SHARE, LEAST_COMMON_SHARE_BESIDE_NAMES

MOST_STATEMENTS_WITH_WORD: Final = 8
"""A word in more statements distinguishes none of them."""
MOST_VALUES: Final = 3
"""The most values of a statement. Chosen: a sentence with more values is a list, which a newer sentence seldom replaces."""
WORDS_BESIDE_VALUE: Final = 3
"""Number of words on each side of a value that describe it."""
_VALUES: Final = frozenset({NUMBER, CODE, SYMBOL, DATE, IDENT})


class _StatementParts(NamedTuple):
    """A sentence's values, each with its shape, and the words that describe them."""

    values: dict[str, str]
    shapes: frozenset[str]
    names: frozenset[str]
    describing_words: frozenset[str]
    words_near_values: frozenset[str]
    """The describing words beside a value. In a long sentence only these describe it."""


def _parts_of(words: tuple[Word, ...]) -> _StatementParts:
    """Return the parts of a sentence with these words."""
    values: dict[str, str] = {}
    names: list[str] = []
    words_beside: set[str] = set()
    for position, word in enumerate(words):
        shape = word.shape
        if shape in _VALUES:
            values[word.key] = _value_shape(word)
            words_beside.update(
                [other.key for other in words[max(position - WORDS_BESIDE_VALUE, 0) : position + WORDS_BESIDE_VALUE]]
            )
        elif shape is NAME and position:
            names.append(word.key)
    plain = frozenset(describing_words(words))
    return _StatementParts(values, frozenset(values.values()), frozenset(names), plain, plain & words_beside)


class _Statement:
    """A sentence and its position."""

    def __init__(self, position: int, message: int, words: tuple[Word, ...]) -> None:
        self.position = position
        self.message = message
        self.words = words

    @cached_property
    def parts(self) -> _StatementParts:
        """Computed at the first comparison: most statements never need it."""
        return _parts_of(self.words)


def replaced_positions(pool: FoldedLines) -> set[int]:
    """Return the positions of the user's statements that a newer one replaces, and of answers that only repeat them."""
    statement_counts, spellings = pool.tally.counts.statements, pool.tally.spellings
    distinguishing = frozenset(
        [key for key, number in statement_counts.items() if 1 < number <= MOST_STATEMENTS_WITH_WORD]
    )
    if not distinguishing:
        return set()
    replaced: set[int] = set()
    lost_values: dict[str, list[_Statement]] = {}
    statements = _statements(pool, frozenset([word for key in distinguishing for word in spellings[key]]))
    for newer, older in _pairs_with_common_words(statements, distinguishing):
        if older.position not in replaced and _replaces(newer.parts, older.parts, pool.rarity):
            replaced.add(older.position)
            for key in older.parts.values.keys() - newer.parts.values.keys():
                lost_values.setdefault(key, []).append(newer)
    return replaced | _repeating_answers(pool, lost_values) if lost_values else replaced


def _statements(pool: FoldedLines, distinguishing_words: frozenset[Word]) -> list[_Statement]:
    """Return the user's statements that have one of these words."""
    return [
        _Statement(position, reading.message, line.words)
        for reading in user_messages_of(pool)
        for position, line in zip(pool.positions[reading.message], reading.lines, strict=True)
        if not distinguishing_words.isdisjoint(line.words) and is_statement(line)
    ]


def _pairs_with_common_words(
    statements: Iterable[_Statement], distinguishing: frozenset[str]
) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield each statement with each of an older message with which it shares one of these words, in their order."""
    statements_with: dict[str, list[_Statement]] = {}
    for newer in statements:
        shared = [key for key in describing_words(newer.words) if key in distinguishing]
        for older in dict.fromkeys(chain.from_iterable([statements_with.get(key, ()) for key in shared])):
            if older.message < newer.message:
                yield newer, older
        for key in shared:
            statements_with.setdefault(key, []).append(newer)


def _repeating_answers(pool: FoldedLines, lost_values: Mapping[str, list[_Statement]]) -> set[int]:
    """Return the positions of answers that repeat a user's replaced statement and are older than the new one.

    ``lost_values`` has by value of a replaced statement the statements that replaced it.
    """
    lost_words = frozenset([word for key in lost_values for word in pool.tally.spellings[key]])
    repeating: set[int] = set()
    for reading in pool.readings.values():
        if reading.role == "user":
            continue
        for position, line in zip(pool.positions[reading.message], reading.lines, strict=True):
            if lost_words.isdisjoint(line.words) or not is_statement(line):
                continue
            answer = _parts_of(line.words)
            changes = [
                newer for key in answer.values for newer in lost_values.get(key, ()) if newer.message > reading.message
            ]
            if any(_replaces(newer.parts, answer, pool.rarity) for newer in changes):
                repeating.add(position)
    return repeating


def _replaces(newer: _StatementParts, older: _StatementParts, rarity: Mapping[str, float]) -> bool:
    """Return whether a newer statement replaces an older one.

    Both must have enough rare words in common. If they have values, one of the older statement's is missing in the newer one,
    which has another of the same shape. If they have none, they are nearly the same sentence with another name.
    """
    if bool(older.values) != bool(newer.values):
        return False
    # Names that differ belong to the value: a street, a city.
    lost_names, new_names = older.names - newer.names, newer.names - older.names
    common, share = _common_rarity(older.describing_words - lost_names, newer.describing_words - new_names, rarity)
    if older.values:
        common_near, share_near = _common_rarity(
            older.words_near_values - lost_names, newer.words_near_values - new_names, rarity
        )
        if share_near >= LEAST_COMMON_SHARE and common_near >= LEAST_COMMON_RARITY:
            common, share = common_near, share_near
        if len(older.values) > MOST_VALUES or older.shapes.isdisjoint(newer.shapes):
            return False
        lost_shapes = {shape for key, shape in older.values.items() if key not in newer.values}
        new_shapes = {shape for key, shape in newer.values.items() if key not in older.values}
        return not lost_shapes.isdisjoint(new_shapes) and share >= LEAST_COMMON_SHARE and common >= LEAST_COMMON_RARITY
    # Only a name differs: the rest must be nearly the same sentence.
    return (
        bool(lost_names and new_names)
        and share >= LEAST_COMMON_SHARE_BESIDE_NAMES
        and common >= 2 * LEAST_COMMON_RARITY
    )


def _common_rarity(one: frozenset[str], other: frozenset[str], rarity: Mapping[str, float]) -> tuple[float, float]:
    """Return the sum of the rarities of common words, and its share of the smaller set's sum."""
    # Exact sums: a set has no order, and every replica must get the same result.
    common = fsum([rarity.get(key, 1.0) for key in one & other])
    least = min(fsum([rarity.get(key, 1.0) for key in one]), fsum([rarity.get(key, 1.0) for key in other]))
    return common, common / least if least > 0 else 0.0


def _value_shape(word: Word) -> str:
    """Return the shape of a value, so that a date never replaces an order number."""
    return word.shape.name if word.shape is not IDENT else f"{word.shape.name}{word.key[:1].isalpha()}"
