"""Patterns over the controlled language of `wording`.

A pattern is a sequence of words: ``over (length|token)* context``. A word may be optional (``?``) or repeated (``*``).
So may a choice in parentheses, whose alternatives may have several words. ``#`` is any number, ``#limit`` captures a
number under that name, ``#1`` is exactly that number, ``#negative`` is a number below zero. ``^`` and ``$`` are the
ends of a statement. Words in capitals are replaced by the phrases of ``parts``.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

MOST_TIMES: Final = "{0,6}"
"""How often ``*`` repeats. Choices overlap (``limit``, ``limit prompt``), so without a bound a statement of sixty words, which may quote
a user, takes minutes to read in all the ways there are. All recorded refusals are read as they are without one."""
_ELEMENT: Final = re.compile(r"(?:\(([^()]*)\)|([^\s()?*]+))([?*]?)")


class Phrase(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """A pattern; words in capitals are replaced by the phrases in ``parts``. It is compiled when it is first searched for, because a start needs none."""

    pattern: str
    parts: Mapping[str, str] = {}

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return _compiled(self.pattern, self.parts)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Find the pattern in a text of the controlled language, from a position."""
        return self.compiled.search(text, start)


def _compiled(pattern: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    for name, part in parts.items():
        pattern = re.sub(rf"\b{name}\b", lambda _, part=part: part, pattern)  # type: ignore[misc]
    start = "^ " if pattern.startswith("^") else " "
    elements = [_element(*found.groups()) for found in _ELEMENT.finditer(pattern.removeprefix("^").removesuffix("$"))]
    return re.compile(start + "".join(elements) + ("$" if pattern.endswith("$") else ""))


def _element(choice: str | None, word: str | None, times: str) -> str:
    alternatives = (choice or word or "").split("|")
    regex = "|".join("".join(_word(word) + " " for word in alternative.split()) for alternative in alternatives)
    return regex if word and not times else f"(?:{regex}){MOST_TIMES if times == '*' else times}"


def _word(word: str) -> str:
    if word == "#":
        return r"#-?\d+"
    if word == "#negative":
        return r"#-\d+"
    if re.fullmatch(r"#[a-z]+", word):
        return rf"(?P<{word[1:]}>#\d+)"
    return re.escape(word)
