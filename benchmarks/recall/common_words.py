"""Count which words are common in any conversation, by language: ``python -m benchmarks.recall.common_words`` writes `common_words.txt`.

They are counted in the sentences that wishes and requests are learned from (`sentences`), and not in the measured chats. The vectors that
`salience.txt` is computed from know hardly any words but English ones.
"""

from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.recall.learn import CHANGES, REQUESTS, load_sentences
from benchmarks.recall.salience import write
from gateway.context.choose import salience
from gateway.context.read.words import words

TABLE: Final = Path(salience.__file__).with_name("common_words.txt")
EMPTY: Final = 0.01
"""Share of a language's sentences from which on a word tells least."""
COMMON: Final = 0.005
"""The same for other common words. With 0.003 questions find the same, and the table is half as large again."""
LEAST_SENTENCES: Final = 150
"""Sentences of a language. In fewer, one sentence makes a word common."""
LEAST_COUNT: Final = 6
"""Sentences that have a common word: a few may be about the same thing."""


def rows() -> list[list[str]]:
    """Return two sorted rows of stems that are common in a language: those that tell least, and the others."""
    shares = _shares_by_language()
    english = shares.pop("en")
    highest = Counter(english)
    for of_language in shares.values():
        for key, share in of_language.items():
            # *Die* is common in German, but English has it with a meaning.
            if english.get(key, COMMON) >= COMMON:
                highest[key] = max(highest[key], share)
    return [
        sorted([key for key, share in highest.items() if low <= share < high])
        for low, high in ((EMPTY, 1.1), (COMMON, EMPTY))
    ]


def _shares_by_language() -> dict[str, dict[str, float]]:
    """Return for each language with enough sentences the share of them that has a word, by its stem."""
    sentences = [one for folder in (CHANGES.parent, CHANGES, REQUESTS) for one in load_sentences(folder)]
    number = Counter(one.language for one in sentences)
    counts: dict[str, Counter[str]] = {}
    for one in sentences:
        keys = {word.key for word in words(one.text)} - {""}
        counts.setdefault(one.language, Counter()).update(keys)
    return {
        language: {key: count / number[language] for key, count in of_language.items() if count >= LEAST_COUNT}
        for language, of_language in sorted(counts.items())
        if number[language] >= LEAST_SENTENCES
    }


if __name__ == "__main__":
    write(TABLE, rows())
