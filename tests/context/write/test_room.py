"""The room that a folded request uses."""

from typing import Any

import orjson
import pytest

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.draft import Draft
from gateway.context.write.folding import fold_conversation, source_of
from gateway.wire.message import text_of
from tests.context.messages import call, message, result

COUNTER = counter("o200k")
WINDOWS = (2048, 4096)
"""Tokens."""

PROSE = " ".join(
    f"In week {n} the {n % 13}th committee of Aldham discussed bridge {n * 7} and the mill." for n in range(1600)
)
LOGS = "\n".join(
    f"12:{n % 60:02d} service-{n % 7} request {n * 7919 % 100003} took {n * 31 % 997} ms" for n in range(2000)
)
ITEMS = orjson.dumps(
    [{"id": f"ORD-{n * 7919 % 99991}", "name": f"item {n}", "price": n * 31 % 997} for n in range(1200)]
)
NESTED = orjson.dumps({"pages": [{"title": f"Page {n}", "text": f"Words of page {n}. " * 60} for n in range(120)]})
CODE = "\n".join(f"def step_{n}(value):\n    return value * {n} + offset_{n % 9}\n" for n in range(1500))
TEXTS = {"prose": PROSE, "logs": LOGS, "items": ITEMS.decode(), "nested": NESTED.decode(), "code": CODE}


def read_of(text: str) -> list[dict[str, Any]]:
    return [
        message("system", "You help."),
        message("user", "Read the file and tell me what matters."),
        call("c1", "read", path="a"),
        result("c1", text),
    ]


def folded(messages: list[dict[str, Any]], window: int) -> tuple[Draft, float]:
    """The draft, and the share of its room that it uses."""
    budget = Budget(window, window // 4, 10, window // 50)
    draft = fold_conversation(messages, budget, COUNTER, Policy())
    return draft, draft.cost / budget.room


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", TEXTS)
def test_one_large_result_fills_the_room(name: str, window: int) -> None:
    _, use = folded(read_of(TEXTS[name]), window)

    assert 0.94 <= use <= 1.0  # prose ends at a sentence


@pytest.mark.parametrize("name", TEXTS)
def test_in_a_larger_room_a_result_that_must_be_cut_stands_as_it_will_stand_later(name: str) -> None:
    """Cut anew in the next request, it would be processed twice."""
    messages = read_of(TEXTS[name])
    first, use = folded(messages, 16384)
    later, _ = folded([*messages, call("c2", "read", path="b"), result("c2", "Nothing.")], 16384)

    assert later.messages[: len(first.messages)] == first.messages
    assert use >= 0.45


def test_in_a_larger_room_a_result_that_fits_stands_whole() -> None:
    text = LOGS[: len(LOGS) // 3]
    draft, use = folded([*read_of(LOGS), message("assistant", "Much noise."), *read_of(text)[1:]], 16384)

    assert use > 0.6
    assert draft.messages[-1]["content"] == text


@pytest.mark.parametrize("name", ["prose", "logs", "nested", "code"])
def test_a_question_after_a_large_result_gets_more_of_it(name: str) -> None:
    """The result is cut anew as an old one, so the request begins unlike the one before it in any case."""
    _, use = folded(after_reading(TEXTS[name], "What is in it?"), 4096)

    assert 0.95 <= use <= 1.0


@pytest.mark.parametrize("name", ["prose", "logs", "nested", "code"])
def test_a_message_that_asks_nothing_after_a_large_result_is_not_filled_up(name: str) -> None:
    """What is added for it is gone in the next request, and half of the result stands."""
    _, use = folded(after_reading(TEXTS[name], "Thanks, that will do."), 4096)

    assert 0.45 <= use <= 0.7


def after_reading(text: str, said: str) -> list[dict[str, Any]]:
    return [*read_of(text), message("assistant", "I have read it."), message("user", said)]


TALK = [
    part
    for n in range(60)
    for part in (
        message("user", f"On day {n} I met {chr(65 + n % 26)}onda and we painted fence {n * 3}."),
        message("assistant", f"Fence {n * 3} sounds like a good day's work, and the weather held."),
    )
]


def test_the_beginning_of_an_answer_quotes_like_its_question() -> None:
    """An assistant message at the end is continued by the model, which needs the same quotes."""
    asked = [message("system", "You chat."), *TALK, message("user", "Which fence did we paint on day 4?")]
    begun = [*asked, message("assistant", "It was")]

    for messages in (asked, begun):
        draft, use = folded(messages, 1200)
        question = next(text_of(part) for part in reversed(draft.messages) if part["role"] == "user")
        assert "painted fence 12" in question
        assert use >= 0.75


def test_a_small_window_keeps_the_identifier_that_a_call_has_made() -> None:
    """The rows of a digest get the place that a long head would take."""
    messages = [
        message("system", "You book."),
        message("user", "Book me a seat to Rivermist for Friday, please, in the second class."),
        call("c1", "book_seat", to="Rivermist", day="Friday"),
        result("c1", '{"booking_id": 3426812, "status": true}'),
        message("assistant", "The seat is booked; I wish you a pleasant journey to Rivermist on Friday!"),
        message("user", "Now cancel that booking again."),
    ]
    draft = fold_conversation(messages, Budget(104, 16, 3, 0), COUNTER, Policy())

    assert draft.cost <= 85
    assert "3426812" in text_of(draft.messages[-1])


def test_the_digest_takes_what_a_large_newest_result_leaves() -> None:
    """The next request moves the cut again, so what is left of the room would only stand empty."""
    steps = [
        part
        for n in range(24)
        for part in (
            call(f"c{n}", "find", kind=f"K-{n * 37}"),
            result(f"c{n}", {"id": f"ORD-{n * 7919 % 99991}", "note": "wood " * 20}),
        )
    ]
    large = [{"id": f"ORD-{n * 31}", "name": "item of the list", "text": "x " * 60} for n in range(6)]
    ends = [call("last", "list"), result("last", large)]
    _, use = folded([message("system", "You help."), message("user", "Find them all."), *steps, *ends], 800)

    assert 0.95 <= use <= 1.0


def orders_of(month: int) -> list[dict[str, Any]]:
    orders = [{"id": f"W{month}{n}37", "sku": f"KX-{month}{n}", "price": n * 7} for n in range(8)]
    return [
        message("user", f"Show my orders of month {month}, please."),
        call(f"c{month}", "orders", month=f"2024-0{month + 1}"),
        result(f"c{month}", orjson.dumps(orders).decode()),
        message("assistant", f"There are eight orders in month {month}."),
    ]


def test_a_small_digest_before_the_words_of_the_user_takes_the_room_to_the_last_token() -> None:
    """Of sixty tokens, two that nothing takes are an identifier less."""
    messages = [*orders_of(0), *orders_of(1), *orders_of(2), message("user", "Good.")]

    left = [room - fold_conversation(messages, Budget(room, 0, 0, 0), COUNTER, Policy()).cost for room in range(76, 90)]

    assert min(left) == 0


@pytest.mark.parametrize("family", ["o200k", "gpt-5", "mistral", "qwen3", "unknown"])
def test_room_is_kept_for_ids_of_calls(family: str) -> None:
    """Some templates write them; behind a name of OpenAI stands whatever a relay serves."""
    source = source_of(orders_of(0), Budget(4096, 0, 0, 0), counter(family), Policy())
    with_calls = [each for each in source.messages if each["role"] in ("assistant", "tool")][:2]

    assert all(source.cost(each) > source.cost_without_ids(each) for each in with_calls)
