"""Compute which words tell little in any conversation: ``python -m benchmarks.recall.salience`` writes `salience.txt`.

Needs the extra ``semantic``. Of all words that are one part in wordllama's vocabulary, the stems are taken; the length of the sum of a
stem's parts says how much it tells. Whole words alone are listed, so that what is rare or in other languages than those of the vocabulary is left as it is.
"""

from math import sqrt
from pathlib import Path
from typing import Final

from gateway.context.choose import embedding
from gateway.context.read.words import stem

TABLE: Final = Path(embedding.__file__).with_name("salience.txt")
EMPTY: Final = 7.0
"""Length of a vector below which a word tells least: *what*, *said*, *thing*. The mean of all parts is 13.8."""
COMMON: Final = 14.0
"""Length below which it is a common one: *name*, *time*."""


def rows() -> list[list[str]]:
    """Return the stems below each of the two lengths, sorted."""
    vectors = embedding.load()
    if vectors is None:
        raise SystemExit(f"salience {embedding.missing()}")
    whole = [part[1:] for part in vectors.parts.numbers if part.startswith("▁")]
    stems = sorted({stem(word) for word in whole if word.isalpha() and word.islower() and len(word) > 2})
    lengths = {key: _length(vectors, key) for key in stems}
    return [[key for key in stems if low <= lengths[key] < high] for low, high in ((0.0, EMPTY), (EMPTY, COMMON))]


def _length(vectors: embedding.Embedding, word: str) -> float:
    total = vectors.rows[list(vectors.parts.of(word))].sum(axis=0, dtype="int64")
    return sqrt(int((total * total).sum())) / embedding.STEPS


def write(table: Path, found: list[list[str]]) -> None:
    """Write the two rows of stems of a table, and print how many they are."""
    table.write_text("".join(f"{' '.join(row)}\n" for row in found), "utf-8")
    print(f"{table}: {' and '.join(str(len(row)) for row in found)} stems")


if __name__ == "__main__":
    write(TABLE, rows())
