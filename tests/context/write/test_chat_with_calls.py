"""A chat that looks something up now and then is folded as a chat: its questions are answered from quotes."""

from typing import Any

import orjson
import pytest

from gateway.wire.message import text_of
from tests.context.write.test_folding import called, folded
from tests.context.write.test_set_aside import QUESTION, quoted
from tests.fakes import assistant, result, user

Messages = list[dict[str, Any]]


def looked_up(number: int) -> Messages:
    """A call with its short result."""
    return [
        called((f"weather-{number}", "weather", '{"city": "Leeds"}')),
        result(f"weather-{number}", '{"sky": "grey"}'),
    ]


THINGS = ("oil lamp", "boat", "house", "key")


def talk(turns: int) -> Messages:
    """Talk about things that hang somewhere, with more facts than a digest can hold. In the middle is one whose words others have, too."""
    messages: Messages = [{"role": "system", "content": "Be kind."}]
    for turn in range(turns):
        fact = f"Mara{turn} sold {turn * 37 + 11} crates of plums to Ostrander{turn} in Kilrush{turn} on 2024-03-{turn % 28 + 1:02}."
        messages += [
            user(f"{fact} Her {THINGS[turn % 4]} hangs behind the door."),
            assistant(f"So Mara{turn} has {turn * 37 + 11} fewer."),
        ]
    messages[turns | 1] = user("so yes, it hangs behind the oil lamp, the key of the boat house")
    return messages


def talk_with_calls(turns: int, every: int) -> Messages:
    """Such a talk, in which every so many turns something is looked up."""
    messages = talk(turns)
    at = range(4, len(messages), 2 * every)  # before an answer
    return [part for n, message in enumerate(messages) for part in ((looked_up(n) if n in at else []) + [message])]


@pytest.mark.parametrize("every", [2, 5, 60])
@pytest.mark.parametrize("room", [350, 800, 1500, 3000])
def test_a_few_calls_take_no_quotes_from_a_question(every: int, room: int) -> None:
    draft = folded([*talk_with_calls(70, every), user(QUESTION)], room)

    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))
    assert quoted(draft) > min(room / 8, 250)
    assert draft.cost <= room


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("room", [350, 800, 1500])
def test_what_a_question_quotes_stays_when_something_is_looked_up_for_the_answer(steps: int, room: int) -> None:
    asked = [*talk(70), user(QUESTION)]
    answering = [*asked, *[part for step in range(steps) for part in looked_up(step)]]

    draft = folded(answering, room)

    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))
    assert quoted(draft) > room / 8
    assert draft.cost <= room


def test_a_question_of_an_agent_that_asks_for_a_fact_is_answered_from_quotes() -> None:
    """Errands begin otherwise: *could you*. The results are most of this conversation."""
    messages = talk(70)
    large = '{"rows": [' + ", ".join(f'"row {n} of the report"' for n in range(40)) + "]}"
    busy = [
        part
        for n, message in enumerate(messages)
        for part in (
            [called((f"c{n}", "report", f'{{"page": {n}}}')), result(f"c{n}", large), message]
            if n % 6 == 4
            else [message]
        )
    ]

    draft = folded([*busy, user(QUESTION)], 4000)

    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))
    assert quoted(draft) > 4000 / 8
    assert quoted(folded([*busy, user("Could you look for the key of the boat house?")], 4000)) < 4000 / 8


def test_records_fill_little_of_the_quotes_of_an_agents_question() -> None:
    """The request after this one does not have them, and later calls find no more with them."""
    orders = [
        part
        for month in range(50)
        for part in (
            user(f"Please show order W{month * 7919}."),
            called((f"c{month}", "orders", f'{{"order": "W{month * 7919}"}}')),
            result(
                f"c{month}",
                orjson.dumps([{"item": f"KX-{month}{n}37", "price": month * n * 7} for n in range(8)]).decode(),
            ),
            assistant("These are its items."),
        )
    ]
    remark = [user("The lamp that I want back is for the boat house."), assistant("I see.")]

    draft = folded([*orders[:40], *remark, *orders[40:], user("Which lamp did I want back?")], 4000)

    text = "".join(map(text_of, draft.messages))
    assert "The lamp that I want back is for the boat house." in text
    assert 0 < quoted(draft) < 400
