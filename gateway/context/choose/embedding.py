"""Embedding: how near texts are in meaning, by vectors of the parts of their words.

The vectors are those of the package wordllama, an extra: 256 numbers for each of 32,000 parts of words, learned by its
authors from pairs of questions and answers, mostly English. Only its two data files are read; its code is never imported.

All sums are sums of whole numbers, and IEEE 754 prescribes the rounding of every other step. So every platform and every
replica computes the same values.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from math import sqrt
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.wire.memory import Memory, Recent

if TYPE_CHECKING:
    from numpy import int8
    from numpy.typing import NDArray

PACKAGE: Final = "wordllama"
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
REMEDY: Final = "pip install 'turnfold[semantic]'"

STEPS: Final = 16
"""Whole numbers for one unit of the package's weights, which lie between -8.1 and 8.1: with these, a part of a word is one
row of bytes."""
LENGTH: Final = 400
"""Length of a stored vector: its 256 numbers are bytes. The largest of a passage is seldom beyond 0.3 of its length."""
MOST_CHARACTERS: Final = 1_000
"""The most characters of a text that are read: the first of a passage; the last of a question, which ends with what it asks."""
VECTOR_BYTES: Final = 256 + 33 + 32 + 110
"""Bytes of a cached vector: its numbers, the object, its key, its entry in a table. The text is not kept."""
VECTORS_SHARE: Final = 1 / 8
"""Share of the memory's budget for vectors. In 10 MiB it has room for the vectors of 100,000 tokens."""
_WORD: Final = re.compile(r"[^\W_]+")
_BLANK: Final = "▁"
"""The mark of the blank before a word, which is part of its first part."""
_BYTES: Final = 3
"""The row of the byte 0: those of all bytes follow each other, for characters that have no row of their own."""


class Vectors:
    """Vectors of passages by the hash of their text, as far as the memory's budget allows.

    64 bits under a key that is secret to the process: of ten thousand texts two share a hash less than once in 10^11.
    """

    __slots__ = ("known",)

    def __init__(self, memory: Memory) -> None:
        self.known: Recent[int, bytes] = Recent(memory, lambda key, vector: VECTOR_BYTES, VECTORS_SHARE)


class Embedding:
    """The vectors of parts of words. One object serves all threads: it is never changed."""

    __slots__ = ("_np", "parts", "rows")

    def __init__(self, parts: "Parts", rows: "NDArray[int8]") -> None:
        self._np: Any = importlib.import_module("numpy")
        self.parts = parts
        self.rows = rows
        """The vector of each part, by its number: `STEPS` for one unit of the package's."""

    def nearness(self, question: str, passages: Sequence[str], memory: Memory) -> list[float]:
        """Return how near each passage is to a question, in standard deviations above the mean of all; never negative."""
        if not passages:
            return []
        np = self._np
        known = memory.part(Vectors, lambda: Vectors(memory)).known
        rows = np.frombuffer(b"".join(self._remembered(passages, known)), np.int8).reshape(len(passages), -1)
        query_vector = np.frombuffer(self.vectors([question[-MOST_CHARACTERS:]])[0], np.int8)
        products: list[int] = np.dot(rows.astype(np.int32), query_vector.astype(np.int32)).tolist()
        return above_mean(products)

    def _remembered(self, texts: Sequence[str], known: Recent[int, bytes]) -> list[bytes]:
        """Return the vectors of texts: those that are ``known``, and new ones, which are added to them."""
        keys = list(map(hash, texts))
        found = {key: vector for key in keys if (vector := known.get(key)) is not None}
        missing = {key: text[:MOST_CHARACTERS] for key, text in zip(keys, texts, strict=True) if key not in found}
        for key, vector in zip(missing, self.vectors(list(missing.values())), strict=True):
            found[key] = known.put(key, vector)
        return [found[key] for key in keys]

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return for each text the sum of the vectors of its parts, scaled to `LENGTH`, as bytes."""
        np = self._np
        sums = np.zeros((len(texts), self.rows.shape[1]), np.int64)
        for at, rows in enumerate(self._cut(texts)):
            if rows:
                self.rows.take(rows, axis=0).sum(axis=0, dtype=np.int32, out=sums[at])
        lengths = np.sqrt(np.maximum((sums * sums).sum(axis=1), 1).astype(np.float64))
        rounded = np.rint(sums * LENGTH / lengths[:, None])
        return [vector.tobytes() for vector in np.clip(rounded, -127, 127).astype(np.int8)]

    def _cut(self, texts: Iterable[str]) -> Iterator[list[int]]:
        """Yield for each text the rows of the parts of its words."""
        known: dict[str, tuple[int, ...]] = {}
        for text in texts:
            parts: list[int] = []
            for word in _WORD.findall(text.lower()):
                if word not in known:
                    known[word] = self.parts.of(word)
                parts += known[word]
            yield parts


def above_mean(values: Sequence[int]) -> list[float]:
    """Return by how many standard deviations each value is above the mean of all; 0 for a value below the mean."""
    number = len(values)
    total = sum(values)
    spread = sqrt(max(number * sum([value * value for value in values]) - total * total, 0))
    if not spread:
        return [0.0] * number
    return [max((number * value - total) / spread, 0.0) for value in values]


class Parts:
    """The parts into which words are split: from a word's beginning on, the longest part that fits.

    The package itself joins frequent parts first. This takes time by the square of a word's length, and questions about chats
    find no more with it.
    """

    __slots__ = ("_longest", "numbers")

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.numbers = numbers
        """The number of each part's row."""
        self._longest: dict[str, int] = {}
        """For each first character the length of the longest part. It is 1 for rare characters, so they need one look-up each."""
        for part in numbers:
            if part.strip(_BLANK).isalnum() and len(part) > self._longest.get(part[0], 0):
                self._longest[part[0]] = len(part)

    def of(self, word: str) -> tuple[int, ...]:
        """Return the rows of a word's parts."""
        text = f"{_BLANK}{word}"
        whole = self.numbers.get(text)
        if whole is not None:
            return (whole,)
        found: list[int] = []
        at = 0
        while at < len(text):
            for end in range(min(at + self._longest.get(text[at], 1), len(text)), at, -1):
                if (number := self.numbers.get(text[at:end])) is not None:
                    found.append(number)
                    at = end
                    break
            else:
                found += [_BYTES + byte for byte in text[at].encode("utf-8", "surrogatepass")]
                at += 1
        return tuple(found)


def missing() -> str:
    """Return what this installation lacks for vectors, and the remedy; empty if it lacks nothing. Nothing is loaded."""
    absent = [name for name in ("numpy", PACKAGE) if find_spec(name) is None]
    if absent:
        return f"needs {' and '.join(absent)}: {REMEDY}"
    return (
        "" if all(map(_path_of, (_WEIGHTS, _TOKENIZER))) else f"finds no vectors in the installed {PACKAGE}: {REMEDY}"
    )


_LOADING: Final = Lock()
"""While a thread loads the vectors, other threads wait, so that they are loaded once."""


def load() -> Embedding | None:
    """Return the vectors, loaded at first use: 0.3 s and 25 MB with numpy; None if the packages are missing or broken."""
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> Embedding | None:
    try:
        with open(_path_of(_WEIGHTS), "rb") as weights, open(_path_of(_TOKENIZER), "rb") as tokenizer:
            return read(weights.read(), tokenizer.read())
    except Exception:  # noqa: BLE001  # with a broken package, questions are searched by words alone
        return None


class _Model(msgspec.Struct):
    vocab: dict[str, int]


class _Tokenizer(msgspec.Struct):
    model: _Model


def read(weights: bytes, tokenizer: bytes) -> Embedding:
    """Read the package's files: a table of 16-bit floats behind a header of JSON, whose size its first 8 bytes say, and a
    vocabulary as JSON."""
    np = importlib.import_module("numpy")
    header = int.from_bytes(weights[:8], "little")
    (table,) = [entry for name, entry in msgspec.json.decode(weights[8 : 8 + header]).items() if name != "__metadata__"]
    if table["dtype"] != "F16":
        raise ValueError(f"weights of type {table['dtype']}")
    start, end = table["data_offsets"]
    given = np.frombuffer(weights, "<f2", (end - start) // 2, 8 + header + start).reshape(table["shape"])
    rows = np.empty(given.shape, np.int8)
    for at in range(0, len(rows), 1000):  # so that no second table of larger numbers is made
        rows[at : at + 1000] = np.clip(np.rint(given[at : at + 1000].astype(np.float32) * STEPS), -127, 127)
    numbers = msgspec.json.decode(tokenizer, type=_Tokenizer).model.vocab
    if max(numbers.values()) >= len(rows):
        raise ValueError("a part of a word without a vector")
    return Embedding(Parts(numbers), rows)


def _path_of(name: str) -> str:
    """Return the path of a file of the package; empty without the package. The package is found and not imported."""
    package = find_spec(PACKAGE)
    for folder in package.submodule_search_locations or () if package is not None else ():
        with suppress(OSError), open(f"{folder}/{name}", "rb"):
            return f"{folder}/{name}"
    return ""
