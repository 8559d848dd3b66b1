"""Vocabularies: how many tokens a text has, by the exact vocabulary where one is carried, else by classes of characters.

Texts are encoded as ordinary text: a special token spelled out in a hostile text hides nothing. A vocabulary is loaded at its
first use and stays. The Rust package that carries them may be missing, or panic (its panics derive from BaseException): then the
estimate answers. It holds the interpreter's lock while it works, so long texts are counted in pieces; whoever counts in a thread
lets others run between them.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

VOCABULARIES: Final = frozenset(
    {
        "o200k_base", "cl100k_base", "llama2", "llama3", "deepseek_v3", "phi4", "mistral_v1", "mistral_v2", "mistral_v3",
        "gemma4", "glm4", "kimi_k2", "kimi_k3", "qwen3",
    }
)  # fmt: skip
"""What the package carries and we use. ``gemma4`` counts as Gemma 2 and 3 do, and 20 times faster than their SentencePiece form."""

PIECE: Final = 32_000
"""Characters counted in one call: 1-2 ms of ordinary text, at most about 30 ms of the most hostile."""

REMEMBERED: Final = 16_384
"""Counts kept per vocabulary and generation: at most some 5 MB, for the texts themselves are not kept."""


def count(text: str, vocabulary: str) -> int:
    """Count the tokens of a text; by an unknown vocabulary they are estimated."""
    if not text:
        return 0
    if len(text) <= PIECE:
        return _count(text, vocabulary)
    return sum(_count(piece, vocabulary) for piece in pieces(text))


@cache
def counting(vocabulary: str) -> Callable[[str], int]:
    """Answer a function that counts texts by a vocabulary and remembers what it counted.

    Remembered by the text's hash: 64 bits under a key that is secret to the process, so that two of some ten thousand texts share one
    less than once in 10^11. Two generations: what was asked for since the last change of generation survives it.
    """
    young: dict[int, int] = {}
    old: dict[int, int] = {}

    def remembered(text: str) -> int:
        nonlocal young, old
        key = hash(text)
        found = young.get(key)
        if found is None:
            found = old.get(key)
            if found is None:
                found = count(text, vocabulary)
            if len(young) >= REMEMBERED:
                old, young = young, {}
            young[key] = found
        return found

    def knows(text: str) -> bool:
        key = hash(text)
        return key in young or key in old

    _KNOWS[vocabulary] = knows
    return remembered


_KNOWS: Final[dict[str, Callable[[str], bool]]] = {}


def known(text: str, vocabulary: str) -> bool:
    """Whether a text was counted before and is remembered."""
    counting(vocabulary)
    return _KNOWS[vocabulary](text)


def loaded(vocabulary: str) -> bool:
    """Whether counting can begin without loading anything."""
    return vocabulary not in VOCABULARIES or vocabulary in _LOADED


def preload(vocabulary: str) -> None:
    """Load a vocabulary now, and let it build what it builds at its first long text."""
    count(
        "The first text is slower than all others: what a vocabulary needs is built when it is needed. " * 100,
        vocabulary,
    )


def _count(text: str, vocabulary: str) -> int:
    encode, frame = _encoder(vocabulary)
    if encode is None:
        return estimate(text)
    try:
        return len(encode(text)) - frame
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a panic of Rust is no Exception
        return estimate(text)


_LOADED: Final[set[str]] = set()


@cache
def _encoder(vocabulary: str) -> tuple[Any, int]:
    """The encoding function, and how many tokens it puts around any text: a begin mark belongs to the request, not to each text."""
    if vocabulary not in VOCABULARIES:
        return None, 0
    _LOADED.add(vocabulary)
    try:
        encode = importlib.import_module("splintr").Tokenizer.from_pretrained(vocabulary).encode_ordinary
        return encode, len(encode(""))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a missing or broken wheel: the estimate answers
        return None, 0


# Where a text can be cut without changing its tokens: every vocabulary here begins a new token at a space before a letter
# that follows a letter, and at what follows the end of a line.
_SEAM: Final = re.compile(r"(?<=[^\W\d_])(?= [^\W\d_])|(?<=\n)(?=[^\s/])")
_LOOK_BACK: Final = 2_000


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Cut a long text into pieces that count as the whole does; where no seam is near, a cut costs a token or two."""
    start = 0
    while len(text) - start > size:
        end = start + size
        seams = [seam.start() for seam in _SEAM.finditer(text, end - _LOOK_BACK, end)]
        cut = seams[-1] if seams else end
        yield text[start:cut]
        start = cut
    yield text[start:]


_CLASSES: Final = re.compile(
    r"([A-Z]?[a-z]+|[A-Z]+)|([0-9]{1,3})|([\u0080-\u2e7f]+)|([\u2e80-\uffff])|([\U00010000-\U0010ffff])|(\s+)|[^\w\s]|_"
)


def estimate(text: str) -> int:
    """Guess the tokens of a text from classes of its characters, leaning to too many.

    A Latin word (or part of aMixedOne) is a token and one more for each further six letters; so are three digits, a mark, 16 blanks
    beyond the one before a word. Other alphabets take one for two letters, Chinese, Japanese and Korean one a sign, what lies
    beyond the basic plane two.
    """
    total = 0
    for found in _CLASSES.finditer(text):
        kind = found.lastindex
        length = found.end() - found.start()
        if kind == 1:
            total += 1 + (length - 1) // 6
        elif kind == 3:
            total += (length + 1) // 2
        elif kind == 5:
            total += 2
        elif kind == 6:
            total += (length + 14) // 16
        else:
            total += 1
    return total
