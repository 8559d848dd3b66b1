"""The same chats and questions in other forms: without question marks, with calls now and then, in the middle of a story, as an instruction.

A fold that knows only pure chats and pure agents loses what it remembers in all that lies between.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from benchmarks.recall.needed import Point, probes

CALLS_APART: Final = 5
"""Turns from one call to the next."""
STEPS: Final = 2
"""Calls after the question, before it is answered."""
STORY: Final = (
    "OK, one more thing before I go to bed, it was a long day and the bus was late again, you know how that is."
)
MORE: Final = "I have to fill in a form tomorrow morning and I can't find my notes anywhere, they were on the desk."
_MARKS: Final = re.compile("[?？؟¿]")
CITIES: Final = ("Leeds", "Porto", "Ghent", "Turin")


def plain(talk: Mapping[str, Any]) -> list[Point]:
    """Return the questions as they are."""
    return list(probes(talk))


def without_marks(talk: Mapping[str, Any]) -> list[Point]:
    """Return the questions as many people type them: without question marks, and beginning with a small letter."""
    return [
        _asked_as(point, lambda text: text[:1].lower() + _MARKS.sub("", text[1:]).rstrip()) for point in probes(talk)
    ]


def with_calls(talk: Mapping[str, Any]) -> list[Point]:
    """Return the questions about a chat that looks something up now and then."""
    messages: list[dict[str, Any]] = []
    turn = 0
    for message in talk["messages"]:
        turn += message["role"] == "user"
        if message["role"] == "assistant" and turn % CALLS_APART == 0:
            messages += _looked_up(turn)
        messages.append(message)
    return list(probes({**talk, "messages": messages}))


def while_answering(talk: Mapping[str, Any]) -> list[Point]:
    """Return the questions with some calls behind each, made for its answer."""
    return [
        replace(point, request=[*point.request, *[part for step in range(STEPS) for part in _looked_up(step)]])
        for point in probes(talk)
    ]


def in_a_story(talk: Mapping[str, Any]) -> list[Point]:
    """Return each question in the middle of a message that is chiefly something else."""
    return [_asked_as(point, f"{STORY} {{}} {MORE}".format) for point in probes(talk)]


def as_an_instruction(talk: Mapping[str, Any]) -> list[Point]:
    """Return each question as an instruction to write something."""
    return [
        _asked_as(point, lambda text: f"Please write a short note for my notebook about this: {text.rstrip('?')}.")
        for point in probes(talk)
    ]


VARIANTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Sequence[Point]]]] = {
    "as they are": plain,
    "without question marks": without_marks,
    "a call in every fifth turn": with_calls,
    "two calls after the question": while_answering,
    "in the middle of a story": in_a_story,
    "as an instruction": as_an_instruction,
}


def _asked_as(point: Point, said: Callable[[str], str]) -> Point:
    question = point.request[-1]
    return replace(point, request=[*point.request[:-1], {**question, "content": said(question["content"])}])


def _looked_up(number: int) -> list[dict[str, Any]]:
    """Return a call with its short result."""
    name = f"call_{number}"
    city = orjson.dumps({"city": CITIES[number % len(CITIES)], "days": number % 5 + 1}).decode()
    sky = orjson.dumps({"temperature_c": number * 7 % 30, "summary": "light rain"}).decode()
    function = {"name": "get_weather", "arguments": city}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": name, "content": sky},
    ]
