"""Which lines a digest is made of."""

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.context.choose.digest import Shown, choose
from gateway.context.choose.rows import render
from gateway.context.count.message_cost import counter
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.read.words import Word
from gateway.context.weigh.line_pool import LinePool
from tests.context.pools import pool

COUNT = counter("o200k").text


def digest(found: LinePool, tokens: int, **more: Any) -> str:
    return render(found, choose(found, tokens, COUNT, **more))


FOLDED = pool(
    ("user", "Hello, I need help with my order W2378156. Never ship to my office."),
    ("assistant", "Of course! I am happy to help you with that today."),
    ("look", '{"order":"W2378156","status":"pending","items":[{"sku":"KX-12","price":12},{"sku":"KX-99","price":9}]}'),
    ("assistant", "Your order is pending. Is there anything else?"),
    ("user", "Yes, please."),
)


def test_facts_come_before_courtesies() -> None:
    text = digest(FOLDED, 70)

    assert "Never ship to my office." in text
    assert "KX-12" in text
    assert "happy to help" not in text


def test_lines_stand_in_the_order_of_the_conversation_with_their_speakers() -> None:
    rows = digest(FOLDED, 200).split("\n")

    assert rows[0].startswith("user: ")
    assert any(row.startswith("look -> ") for row in rows)


def test_a_shorter_line_takes_the_room_of_one_that_does_not_fit() -> None:
    """The choice goes by estimates; the room is filled by what is counted."""
    orders = [{"order": f"W{number}378156{number}", "code": f"KX-{number}"} for number in range(9)]
    found = pool(("look", orjson.dumps(orders).decode()))
    left = [room - COUNT(digest(found, room)) for room in range(30, 80)]

    assert 0 <= min(left) <= max(left) < COUNT("code=KX-7")


def test_what_is_known_elsewhere_is_not_repeated() -> None:
    known = frozenset({"kx-12", "kx-99", "w2378156"})

    assert "KX-99" not in digest(FOLDED, 45, known=known)


def test_of_repeated_lines_only_the_newest_is_quoted() -> None:
    found = pool(("user", "Always use metric units."), ("assistant", "Noted."), ("user", "Always use metric units."))

    assert [found.message_of[place] for place in choose(found, 100, COUNT)].count(0) == 0


def test_an_error_is_worth_its_place() -> None:
    rows = "\n".join(f"step {number} of the build went well" for number in range(200))
    found = pool(("look", f"{rows}\nlinker error: undefined symbol zlib_init"))

    assert "undefined symbol zlib_init" in digest(found, 60)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=300)), max_size=12),
    st.integers(0, 200),
)
def test_a_digest_never_takes_more_than_it_may(messages: list[tuple[str, str]], tokens: int) -> None:
    text = digest(pool(*messages), tokens)

    assert not text or COUNT(text) <= tokens


def test_values_of_one_result_share_the_cost_of_its_opening() -> None:
    """Each value alone would be dearer than a sentence, for a result stands behind the call that it answers."""
    numbers = [f"KX{number}" for number in range(4710, 4716)]
    listed = lines.read({"role": "tool", "content": '{"items": ["' + '", "'.join(numbers) + '"]}'})
    asked = [
        {"role": "assistant", "content": f"I asked {name} for it."}
        for name in ["BRS", "AMS", "LIS", "OSL", "RIX", "VIE"]
    ]
    found = LinePool(
        [
            MessageLines(0, "tool", listed, "find_items_of_house(house=Miller and Sons)"),
            *[MessageLines(index, "assistant", lines.read(message)) for index, message in enumerate(asked, 1)],
        ]
    )

    assert all(number in digest(found, 60) for number in numbers)


def test_the_other_lines_of_a_message_with_a_wish_may_still_be_chosen() -> None:
    found = pool(
        ("user", "My order is W2378156, by the way. You must never ship anything to my office."),
        ("assistant", "Very well. I will see what I can do for you now."),
    )
    text = digest(found, 60)

    assert "never ship" in text
    assert "W2378156" in text


def test_behind_an_earlier_digest_only_other_messages_are_shown() -> None:
    """Facts that it shows are known."""
    shown = Shown(frozenset(FOLDED.positions[0]), frozenset({0, 1}))
    text = digest(FOLDED, 200, earlier=shown)

    assert "KX-12" in text
    assert "Never ship" not in text
    assert "happy to help" not in text
    assert "W2378156" not in text


def called(*orders: str) -> LinePool:
    """Calls that look up an order, each with its result."""
    readings: list[MessageLines] = []
    for number, order in enumerate(orders):
        function = {"name": "get_order", "arguments": f'{{"order_id": "{order}"}}'}
        made = lines.read({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]})
        text = f'{{"order_id": "{order}", "sku": "KX-{number}1", "other": "KX-{number}2"}}'
        readings.append(MessageLines(2 * number, "assistant", made))
        readings.append(
            MessageLines(2 * number + 1, "tool", lines.read({"role": "tool", "content": text}), made[-1].text)
        )
    return LinePool(readings)


def test_what_the_call_before_a_result_says_is_not_repeated_in_it() -> None:
    text = digest(called("W2378156", "W9911427"), 200)

    assert text.count("W2378156") == text.count("W9911427") == 1
    assert "KX-01" in text
    assert "KX-12" in text


def test_of_two_results_the_one_whose_call_says_something_new_is_opened() -> None:
    found = called("W2378156", "W9911427")
    known = frozenset({"w2378156"})

    assert "W9911427" in digest(found, 24, known=known)
    assert "W2378156" not in digest(found, 24, known=known)


def _copy(word: Word) -> Word:
    return Word(f"{word} again", word.key, word.shape, word.size)


def test_equal_words_that_are_other_objects_are_the_same_fact() -> None:
    """A process with little memory forgets a word between two texts, and reads it as another object."""
    hotels = [{"name": "Harbour View Hotel"}, {"hotel": "Harbour View Hotel!"}, {"name": "Lake View"}]
    read = pool(("user", "Which hotels are in Basel?"), ("look", orjson.dumps(hotels).decode()))
    apart = [
        replace(reading, lines=tuple(replace(line, words=tuple(map(_copy, line.words))) for line in reading.lines))
        for reading in read.readings.values()
    ]

    assert [digest(LinePool(apart, 0), room) for room in range(12, 60)] == [
        digest(read, room) for room in range(12, 60)
    ]


def test_a_message_is_opened_for_the_line_that_is_best_with_what_is_known_by_now() -> None:
    """The row that was best at first has only a plain word left, and does not hide the one with the ticket."""
    seen = ["lamp", "mouse", "chair", "table", "window", "garden", "kettle", "pencil", "carpet", "mirror"]
    found = pool(
        ("read", "W2378156 W2378157 W2378158 W2378159 of the warehouse\nthe ticket of the other carrier is K-77"),
        ("log", "\n".join(f"{thing} was seen here" for thing in seen)),
    )
    known = frozenset({"w2378156", "w2378157", "w2378158", "w2378159"})

    assert "K-77" in digest(found, 40, known=known)
