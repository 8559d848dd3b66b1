"""Asking: how surely a message without a question mark asks for something that was said in the folded part.

*Ruben needs the restore time for his plan, and the size* and *corvane PO number* ask, *Ruben needs a new plan* tells. Four signs tell them apart: the
words sound like a request, one of them is a question word, the message is short, and it speaks only of what was said.
"""

from math import log

from gateway.context.choose.need import spellings_of
from gateway.context.choose.salience import salience
from gateway.context.read.learned import request_points
from gateway.context.read.question_words import places_of_question_words
from gateway.context.read.questions import SHORT_QUESTION_CHARACTERS, size
from gateway.context.read.words import words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import (
    ASKING_BIAS,
    ASKING_LARGE,
    ASKING_QUESTION_WORD,
    ASKING_SMALL,
    ASKING_SMALL_CHARACTERS,
    ASKING_UNKNOWN,
    ASKING_WORDING,
)


def asking(pool: LinePool, message: str) -> float:
    """Return the points of a message: a logarithm of odds."""
    return asking_by_words(message) + ASKING_UNKNOWN * unknown_share(pool, message)


def asking_by_words(message: str) -> float:
    """Return the most points that a message can have, whatever was said."""
    small, large = sizes(message)
    return (
        ASKING_BIAS
        + ASKING_WORDING * request_points(message)
        + ASKING_SMALL * small
        + ASKING_LARGE * large
        + (ASKING_QUESTION_WORD if is_short_with_question_word(message) else 0.0)
    )


def sizes(message: str) -> tuple[float, float]:
    """Return the logarithm of a message's size up to `ASKING_SMALL_CHARACTERS`, and what is beyond."""
    characters, most = log(max(size(message), 1)), log(ASKING_SMALL_CHARACTERS)
    return min(characters, most), max(characters - most, 0.0)


def is_short_with_question_word(message: str) -> bool:
    """Return whether a message is short and has a question word at any place."""
    return len(message) <= SHORT_QUESTION_CHARACTERS and bool(places_of_question_words(message))


def unknown_share(pool: LinePool, message: str) -> float:
    """Return the share of a message's words, by what they say, that the folded part does not have."""
    saliences = {word.key: salience(word.key) for word in words(message)}
    total = sum(saliences.values())
    unknown = [each for key, each in saliences.items() if not spellings_of(pool, key)]
    return sum(unknown) / total if total else 1.0
