"""What is told about each line."""

import pytest

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write import explain as fates
from gateway.context.write.explain import explain_lines
from gateway.context.write.folding import fold_conversation

COUNTER = counter("o200k")
MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Never call me Bob. My order is W2378156."},
    *(
        message
        for number in range(20)
        for message in (
            {"role": "user", "content": f"What about item KX-{number}? " + "Tell me please. " * 3},
            {"role": "assistant", "content": f"Item KX-{number} costs {number * 11} francs. " + "It is nice. " * 6},
        )
    ),
    {"role": "user", "content": "What was my order?"},
]


def test_every_message_has_its_fate_in_order() -> None:
    found = explain_lines(MESSAGES, Budget(520, 16, 3, 10), COUNTER, Policy())

    assert [fate.index for fate in found] == sorted(fate.index for fate in found)
    assert {fate.index for fate in found} == set(range(len(MESSAGES)))
    assert found[0].why == fates.PINNED
    assert any(fate.why == fates.WISH and "Never call me Bob." in fate.text for fate in found)
    assert found[-1].why == fates.UNCHANGED
    assert any(not fate.kept for fate in found)


@pytest.mark.parametrize("window", range(320, 1000, 40))
def test_the_messages_that_are_told_as_kept_are_those_that_are_sent(window: int) -> None:
    budget = Budget(window, 16, 3, 10)
    found = explain_lines(MESSAGES, budget, COUNTER, Policy())

    kept = {fate.index for fate in found if fate.why in {fates.PINNED, fates.UNCHANGED, fates.SHORTENED}}
    assert len(kept) == len(fold_conversation(MESSAGES, budget, COUNTER, Policy()).messages)


def test_without_a_note_every_line_of_the_folded_part_is_dropped() -> None:
    question = {"role": "user", "content": "Please tell me what my order was and when it will come. " * 12}
    found = explain_lines([*MESSAGES[:-1], question], Budget(170, 16, 3, 10), COUNTER, Policy())

    assert {fate.index for fate in found} == set(range(len(MESSAGES)))
    assert {fate.index for fate in found if fate.kept} == {0, len(MESSAGES) - 1}


def test_each_line_of_a_request_that_fits_is_kept() -> None:
    found = explain_lines(MESSAGES, Budget(100_000, 16, 3, 10), COUNTER, Policy())

    assert {fate.why for fate in found} == {fates.PINNED, fates.UNCHANGED}
