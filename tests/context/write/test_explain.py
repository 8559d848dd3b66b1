"""What is told about each line."""

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write import explain as fates
from gateway.context.write.explain import explain_lines

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


def test_what_fits_stands() -> None:
    found = explain_lines(MESSAGES, Budget(100_000, 16, 3, 10), COUNTER, Policy())

    assert {fate.why for fate in found} == {fates.PINNED, fates.UNCHANGED}
