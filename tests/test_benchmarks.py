"""The benchmarks run: each would otherwise be found broken by whoever needs its figure."""

import importlib

import pytest

from benchmarks.recall import timing
from benchmarks.soak.clients import judged
from benchmarks.soak.formats import FORMATS, Format
from tests.fakes import assistant, system, user, words

TALKS = [
    {"messages": [system("Be brief."), *(turn for n in range(4) for turn in (user(words(40, n)), assistant("Noted.")))]}
]


@pytest.mark.parametrize(
    "name",
    [
        "cache.__main__",
        "counting.__main__",
        "envoy",
        "instructions.__main__",
        "load.__main__",
        "load.gateway",
        "recall.__main__",
        "replay",
        "soak.__main__",
        "soak.upstream",
        "speed.__main__",
        "store",
    ],
)
def test_each_can_be_loaded(name: str) -> None:
    assert importlib.import_module(f"benchmarks.{name}").__doc__


def test_conversations_are_joined_up_to_a_user_message() -> None:
    messages = timing.joined([*TALKS, *TALKS], 200)

    assert messages[-1]["role"] == "user"
    assert [message["role"] for message in messages].count("system") == 1


def test_a_fold_can_be_timed() -> None:
    assert timing.timed(timing.joined(TALKS * 8, 1000), 400, 1) >= 0


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_soak_tells_a_wrong_stream_from_one_that_broke_off(format: Format) -> None:
    whole = b"".join(format.pieces("seed"))
    assert judged(format, "seed", whole) == "whole"
    assert judged(format, "seed", whole[:500]) == "broken"
    assert judged(format, "seed", whole[:500] + whole[501:]) == "wrong"
    assert judged(format, "other", whole) == "wrong"
