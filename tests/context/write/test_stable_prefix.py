"""What was sent is sent again as it was, until the cut moves: the provider's cache then has it."""

from typing import Any

import pytest

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.message import text_of
from tests.context.messages import call, message, result

COUNTER = counter("o200k")
WORK = "Check the stock of every shelf in the northern hall, and compare it with the list of the last month."


def rows(number: int, count: int) -> str:
    return "\n".join(
        f"shelf {number}-{row}: {row * 37 % 101} boxes, checked by clerk {row % 7}" for row in range(count)
    )


def requests(messages: list[dict[str, Any]], room: int) -> list[list[Any]]:
    """Fold each request of a conversation, as it grows."""
    ends = [end for end, each in enumerate(messages, 1) if each["role"] in ("user", "tool")]
    return [list(fold_conversation(messages[:end], _budget(room), COUNTER, Policy()).messages) for end in ends]


@pytest.mark.parametrize(("room", "most"), [(6000, 20), (6000, 40), (9000, 20)])
def test_the_ids_of_shortened_results_are_counted_before_the_cut_is_placed(room: int, most: int) -> None:
    """Not counted, they made requests too large, and the largest kept result was shortened inside the cached part."""
    messages = [message("system", "You count."), message("user", WORK)]
    for number in range(36):
        name = f"call_{number:03}_0a7f3c9e51d24b68"
        count = most + number * 7 % (9 if most == 20 else 60)
        messages += [call(name, "count_shelf", shelf=str(number)), result(name, rows(number, count))]
    stages = [
        {step.stage for step in fold_conversation(messages[:end], _budget(room), COUNTER, Policy()).steps}
        for end in range(20, len(messages) + 1, 2)
    ]

    assert any("tool_results" in each for each in stages)
    assert not any("giant" in each for each in stages)


def test_a_large_result_is_not_shortened_again_for_the_next_question() -> None:
    """It shows rows with words of the question for which it was read, whatever is asked later."""
    messages = [
        message("user", "Which shelves did clerk 3 check?"),
        call("big", "read_hall", hall="north"),
        result("big", rows(1, 900)),
        message("assistant", "A list is above."),
        message("user", "And how many boxes are on shelf 1-777?"),
    ]
    before, now = requests(messages, 8000)[-2:]

    assert text_of(before[-1]) != messages[2]["content"]
    assert [text_of(each) for each in now if each["role"] == "tool"] == [text_of(before[-1])]


def _budget(room: int) -> Budget:
    return Budget(room, 0, 0, room // 50)
