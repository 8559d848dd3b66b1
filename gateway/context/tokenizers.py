"""Vocabularies: how many tokens a text has, by the exact vocabulary where one is carried, else by classes of characters.

Texts are encoded as ordinary text: a special token spelled out in a hostile text hides nothing. A vocabulary is loaded at its first
use. The Rust package that carries them may be missing, or panic (its panics derive from BaseException): then the estimate answers.
"""

import importlib
from functools import cache
from typing import Any, Final

VOCABULARIES: Final = frozenset(
    {
        "o200k_base", "cl100k_base", "llama2", "llama3", "deepseek_v3", "phi4", "mistral_v1", "mistral_v2", "mistral_v3",
        "gemma2", "gemma3", "glm4", "kimi_k2", "kimi_k3", "qwen3",
    }
)  # fmt: skip


def count(text: str, vocabulary: str) -> int:
    """Count the tokens of a text; an unknown vocabulary is estimated."""
    encode = _encoder(vocabulary)
    if encode is None:
        return estimate(text)
    try:
        return len(encode(text)) - _frame(vocabulary)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a panic of Rust is no Exception
        return estimate(text)


def estimate(text: str) -> int:
    """Guess the tokens of a text from its characters, leaning to too many."""
    return (len(text.encode("utf-8", "replace")) + 2) // 3


@cache
def _encoder(vocabulary: str) -> Any:
    if vocabulary not in VOCABULARIES:
        return None
    try:
        return importlib.import_module("splintr").Tokenizer.from_pretrained(vocabulary).encode_ordinary
    except Exception:  # noqa: BLE001  # a missing or broken wheel: the estimate answers
        return None


@cache
def _frame(vocabulary: str) -> int:
    """Tokens the encoder puts around any text (a begin-of-text mark): they belong to the request, not to each text."""
    encode = _encoder(vocabulary)
    return len(encode("")) if encode else 0
