"""Cutting a text takes steps in proportion to its length in every script, and a bounded number of them for one request."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.cut.source import MOST_THOROUGH_CHARACTERS
from gateway.context.read import line, lines, sentences
from gateway.context.shrink.gaps import LONGEST_CLUSTER
from gateway.context.shrink.text import shrink_text
from gateway.context.write import pools
from gateway.context.write.current_question import question_text
from gateway.context.write.folding import fold_conversation
from gateway.wire.message import text_of
from tests.fakes import assistant, call, result, user

ASKED = frozenset({"whale", "a"})


def count(text: str) -> int:
    return len(text) // 4 + 1


COUNTER = Counter(lambda message: 4 + count(text_of(message)), count, exact=True)


def steps(work: Callable[[], Any]) -> int:
    """How many functions are called, Python's own included: the same on any machine."""
    called = 0

    def one(frame: object, event: str, argument: object) -> None:
        nonlocal called
        called += event in {"call", "c_call"}

    sys.setprofile(one)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


SCRIPTS = {
    "latin": "a whale ",
    "one word": "a",
    "combining marks": "e" + "\u0301" * 50,
    "nothing but combining marks": "\u0301",
    "joined emoji": "\U0001f469\u200d",
    "flags": "\U0001f1e6",
    "skin tones": "\U0001f3fb",
    "variation selectors": "\ufe0f",
    "lone surrogates": "\udc00",
    "Thai": "\u0e17\u0e35\u0e48",
    "Tamil": "\u0ba8\u0bbf",
    "Chinese": "\u9cb8\u9c7c",
    "rows": "\n",
    "open lists": "[",
    "objects": '{"a":',
    "gaps": "[... 5 characters cut ...]",
    "long gaps": "[... " + "9" * 5000 + " characters cut ...]",
    "frames": "[End of quotes 000000]\n\n",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_twice_the_text_takes_twice_the_steps(script: str) -> None:
    unit = SCRIPTS[script]
    short, long = (unit * (size // len(unit)) for size in (20_000, 80_000))

    few, many = (steps(lambda text=text: shrink_text(text, 100, count, ASKED)) for text in (short, long))

    assert many < 5 * few + 2000


def test_a_mark_stays_with_its_letter_and_a_run_of_marks_is_cut_all_the_same() -> None:
    text = ("e\u0301" * 300 + " ") * 20

    shortened = shrink_text(text, 200, count)

    assert all(not piece.startswith("\u0301") for piece in shortened.split("\n"))
    assert count(shrink_text("\u0301" * 40 * LONGEST_CLUSTER, 100, count)) <= 100


def conversation(characters: int) -> list[dict[str, Any]]:
    """Results of logs, so many characters together."""
    messages = [user("Look at it.")]
    for number in range(10):
        log = "\n".join(f"row {row}: a whale was seen, error {row * 7}" for row in range(characters // 400))
        messages += [assistant(None, call("look", {"at": number}, f"c{number}")), result(f"c{number}", log)]
    return [*messages, assistant("Done."), user("Where was the whale?")]


def test_what_one_request_may_cost_is_bounded() -> None:
    """Beyond the budget heads and tails stand: ten times the text takes no more steps than what may be searched."""
    budget = Budget(20_000, 2000, 0, 0)
    within = conversation(MOST_THOROUGH_CHARACTERS // 12)
    beyond = conversation(MOST_THOROUGH_CHARACTERS * 3)

    searched, bounded = (steps(lambda messages=messages: fold_conversation(messages, budget, COUNTER, Policy()))
                         for messages in (within, beyond))  # fmt: skip

    assert bounded < searched


SPOKEN = ["a whale ", "\n", ".\n", "\u3002", "a. ", "\u9cb8\u9c7c\u3002", "```\na\n\n\n\n"]


@pytest.mark.parametrize("unit", SPOKEN)
def test_old_words_of_a_user_take_a_bounded_number_of_steps(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's words are read in full, because wishes may stand in them: eight million full stops took 74 seconds and 1.4 GB."""

    def talked(characters: int) -> list[dict[str, Any]]:
        said = unit * (characters // 100 // len(unit))
        turns = [(user(f"{number} {said}"), assistant(f"Noted {number}.")) for number in range(100)]
        return [*(message for turn in turns for message in turn), user("Where was the whale?")]

    monkeypatch.setattr(pools, "FULLY_READ_CHARACTERS", 2_000)
    monkeypatch.setattr(pools, "USER_READ_CHARACTERS", 10_000)
    budget = Budget(4000, 400, 0, 0)
    some, more = (
        steps(lambda messages=messages: fold_conversation(messages, budget, COUNTER, Policy()))
        for messages in map(talked, (40_000, 160_000))
    )
    assert more < 2.5 * some


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("unit", SPOKEN)
def test_one_message_of_any_length_is_read_in_a_bounded_number_of_steps(
    unit: str, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "MOST_PROSE_CHARACTERS", 8_000)
    some, more = (
        steps(lambda size=size: lines.read({"role": role, "content": unit * (size // len(unit))}))
        for size in (10_000, 80_000)
    )
    assert more < 1.2 * some


@pytest.mark.parametrize("unit", ["a whale ", "a. ", "B. ", "\u3002", "\u9cb8\u9c7c\u3002"])
def test_one_row_of_output_of_any_length_is_read_in_a_bounded_number_of_steps(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "MOST_PROSE_CHARACTERS", 8_000)
    some, more = (
        steps(
            lambda size=size: lines.read({"role": "tool", "tool_call_id": "c", "content": unit * (size // len(unit))})
        )
        for size in (10_000, 80_000)
    )
    assert more < 1.2 * some


class Copied(str):
    """A text that counts the characters that are copied from it."""

    copied = 0

    def __getitem__(self, part: Any) -> str:
        found = super().__getitem__(part)
        Copied.copied += len(found)
        return found


@pytest.mark.parametrize("unit", ["a. ", "B. ", "Dr. ", "x. a ", "1"])
def test_sentences_that_do_not_end_are_not_copied_again_and_again(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = Copied(unit * 2000 + ". " + "a. " * 2000)
    monkeypatch.setattr(Copied, "copied", 0)
    list(sentences.split(copied))  # the loop over one line, without its bounds
    assert Copied.copied < 20 * len(copied)


@pytest.mark.parametrize("unit", ["```\n", "<file>\n", "-----\n", "a whale "])
def test_what_a_user_asks_is_read_in_a_bounded_number_of_steps(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "MOST_PROSE_CHARACTERS", 8_000)
    some, more = (
        steps(lambda message=message: question_text(SimpleNamespace(messages=[message]), (0,)))
        for message in (user(unit * (size // len(unit)) + "Where was the whale?") for size in (10_000, 80_000))
    )
    assert more < 1.2 * some
