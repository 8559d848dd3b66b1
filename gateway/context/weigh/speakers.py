"""Speakers: which speaker of a conversation probably said the answer to a question.

In most chats the user speaks of a life and the assistant does not, so the answer is probably in the user's messages. In a
chat between two people, both speak of their lives. Then a question that names one of them was probably answered by that person. In
a game or a story the assistant tells most.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from gateway.context.read.cues import speaks_of_self, speaks_to_other
from gateway.context.read.self_words import self_words
from gateway.context.read.words import NAME, PLAIN, Word, stem, words
from gateway.context.weights import NARRATOR_FACTOR, SPEAKER_FACTOR, USER_FACTOR
from gateway.wire.message import RESULT_ROLES

READ_CHARACTERS: Final = 40_000
"""Characters at the end of a chat that tell whether it is between two people: some 300 messages."""
LEAST_SELF_WORDS_RATIO: Final = 0.2
"""A ratio: how often the assistant says *I* and the like, compared with the user in as much text, times the same ratio for
*my*. From this value on the assistant's messages are a person's. In 16 chats with an assistant the product is at most
0.11, in two chats between friends at least 0.3. Customer service says *I* as often as people do, but hardly ever *my*."""
LEAST_POSSESSIVES: Final = 5
"""The least number of *my* and the like in a person's messages."""
LEAST_NAME_USES: Final = 2
"""The least number of times that a name is used to address a speaker, or to sign words, before it counts as a name."""
_ADDRESSED: Final = re.compile(
    r"(?:^|[,!.?] |\b(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks|[Tt]hank you|Hallo|Danke|Bonjour|Merci|Hola|Gracias|Ciao|Grazie) )([^\W\d_]+)(?=[,.!?])",
    re.M,
)
"""The name of the speaker who is addressed: *Hey Ines!*, *You too, Ines.*"""
_WORD: Final = re.compile(r"[^\W\d_]+")
_SIGNED: Final = re.compile(r"^([^\W\d_]+): ", re.M)
"""The name of the speaker before the words: *Ines: I know.*"""


LEAST_SHARED_NAMES: Final = 20
"""Names and numbers that both speakers use. With fewer it says nothing who said them first."""
LEAST_SHARE_OF_NARRATOR: Final = 0.55
"""Share of these names and numbers. If the assistant said at least so many of them first, it is the assistant who tells. In two games the share
is 0.58 and 0.74, in 60 other chats at most 0.50."""


class Dialogue(NamedTuple):
    """The speakers of a chat."""

    between_people: bool
    """Whether the assistant's messages are a person's, too."""
    role_of_name: Mapping[str, str] = {}
    """For each name, as a stem, the role of the person who has it. Empty in a chat with an assistant."""
    told_by_assistant: bool = False
    """Whether it is the assistant who tells: a story, a game."""


WITH_ASSISTANT: Final = Dialogue(between_people=False)


def dialogue_of(messages: Iterable[tuple[str, str]]) -> Dialogue:
    """Return the speakers of a chat. ``messages`` has the roles and texts of its messages or lines, the newest first.
    If there is a tool result among them, the chat is with an assistant."""
    texts: dict[str, list[str]] = {"user": [], "assistant": []}
    left = READ_CHARACTERS
    for role, text in messages:
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
        between_people=True, role_of_name={**_names(user, assistant, "user"), **_names(assistant, user, "assistant")}
    )


def is_told_by_assistant(messages: Iterable[tuple[str, Iterable[Word]]]) -> bool:
    """Return whether most names and numbers that both speakers use were said by the assistant first. ``messages`` has the roles and words
    of the messages or lines of a chat, the oldest first."""
    first: dict[str, str] = {}
    shared: set[str] = set()
    for role, said in messages:
        for word in said:
            if word.shape is not PLAIN and first.setdefault(word.key, role) != role:
                shared.add(word.key)
    by_assistant = sum([first[key] == "assistant" for key in shared])
    return len(shared) >= LEAST_SHARED_NAMES and by_assistant >= LEAST_SHARE_OF_NARRATOR * len(shared)


def _is_person(text: str, other: str) -> bool:
    """Return whether the speaker of ``text`` speaks of a life as people do: says *I* and *my* nearly as often as the speaker of ``other``."""
    own_words, other_words = self_words(text, other)
    # The product of `LEAST_SELF_WORDS_RATIO`, multiplied by the lengths, so that nothing is divided by 0.
    product = own_words.all * own_words.possessive * len(other) ** 2
    return (
        own_words.possessive >= LEAST_POSSESSIVES
        and product >= LEAST_SELF_WORDS_RATIO * other_words.all * other_words.possessive * len(text) ** 2
    )


def _names(own_text: str, others_text: str, role: str) -> dict[str, str]:
    """Return the names of a speaker, as stems, each with the role. They are names by which only the other speaker addresses
    this one, and names with which only this speaker signs."""
    typed = frozenset(chain(_WORD.findall(own_text), _WORD.findall(others_text)))
    signed, addressed = Counter(_SIGNED.findall(own_text)), Counter(_ADDRESSED.findall(others_text))
    by_others, by_self = frozenset(_SIGNED.findall(others_text)), frozenset(_ADDRESSED.findall(own_text))
    names = [
        *[name for name, number in signed.items() if number >= LEAST_NAME_USES and name not in by_others],
        *[name for name, number in addressed.items() if number >= LEAST_NAME_USES and name not in by_self],
    ]
    # Names are never typed in small letters. So *Well,* and *Good!* are not names.
    return {stem(name): role for name in names if name[0].isupper() and name.lower() not in typed}


def answer_factors(query: str, dialogue: Dialogue) -> Mapping[str, float]:
    """Return for each role the factor by which it is more likely to have said the answer. Roles that are left out have 1."""
    if dialogue.told_by_assistant:
        return {"assistant": NARRATOR_FACTOR}
    if dialogue.between_people:
        about = {
            dialogue.role_of_name[word.key]
            for word in words(query)
            if word.shape is NAME and word.key in dialogue.role_of_name
        }
        if len(about) == 1:
            return dict.fromkeys(about, SPEAKER_FACTOR)
        return {"user": SPEAKER_FACTOR} if speaks_of_self(query) and not about else {}
    if speaks_to_other(query):
        return {}
    return {"user": SPEAKER_FACTOR if speaks_of_self(query) else USER_FACTOR}
