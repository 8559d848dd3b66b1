"""Questions about a chat, asked in several ways, and how much of the right answer comes back."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.cache.strategies import drop_oldest_half
from benchmarks.reading.model import Model
from benchmarks.recall.needed import Point, found
from benchmarks.recall.ours import COUNTER, turnfold
from gateway.context import frames

Messages = list[dict[str, Any]]

ANSWER: Final = 48
"""Tokens of an answer."""
SHORT: Final = 3
"""Letters of a word that tells nothing: "the", "was"; a number tells something at any length."""
STEM: Final = 5
"""Letters that two forms of a word share."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question at the end of a chat."""

    messages: Messages
    answer: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What became of one question."""

    words: float
    """Share of the words of the right answer."""
    evidence: float
    """Share of the evidence that stood in the request."""


def asked(talks: Sequence[Mapping[str, Any]], most: int) -> list[Question]:
    """At most so many questions, as many of each chat, evenly over each chat's."""
    each = max(most // max(len(talks), 1), 1)
    return [
        Question(
            [*talk["messages"], {"role": "user", "content": probe["q"]}],
            probe["answer"],
            tuple(said["text"] for said in probe["evidence"]),
        )
        for talk in talks
        for probe in talk["probes"][:: max(len(talk["probes"]) // each, 1)][:each]
    ]


def scored(
    model: Model, questions: Sequence[Question], way: Callable[[Question, int], Messages], window: int
) -> list[Score]:
    """Ask each question in one way."""
    scores: list[Score] = []
    for question in questions:
        request = way(question, window)
        said = model.answer(request, ANSWER)
        point = Point([], remarks=question.evidence)
        scores.append(Score(share_of_answer(said, question), found(point, request)))
    return scores


def share_of_answer(said: str, question: Question) -> float:
    """The share of the words of the right answer, without those of the question, that were said."""
    wanted = telling(question.answer) - telling(question.messages[-1]["content"])
    wanted = wanted or telling(question.answer)
    return len(wanted & telling(said)) / max(len(wanted), 1)


def telling(text: str) -> set[str]:
    """The words of a text that tell something, each by its first letters."""
    return {
        word[:STEM] for word in re.findall(r"[^\W_]+", text.lower()) if len(word) > SHORT or any(map(str.isdigit, word))
    }


def _dropped(question: Question, window: int) -> Messages:
    return drop_oldest_half(question.messages, window, COUNTER.message)


def _folded(question: Question, window: int) -> Messages:
    return turnfold(question.messages, window, None)


def _quotes_first(question: Question, window: int) -> Messages:
    """The same fold with the quotes before their question."""
    folded = turnfold(question.messages, window, None)
    *framed, last = frames.split(folded[-1]["content"])
    if not frames.is_quotes(last):
        return folded
    return [*folded[:-1], {**folded[-1], "content": "\n\n".join([*framed[:-1], last, *framed[-1:]])}]


def _evidence(question: Question, _: int) -> Messages:
    """The remarks that the question is about, as quotes."""
    said = question.messages[-1]["content"]
    frame = frames.framed(frames.QUOTES, "\n".join(f"user: {text}" for text in question.evidence))
    return [question.messages[0], {"role": "user", "content": f"{said}\n\n{frames.sealed(frame, said)}"}]


def _nothing(question: Question, _: int) -> Messages:
    return [question.messages[0], question.messages[-1]]


WAYS: Final[dict[str, Callable[[Question, int], Messages]]] = {
    "turnfold": _folded,
    "drop oldest half": _dropped,
    "turnfold, quotes before the question": _quotes_first,
    "evidence alone": _evidence,
    "none": _nothing,
}
"""How a request is made of a question and a window."""
