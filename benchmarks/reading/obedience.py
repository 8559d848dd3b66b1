"""Standing wishes whose obedience a program can tell, said once and then folded; and the places where the digest may stand."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.reading.model import Model
from benchmarks.recall.ours import turnfold
from gateway.context import frames

Messages = list[dict[str, Any]]

WINDOW: Final = 500
"""Tokens of a request: so small that the first messages are in the digest alone."""
HISTORY: Final = 24
"""Messages of a chat that the wish stands before."""
ANSWER: Final = 60
"""Tokens of an answer."""
SPANISH: Final = re.compile(
    r"\b(?:el|la|los|las|de|que|y|en|una?|para|con|por|es|se|tu|su|puedes?|como|más|lo|al|del)\b", re.I
)
QUESTIONS: Final = (
    "What should I do this weekend?",
    "Can you give me some ideas for dinner?",
    "How do I sleep better?",
    "Tell me something about the sea.",
)
"""They ask for nothing that was said, so quotes bring no wish."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A wish, and whether an answer obeys it."""

    text: str
    obeys: Callable[[str], bool]


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def _spanish(text: str) -> bool:
    return len(SPANISH.findall(text)) >= 0.2 * max(len(_words(text)), 1) and bool(text)


def _plain(text: str) -> bool:
    return not re.search(r"^\s*(?:[-*•]|\d+[.)])\s", text, re.M)


WISHES: Final = (
    Wish("Please end every answer with the word Over.", lambda said: _words(said)[-1:] == ["over"]),
    Wish("Please always answer me in Spanish from now on.", _spanish),
    Wish("Please keep every answer to one short sentence, never more.", lambda said: 0 < len(_words(said)) <= 25),
    Wish("Never give me lists or numbered points, I can't stand them.", lambda said: bool(said) and _plain(said)),
    Wish("PLEASE WRITE ALL YOUR ANSWERS IN CAPITAL LETTERS.", lambda said: said.isupper()),
    Wish("Always begin your answers with the word Ahoy.", lambda said: _words(said)[:1] == ["ahoy"]),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A chat with a wish near its beginning, and a neutral question at its end."""

    messages: Messages
    wish: Wish


def wished(talks: Sequence[Mapping[str, Any]], most: int) -> list[Case]:
    """At most so many cases: each wish in each chat, in turn."""
    pairs = [(talk, wish) for talk in talks for wish in WISHES]
    return [
        Case(_planted(talk["messages"], wish.text, QUESTIONS[number % len(QUESTIONS)]), wish)
        for number, (talk, wish) in enumerate(pairs[:most])
    ]


def _planted(messages: Messages, wish: str, question: str) -> Messages:
    head = [message for message in messages[:1] if message["role"] == "system"]
    rest = messages[len(head) : HISTORY]
    said = [{"role": "user", "content": wish}, {"role": "assistant", "content": "Understood, I will."}]
    return [*head, *said, *rest[: len(rest) // 2 * 2], {"role": "user", "content": question}]


def obeyed(model: Model, cases: Sequence[Case], place: Callable[[Case], Messages]) -> list[float]:
    """Ask each case with the digest in one place; 1.0 for each answer that obeys."""
    return [float(case.wish.obeys(model.answer(place(case), ANSWER))) for case in cases]


def folded(case: Case) -> Messages:
    """The fold as it is sent: the digest before the first standing message."""
    return turnfold(case.messages, WINDOW, None)


def parts(case: Case) -> tuple[Messages, str, Messages]:
    """The fold as system messages, the digest's frame, and the messages without it."""
    messages = folded(case)
    first = next(n for n, message in enumerate(messages) if message["role"] != "system")
    framed = [piece for piece in frames.split(messages[first]["content"]) if frames.is_frame(piece)]
    text = "\n\n".join(piece for piece in frames.split(messages[first]["content"]) if not frames.is_frame(piece))
    rest = [{**messages[first], "content": text}] if text else []
    return messages[:first], "\n\n".join(framed), [*rest, *messages[first + 1 :]]


def _in_system(case: Case) -> Messages:
    system, frame, rest = parts(case)
    text = "\n\n".join([*(message["content"] for message in system), frame])
    return [{"role": "system", "content": text}, *rest]


def _before_question(case: Case) -> Messages:
    system, frame, rest = parts(case)
    return [*system, *rest[:-1], {**rest[-1], "content": f"{frame}\n\n{rest[-1]['content']}"}]


def _framed_as(opening: str) -> Callable[[Case], Messages]:
    def made(case: Case) -> Messages:
        system, frame, rest = parts(case)
        _, *rows = frame.split("\n")[:-1]
        text = "\n".join([opening, *rows])
        return [*system, {**rest[0], "content": f"{text}\n\n{rest[0]['content']}"}, *rest[1:]]

    return made


def _without(case: Case) -> Messages:
    """The fold of the chat without the wish."""
    return folded(Case([message for message in case.messages if message["content"] != case.wish.text], case.wish))


def _at_the_end(case: Case) -> Messages:
    """No fold: the wish right before the question, as well as this model can obey."""
    head = case.messages[0]
    return [head, {**case.messages[-1], "content": f"{case.wish.text} {case.messages[-1]['content']}"}]


PLACES: Final[dict[str, Callable[[Case], Messages]]] = {
    "before the first message": folded,
    "in the system message": _in_system,
    "before the question": _before_question,
    "framed as still holding": _framed_as("[Earlier in this conversation. What the user asked for still holds:]"),
    "without the wish": _without,
    "with the question alone": _at_the_end,
}
"""Where the digest stands."""
