"""Quotes stand behind the newest question alone."""

from itertools import cycle

from gateway.context import frames
from gateway.context.cache import marking
from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.memory import Memory
from gateway.wire.message import text_of
from tests.fakes import assistant, system, user, words

COUNT = counter("o200k")
LARGE = Budget(32_000, 16, 3, 0)
"""A room that holds few of the long messages of a chat: so much of it is kept free for quotes that some of these could stay."""


def agent(turns: int, items: int = 12) -> list[dict]:
    """Turns of a user who asks for an order, a call and its result, ending with a question."""
    messages = [{"role": "system", "content": "You help with orders."}]
    for number in range(turns):
        order = f"W{4711 + number * 37}"
        call = {"name": "get_order", "arguments": f'{{"order_id": "{order}"}}'}
        rows = "; ".join(f"item {number}-{row} costs {17 + number + row} dollars" for row in range(items))
        messages += [
            {"role": "user", "content": f"Look up the order {order} of customer {number}, please."},
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"order {order}: {rows}"},
            {"role": "assistant", "content": f"The order {order} is found."},
        ]
    return messages


def sent(turns: int, asked: int) -> list[dict]:
    question = {
        "role": "user",
        "content": f"What did the items of order W{4711 + asked * 37} cost, and what was item {asked}-3?",
    }
    return list(fold_conversation([*agent(turns), question], Budget(2600, 16, 3, 52), COUNT, Policy()).messages)


def test_the_question_stands_whole_before_its_quotes() -> None:
    last = text_of(sent(20, 3)[-1])

    assert last.startswith("What did the items of order W4822 cost, and what was item 3-3?")
    assert frames.QUOTES in last


def test_a_recall_share_of_nothing_quotes_nothing_even_where_room_is_free() -> None:
    question = {"role": "user", "content": "What did the items of order W4711 cost, and what was item 0-3?"}
    for room in (1200, 1600, 2000, 2600):
        draft = fold_conversation([*agent(20), question], Budget(room, 16, 3, 52), COUNT, Policy(recall_share=0.0))
        assert not any(frames.QUOTES in text_of(message) for message in draft.messages)


def chat_about_chapters(chapters: int) -> list[dict]:
    """A chat with chapters of a story, and a short message after every second one."""
    asked = cycle(
        ["Can you make that shorter?", "What did the harbour nets cost?", "can you put the harbour nets in a table?"]
    )
    messages = [system("You are a friend.")]
    for number in range(chapters):
        mended = words(3, number)
        messages += [
            user(f"Chapter {number}. The harbour nets of {mended} were mended. {words(1200, number)}."),
            assistant(f"I read it. {words(700, number + 900)}."),
        ]
        if number % 2:
            messages += [user(next(asked)), assistant("Yes, it is.")]
    return messages


def test_in_a_chat_only_the_newest_message_has_quotes() -> None:
    """What could stay of a question's quotes would be another text than was sent, also behind a message that got none."""
    messages, memory = chat_about_chapters(40), Memory()
    folds = [
        list(map(text_of, fold_conversation(messages[:end], LARGE, COUNT, Policy(), memory=memory).messages))
        for end in range(2, len(messages), 2)
    ]

    assert any(frames.QUOTES in fold[-1] for fold in folds)
    assert not any(frames.QUOTES in text for *earlier, _ in folds for text in earlier)


def test_quotes_stand_behind_the_last_of_several_messages_of_a_user() -> None:
    """They are found for it, and the messages before it stay as they came: the next request begins with them."""
    messages = [
        *chat_of(40),
        user("One more thing."),
        user("I forgot it again."),
        user("What did the lamp in street 3 cost?"),
    ]
    fold = fold_conversation(messages, Budget(1500, 16, 3, 0), COUNT, Policy()).messages

    assert fold[-3:-1] == tuple(messages[-3:-1])
    assert text_of(fold[-1]).startswith("What did the lamp in street 3 cost?")
    assert "lamp in street 3 costs" in text_of(fold[-1])
    assert marking.ends_with_passing_quotes(fold)


def chat_of(turns: int) -> list[dict]:
    """A chat about lamps."""
    return [
        message
        for number in range(turns)
        for message in (
            user(
                f"The lamp in street {number} costs {number * 7 + 20} dollars, and the shop is open until {number % 12}."
            ),
            assistant(f"I have noted it for number {number}, and all the others too."),
        )
    ]
