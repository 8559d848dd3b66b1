"""When a newer statement takes the place of an older one."""

import pytest

from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool

OTHER = ("Thanks a lot for that.", "Could you find me a table for Friday?", "It rained all day in Ghent.")


def replaced(*said: str, role: str = "user") -> list[str]:
    """The statements that are replaced when these are said one after the other."""
    readings: list[MessageLines] = []
    for index, text in enumerate((said[0], *OTHER, *said[1:])):
        speaker = role if index == 0 else "user"
        readings.append(MessageLines(index, speaker, lines.read({"role": speaker, "content": text})))
    pool = LinePool(readings)
    return [pool.lines[place].text for place in sorted(pool.replaced)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My phone number is 555-0142.", "My phone number changed, it is 555-0977 now."),
        ("The budget is 1200 dollars.", "I talked to my boss: the budget is 1850 dollars."),
        ("The deadline is March 14.", "They moved the deadline to March 28."),
        ("I live at 12 Rose Lane.", "I moved, I live at 77 Harbor Street."),
        ("Das Hotel soll in Basel sein.", "Das Hotel soll doch in Luzern sein."),
        (
            "Yes, swap the lamp for the brass one, the budget is 60 dollars.",
            "Well, the budget is 80 dollars, if that helps you.",
        ),
        ("Our release branch is release/4.2.", "The release branch is release/4.3 as of today."),
    ],
)
def test_of_two_values_for_one_thing_the_newer_holds(older: str, newer: str) -> None:
    assert replaced(older, newer) == [older]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My phone number is 555-0142.", "My order number is W2378156."),
        ("The budget is 1200 dollars.", "The flight leaves at 17:30."),
        ("I live in Basel.", "I work on boats."),
        ("The budget is 1200 dollars.", "The budget is tight."),
        ("Book HAT084 for Monday.", "We are 4 people."),
    ],
)
def test_two_things_are_not_taken_for_one(one: str, other: str) -> None:
    assert replaced(one, other) == []


def test_what_an_assistant_says_replaces_nothing() -> None:
    assert replaced("The budget is 1200 dollars.", role="assistant") == []
