"""Need: how surely a message is about something that was said in the folded part.

Most questions and instructions ask for something new, and a message that is about the past does not say so. It is about the past more surely, the more of these
signs it has:

- The folded part has the words that are marked as familiar (*the shed*).
- One message of the folded part has several of its words together.
- The speaker says *I* or *my*.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from math import log
from typing import Final

from gateway.context.choose.lookup import distinguishes, pinned_factor
from gateway.context.choose.salience import salience
from gateway.context.read.familiar import familiar_words, speaks_of_speaker
from gateway.context.read.instructions import is_about_what_is_at_hand, is_errand
from gateway.context.read.questions import wants_to_know
from gateway.context.read.words import Word, words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import FAMILY_WORD

UNKNOWN_FAMILIAR_WORD: Final = -0.5
"""Points of a familiar word that the folded part does not have."""
OF_SPEAKER: Final = 1.0
"""Points of a message that speaks of its speaker."""
OF_QUESTION: Final = 0.75
"""Points of a question."""
AT_HAND: Final = -1.0
"""Points of a message about what is in it or in the last answer: *fix this*."""


def need(pool: LinePool, message: str, pinned_words: Collection[str] = ()) -> float:
    """Return the points of a message that may need the folded part; `MessageWords` says what a word counts."""
    familiar = {word.key for word in familiar_words(message)}
    others = {word.key for word in words(message)} - familiar
    message_words = MessageWords(pool, (*sorted(others), *sorted(familiar)), pinned_words)
    known = sum([message_words.worth.get(key, UNKNOWN_FAMILIAR_WORD * salience(key)) for key in sorted(familiar)])
    return (
        known
        # Some message has each of the words, so only what is more than one of them counts.
        + max(message_words.most_together() - 1.0, 0.0)
        + (OF_SPEAKER if speaks_of_speaker(message) else 0.0)
        + (OF_QUESTION if wants_to_know(message) and not is_errand(message) else 0.0)
        + (AT_HAND if is_about_what_is_at_hand(message) else 0.0)
    )


class MessageWords:
    """Which messages of the folded part have which words of a message, and what these words count.

    A word that one message has counts 1, a word that more have less. A word counts less if the folded part has only words that begin like it, if
    pinned messages have it, or if it says little in any conversation.

    A word of the folded part that begins like two of the message counts for one of them: the word itself if it is one of the two,
    else the later one of ``keys``.
    """

    def __init__(self, pool: LinePool, keys: Sequence[str], pinned_words: Collection[str]) -> None:
        self._pool = pool
        self._pinned_words = pinned_words
        in_order = sorted(keys, key=pool.spellings.__contains__)
        key_of = {word: key for key in in_order for word in spellings_of(pool, key)}
        self._keys_of_messages = [{key_of[word] for word in said & key_of.keys()} for said in pool.words_of.values()]
        self._counts = Counter(chain.from_iterable(self._keys_of_messages))
        """By word the number of messages that have it."""
        self.worth = {key: self._worth(key) for key in self._counts}
        """By word that some message has its points."""

    def _worth(self, key: str) -> float:
        """Return the points of a word; 0 if so many messages have it that it distinguishes none."""
        number, count = len(self._keys_of_messages), self._counts[key]
        if number == 1 or not distinguishes(count, number):
            return 0.0
        points = salience(key) * (1.0 if key in self._pool.spellings else FAMILY_WORD)
        return points * pinned_factor(key, self._pinned_words) * log(number / count) / log(number)

    def most_together(self) -> float:
        """Return the points of the words that one message has together, of the message with the most."""
        return max([sum([self.worth[key] for key in sorted(keys)]) for keys in self._keys_of_messages], default=0.0)


def spellings_of(pool: LinePool, key: str) -> list[Word]:
    """Return the words of the folded part that spell a word; if there are none, those that begin like it."""
    same = pool.spellings.get(key)
    return list(same) if same else [word for other in pool.family_of(key) for word in pool.spellings[other]]
