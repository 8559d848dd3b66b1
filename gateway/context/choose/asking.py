"""Asking: how surely a message asks for something that was said in the folded part.

*When did the boiler man say he comes?* asks for it. *When does milk go off?* does not: it is a question, but for something else. *Ruben needs the
restore time for his plan, and the size* asks, although it is no question. *Ruben needs a new plan* does not ask.

A message asks more surely, the more of these signs it has:

- its words sound like such a request;
- it is about as long as a question;
- it has a question word, or the form of a question;
- it has no word that was never said;
- its subject was spoken of (`need`).
"""

from collections.abc import Collection
from math import log
from typing import Final, NamedTuple

from gateway.context.choose.need import need, spellings_of
from gateway.context.choose.salience import salience
from gateway.context.read.instructions import has_frame, request_in, without_frame
from gateway.context.read.learned import request_points
from gateway.context.read.question_words import positions_of_question_words
from gateway.context.read.questions import SHORT_QUESTION_CHARACTERS, is_speech, size, wants_to_know
from gateway.context.read.subject import names_a_subject
from gateway.context.read.words import words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import (
    ASKING_AMONG_OTHERS,
    ASKING_BIAS,
    ASKING_FORM,
    ASKING_IN_FRAME,
    ASKING_IN_SPEECH,
    ASKING_LARGE,
    ASKING_NEED,
    ASKING_QUESTION_WORD,
    ASKING_SMALL,
    ASKING_SMALL_CHARACTERS,
    ASKING_UNKNOWN,
    ASKING_WORDING,
)

WEIGHTS: Final = (
    ASKING_WORDING,
    ASKING_SMALL,
    ASKING_LARGE,
    ASKING_QUESTION_WORD,
    ASKING_FORM,
    ASKING_UNKNOWN,
    ASKING_NEED,
)
"""The weight of each sign, in the order of `signs`. The second and the third one are for the length."""
MOST_NEED: Final = 3.0
"""Points of `need` that count. A long message has many, because it names many things."""


class AskingPart(NamedTuple):
    """The part of a message that asks for something that was said."""

    points: float
    """How surely it asks: a logarithm of odds."""
    text: str
    """The words to search for: all of the message, or some of its sentences."""


def surest_part(pool: LinePool, message: str, pinned_words: Collection[str] = ()) -> AskingPart:
    """Return the part of a message that most surely asks: all of it, or those sentences of a longer one that have the form of a question or an
    instruction. Of an instruction only its subject is judged, if that asks more surely (*a note about when the launch is*)."""
    found = [AskingPart(asking_points(pool, message, pinned_words), message)]
    part = request_in(message) if len(message) > SHORT_QUESTION_CHARACTERS else ""
    if part and names_a_subject(part):
        around = ASKING_IN_SPEECH if is_speech(message) else ASKING_AMONG_OTHERS
        found.append(AskingPart(asking_points(pool, part, pinned_words) + around, part))
    if has_frame(message) and names_a_subject(subject := without_frame(message)):
        found.append(AskingPart(asking_points(pool, subject, pinned_words) + ASKING_IN_FRAME, message))
    return max(found)


def asking_points(pool: LinePool, message: str, pinned_words: Collection[str] = ()) -> float:
    """Return how surely a text asks for something that was said: a logarithm of odds."""
    found = signs(pool, message, pinned_words)
    return ASKING_BIAS + sum([weight * sign for weight, sign in zip(WEIGHTS, found, strict=True)])


def signs(pool: LinePool, message: str, pinned_words: Collection[str] = ()) -> tuple[float, ...]:
    """Return the signs of a message, in the order of `WEIGHTS`."""
    characters, small = log(max(size(message), 1)), log(ASKING_SMALL_CHARACTERS)
    has_question_word = len(message) <= SHORT_QUESTION_CHARACTERS and bool(positions_of_question_words(message))
    return (
        request_points(message),
        min(characters, small),
        max(characters - small, 0.0),
        float(has_question_word),
        float(wants_to_know(message)),
        unknown_share(pool, message),
        min(need(pool, message, pinned_words), MOST_NEED),
    )


def unknown_share(pool: LinePool, message: str) -> float:
    """Return the share of a message's words, by what they say, that the folded part does not have."""
    saliences = {word.key: salience(word.key) for word in words(message)}
    total = sum(saliences.values())
    unknown = [each for key, each in saliences.items() if not spellings_of(pool, key)]
    return sum(unknown) / total if total else 1.0
