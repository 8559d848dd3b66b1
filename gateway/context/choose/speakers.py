"""Speakers: who of a conversation is likely to have said the answer to a question.

Most chats are between a person, who tells of a life, and an assistant, who does not: the answer is likely the user's. In a
chat between two people both tell of themselves, and a question about one of them by name is likely answered by this one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from gateway.context.choose.cues import own_words, speaks_of_self, speaks_to_other
from gateway.context.choose.weights import OWN_WORDS, UNNAMED
from gateway.context.choose.words import NAME, stem, words
from gateway.wire.message import RESULT_ROLES

MOST_READ: Final = 40_000
"""Characters, the newest, by which a chat between two people is recognised: some 300 messages."""
PERSON: Final = 0.5
"""An assistant who says *my* at least so many times as often as the user, in as much text, speaks of a life of its own. In 14 chats with an
assistant the ratio is 0.24 at most."""
LEAST_OWN: Final = 5
"""Times that it says so, at least."""
LEAST_CALLS: Final = 2
"""Times that one speaker addresses the other by a name before the name is known."""
_VOCATIVE: Final = re.compile(
    r"(?:^|[,!.?] |\b(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks|[Tt]hank you|Hallo|Danke|Bonjour|Merci|Hola|Gracias|Ciao|Grazie) )([^\W\d_]+)(?=[,.!?:])"
)
"""A word set apart as a name that is called is: *Hey Ines!*, *You too, Ines.*"""


class Dialogue(NamedTuple):
    """What is known of the speakers of a chat."""

    between_people: bool
    """Whether the assistant's messages are a person's, too."""
    named: Mapping[str, str] = {}
    """By name, as a stem, the role of the person who has it. Known only between people."""


WITH_ASSISTANT: Final = Dialogue(between_people=False)


def dialogue_of(said: Iterable[tuple[str, str]]) -> Dialogue:
    """Return who speaks in a chat. ``said`` has roles and texts of messages or lines, the newest first; one who calls tools is no person."""
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
    joined = {role: "\n".join(parts) for role, parts in texts.items()}
    own = {role: own_words(text) for role, text in joined.items()}
    if own["assistant"] < LEAST_OWN or own["assistant"] * len(joined["user"]) < PERSON * own["user"] * len(
        joined["assistant"]
    ):
        return WITH_ASSISTANT
    return Dialogue(between_people=True, named=_named(joined))


def _named(joined: Mapping[str, str]) -> dict[str, str]:
    """Return by name who has it: a name that one speaker calls, and the other never does, is the other's."""
    calls = {
        role: Counter(
            [stem(name) for line in text.split("\n") for name in _VOCATIVE.findall(line) if name[0].isupper()]
        )
        for role, text in joined.items()
    }
    return {
        name: other
        for role, other in (("user", "assistant"), ("assistant", "user"))
        for name, number in calls[role].items()
        if number >= LEAST_CALLS and name not in calls[other]
    }


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
