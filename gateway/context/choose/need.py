"""Need: how surely an instruction is about something that was said in the folded part.

Most instructions ask for something new, and one that is about the past does not say so. Three signs tell them apart: what is marked as
familiar was said in the folded part; one message has several of the words together; the speaker says *I* or *my*.
"""

from collections import Counter
from collections.abc import Collection
from math import log
from typing import Final

from gateway.context.choose.lookup import distinguishes
from gateway.context.choose.salience import salience
from gateway.context.read.cues import asks
from gateway.context.read.familiar import familiar_words, speaks_of_speaker
from gateway.context.read.instructions import is_about_what_is_at_hand, is_errand
from gateway.context.read.words import Word, words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import FAMILY_WORD, PINNED_WORD

UNKNOWN_FAMILIAR_WORD: Final = -0.5
"""Points of a familiar word that the folded part does not have."""
OF_SPEAKER: Final = 1.0
"""Points of an instruction that speaks of its speaker."""
OF_QUESTION: Final = 0.75
"""Points of a question."""
AT_HAND: Final = -1.0
"""Points of an instruction about what is in the message or in the last answer: *fix this*."""


def need(pool: LinePool, instruction: str, pinned_words: Collection[str] = ()) -> float:
    """Return the points of an instruction that may need the folded part. A word that one message has counts 1, a word that more have less.

    Words that are together in one message count as far as they are more than one word: some message has each of them.
    """
    number = len(pool.words_of)
    familiar = {word.key for word in familiar_words(instruction)}
    keys = familiar | {word.key for word in words(instruction)}
    spelled = {word: key for key in keys for word in _spellings(pool, key)}
    found = [{spelled[word] for word in said & spelled.keys()} for said in pool.words_of.values()]
    counts = Counter(key for keys_of_message in found for key in keys_of_message)
    worth = {
        key: salience(key)
        * (1.0 if key in pool.spellings else FAMILY_WORD)
        * (PINNED_WORD if key in pinned_words else 1.0)
        * log(number / counts[key])
        / log(number)
        for key in counts
        if number > 1 and distinguishes(counts[key], number)
    }
    known = sum(
        [worth.get(key, 0.0) if key in counts else UNKNOWN_FAMILIAR_WORD * salience(key) for key in sorted(familiar)]
    )
    together = max(
        [sum([worth.get(key, 0.0) for key in sorted(keys_of_message)]) for keys_of_message in found], default=0.0
    )
    return (
        known
        + max(together - 1.0, 0.0)
        + (OF_SPEAKER if speaks_of_speaker(instruction) else 0.0)
        + (OF_QUESTION if asks(instruction) and not is_errand(instruction) else 0.0)
        + (AT_HAND if is_about_what_is_at_hand(instruction) else 0.0)
    )


def _spellings(pool: LinePool, key: str) -> list[Word]:
    """Return the words of the folded part that spell a word; if there are none, those that begin like it."""
    same = pool.spellings.get(key)
    return list(same) if same else [word for other in pool.family_of(key) for word in pool.spellings[other]]
