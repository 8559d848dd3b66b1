"""Speakers: who of a conversation is likely to have said the answer to a question.

Most chats are between a person, who tells of a life, and an assistant, who does not: the answer is likely the user's. In a
chat between two people both tell of themselves, and a question about one of them by name is likely answered by this one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from gateway.context.choose.cues import self_words, speaks_of_self, speaks_to_other
from gateway.context.choose.weights import OWN_WORDS, UNNAMED
from gateway.context.choose.words import NAME, stem, words
from gateway.wire.message import RESULT_ROLES

MOST_READ: Final = 40_000
"""Characters, the newest, by which a chat between two people is recognised: some 300 messages."""
PERSON: Final = 0.2
"""How often the assistant says *I* beside the user, in as much text, times the same for *my*, from which it speaks of a life of its own. In 16 chats
with an assistant the product is 0.11 at most, in two between friends 0.3 at least. Customer service says *I* as often as people do, and hardly ever *my*."""
LEAST_OWN: Final = 5
"""Times that it says *my*, at least."""
LEAST_NAMED: Final = 2
"""Times that a name is called, or stands before a speaker's words, before it is known."""
_CALLED: Final = re.compile(
    r"(?:^|[,!.?] |\b(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks|[Tt]hank you|Hallo|Danke|Bonjour|Merci|Hola|Gracias|Ciao|Grazie) )([^\W\d_]+)(?=[,.!?])",
    re.M,
)
"""A name that is called: *Hey Ines!*, *You too, Ines.*"""
_WORD: Final = re.compile(r"[^\W\d_]+")
_SIGNED: Final = re.compile(r"^([^\W\d_]+): ", re.M)
"""A name before the words of the one who has it: *Ines: I know.*"""


class Dialogue(NamedTuple):
    """What is known of the speakers of a chat."""

    between_people: bool
    """Whether the assistant's messages are a person's, too."""
    named: Mapping[str, str] = {}
    """By name, as a stem, the role of the person who has it. Known only between people."""


WITH_ASSISTANT: Final = Dialogue(between_people=False)


def dialogue_of(said: Iterable[tuple[str, str]]) -> Dialogue:
    """Return who speaks in a chat. ``said`` has roles and texts of messages or lines, the newest first. A speaker who calls tools is no person."""
    texts: dict[str, list[str]] = {"user": [], "assistant": []}
    left = MOST_READ
    for role, text in said:
        if role in RESULT_ROLES:
            return WITH_ASSISTANT
        if role in texts:
            texts[role].append(text)
            left -= len(text)
            if left <= 0:
                break
    user, assistant = ["\n".join(parts) for parts in texts.values()]
    if not _is_person(assistant, user):
        return WITH_ASSISTANT
    return Dialogue(
        between_people=True, named={**_names(user, assistant, "user"), **_names(assistant, user, "assistant")}
    )


def _is_person(text: str, other: str) -> bool:
    """Return whether the speaker of a text speaks of a life of its own, beside a text of the other speaker."""
    own, others = self_words(text), self_words(other)
    alike = own.all * own.possessive * len(other) ** 2
    return own.possessive >= LEAST_OWN and alike >= PERSON * others.all * others.possessive * len(text) ** 2


def _names(own: str, others: str, role: str) -> dict[str, str]:
    """Return the names of a speaker: those that only the other one calls, and those that only stand before own words."""
    typed = frozenset(chain(_WORD.findall(own), _WORD.findall(others)))
    signed, called = Counter(_SIGNED.findall(own)), Counter(_CALLED.findall(others))
    by_others, by_self = frozenset(_SIGNED.findall(others)), frozenset(_CALLED.findall(own))
    names = [
        *[name for name, number in signed.items() if number >= LEAST_NAMED and name not in by_others],
        *[name for name, number in called.items() if number >= LEAST_NAMED and name not in by_self],
    ]
    # A name is never typed in small letters: "Well," and "Good!" are none.
    return {stem(name): role for name in names if name[0].isupper() and name.lower() not in typed}


def likely(query: str, dialogue: Dialogue) -> Mapping[str, float]:
    """Return by role how much more likely it is to have said the answer, as a factor."""
    if dialogue.between_people:
        about = {dialogue.named[word.key] for word in words(query) if word.kind is NAME and word.key in dialogue.named}
        if len(about) == 1:
            return dict.fromkeys(about, OWN_WORDS)
        return {"user": OWN_WORDS} if speaks_of_self(query) and not about else {}
    if speaks_to_other(query):
        return {}
    return {"user": OWN_WORDS if speaks_of_self(query) else UNNAMED}
