"""Whether a message without a mark asks for something that was said."""

import pytest

from gateway.context.choose.asking import asking, asking_by_words
from gateway.context.weigh.line_pool import LinePool
from gateway.context.write.asked import LEAST_ASKING
from tests.context.choose.test_need import POOL


@pytest.mark.parametrize(
    "message",
    [
        "which day the launch is, Garf wants to know",
        "the hours of the engine, for the insurance",
        "Loveday asks where the spare key is",
        "not sure any more who lent me the steam box",
        "i need the name of whoever gave me the mallet",
    ],
)
def test_a_message_that_asks_for_what_was_said_is_recognised(message: str) -> None:
    assert asking(POOL, message) >= LEAST_ASKING


@pytest.mark.parametrize(
    "message",
    [
        "Tuesday.",
        "the blue one",
        "I swept the steam box and took it back to Dilys, she was pleased and gave me a jar of honey for the caulking.",
        "she wants to sell her boat to a dentist from Falmouth",
        "thanks, that was good soup",
        "Draw a dragon with hiccups",
    ],
)
def test_a_message_that_tells_or_answers_is_not(message: str) -> None:
    assert asking(POOL, message) < LEAST_ASKING


def test_words_that_were_never_said_make_it_less_likely() -> None:
    assert asking(POOL, "the price of the new dentist, for the form") < asking(
        POOL, "the hours of the engine, for the form"
    )


def test_nothing_is_asked_of_an_empty_past() -> None:
    message = "which day the launch is, Garf wants to know"

    assert asking(LinePool([]), message) < asking(POOL, message) <= asking_by_words(message)


@pytest.mark.parametrize("message", ["", "?", "…", "x" * 4000])
def test_any_message_has_points(message: str) -> None:
    assert asking(POOL, message) <= asking_by_words(message)
