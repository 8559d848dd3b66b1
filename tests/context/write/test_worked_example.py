"""docs/folding.md shows what a fold really sends for the conversation below."""

import textwrap

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.message import text_of
from tests.context.write.test_room import call, message, result
from tests.running import ROOT

COUNT = counter("o200k")
ROOM = 300
WIDTH = 150
"""Columns of the page."""

CONVERSATION = [
    message("system", "You help with orders."),
    message("user", "Hi, my order is W2378156. Never ship to my office."),
    message("assistant", "Thank you, let me look that up for you right away."),
    call("c1", "get_order", order_id="W2378156"),
    result(
        "c1",
        '{"address": "12 Rose Lane", "items": [{"id": "KX-12", "name": "desk lamp", "price": 49},'
        ' {"id": "KX-99", "name": "mouse", "price": 25}]}',
    ),
    message("assistant", "I have found your order. It has a desk lamp and a mouse. What would you like to change?"),
    message("user", "Please swap the lamp for a brass one. The budget is 60 dollars."),
    call("c2", "find_item", kind="desk lamp", finish="brass"),
    result("c2", '[{"id": "KX-15", "price": 58, "stock": 4}, {"id": "KX-17", "price": 71, "stock": 0}]'),
    message(
        "assistant",
        "Two brass lamps are on offer:\n1. **KX-15** costs 58 dollars, which is within your budget.\n"
        "2. **KX-17** costs 71 dollars.\n\nWhich one may it be?",
    ),
    message("user", "The second one. Actually the budget is 80 dollars, if that helps."),
    call("c3", "exchange", order_id="W2378156", old="KX-12", new="KX-17"),
    result("c3", "Error: KX-17 is out of stock"),
    message("assistant", "I am sorry, KX-17 is out of stock, but KX-15 can be sent at once. Would that be fine with you?"),
    message("user", "Fine, take KX-15."),
    call("c4", "exchange", order_id="W2378156", old="KX-12", new="KX-15"),
    result("c4", '{"status": "exchange requested"}'),
    message(
        "assistant",
        "Done, the exchange of the lamp has been requested, and you will get an e-mail about it soon. Can I do anything else"
        " for you?",
    ),
    message("user", "Please cancel the mouse, and send the lamp to my home."),
]  # fmt: skip


def shown() -> str:
    """The folded conversation as the page shows it."""
    draft = fold_conversation(CONVERSATION, Budget(ROOM + 19, 16, 3, 0), COUNT, Policy())
    assert draft.cost <= ROOM
    rows: list[str] = []
    for part in draft.messages:
        for number, row in enumerate(text_of(part).split("\n")):
            first = " " * 9 if number else f"{part['role']:<6} | "
            rows += textwrap.wrap(row, WIDTH, initial_indent=first, subsequent_indent=" " * 11) or [""]
    return "\n".join(rows)


def test_the_worked_example_is_what_a_fold_sends() -> None:
    """If it is not, put what `shown` returns into the page."""
    assert f"```\n{shown()}\n```" in (ROOT / "docs" / "folding.md").read_text(encoding="utf-8")


def test_its_size_is_as_stated() -> None:
    size = sum(map(COUNT.message, CONVERSATION))

    assert f"{len(CONVERSATION)} messages about an order, {size} tokens" in (ROOT / "docs" / "folding.md").read_text(
        "utf-8"
    )
