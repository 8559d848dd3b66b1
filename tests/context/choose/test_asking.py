"""Whether a message asks for something that was said."""

from math import isfinite

import pytest

from gateway.context.choose.asking import asking_points, surest_part
from gateway.context.weigh.line_pool import LinePool
from gateway.context.write.current_question import LEAST_ASKING
from tests.context.choose.test_need import POOL


@pytest.mark.parametrize(
    "message",
    [
        "which day the launch is, Garf wants to know",
        "the hours of the engine, for the insurance",
        "Loveday asks where the spare key is",
        "not sure any more who lent me the steam box",
        "i need the name of whoever gave me the mallet",
        "What did Dilys want for the steam box?",
        "Remind me where the spare key hangs.",
        "Could you draft a note to Garf that says when the launch is?",
    ],
)
def test_a_message_that_asks_for_what_was_said_is_recognised(message: str) -> None:
    assert asking_points(POOL, message) >= LEAST_ASKING


@pytest.mark.parametrize(
    "message",
    [
        "Tuesday.",
        "the blue one",
        "I swept the steam box and took it back to Dilys, she was pleased and gave me a jar of honey for the caulking.",
        "she wants to sell her boat to a dentist from Falmouth",
        "thanks, that was good soup",
        "Draw a dragon with hiccups",
        "Can you make that shorter?",
        "Write a limerick about a plumber.",
    ],
)
def test_a_message_that_tells_or_answers_is_not(message: str) -> None:
    assert asking_points(POOL, message) < LEAST_ASKING


def test_words_that_were_never_said_make_it_less_likely() -> None:
    assert asking_points(POOL, "the price of the new dentist, for the form") < asking_points(
        POOL, "the hours of the engine, for the form"
    )


def test_an_empty_past_is_asked_for_less() -> None:
    message = "which day the launch is, Garf wants to know"

    assert asking_points(LinePool([]), message) < asking_points(POOL, message)


STORY = (
    "It was a long day, the bus was late again, and I sat on the stairs for an hour with the shopping and a wet coat."
)


def test_a_short_message_asks_with_all_its_words() -> None:
    message = "You told me about the steam box once. Whose was it?"

    assert surest_part(POOL, message).text == message


def test_a_longer_message_asks_with_the_sentences_that_have_the_form_of_a_question() -> None:
    part = surest_part(POOL, f"{STORY} Where does the spare key hang? {STORY}")

    assert part.text == "Where does the spare key hang?"
    assert LEAST_ASKING <= part.points < asking_points(POOL, part.text)


def test_speech_without_punctuation_asks_with_its_clauses_nearly_as_surely_as_without_the_rest() -> None:
    story = STORY.lower().replace(",", "").replace(".", "")
    speech = f"{story} where does the spare key hang {story}"

    part = surest_part(POOL, speech)

    assert part.text.startswith("where does the spare key hang")
    assert LEAST_ASKING <= part.points < asking_points(POOL, part.text) < part.points + 1.0


def test_an_instruction_asks_by_what_it_is_about() -> None:
    part = surest_part(POOL, "Please write a short note for my notebook about this: which day the launch is.")

    assert part.points > asking_points(POOL, part.text)


@pytest.mark.parametrize("message", ["", "?", "…", "x" * 4000, "the key " * 500, "\ud800?"])
def test_any_message_has_points(message: str) -> None:
    assert isfinite(surest_part(POOL, message).points)
