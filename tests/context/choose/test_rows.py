"""Chosen lines are written so that speaker, addressee and record are clear."""

import orjson
import pytest

from gateway.context.choose.digest import choose
from gateway.context.choose.rows import render
from gateway.context.count.message_cost import counter
from gateway.context.read import lines
from gateway.context.read.line import LineKind, MessageLines
from gateway.context.weigh.line_pool import LinePool
from tests.context.pools import pool

COUNT = counter("o200k").text


def written(found: LinePool, *without: str) -> list[str]:
    """All lines as rows, without those that hold one of these texts."""
    kept = [place for place, line in enumerate(found.lines) if not any(text in line.text for text in without)]
    return render(found, kept).split("\n")


LONG = (
    "and that is all that there is to say about it, as far as anybody here can tell today, which may of course change"
)


@pytest.mark.parametrize(
    ("messages", "without", "rows"),
    [
        # A reply that answers another message is marked.
        (
            [("user", "I met the neighbours."), ("assistant", "How did they react?"), ("user", "Badly."), ("assistant", "Oh."), ("user", "Until closing time.")],
            ["Badly", "Oh"],
            ["user: I met the neighbours.", "assistant: How did they react?", "user: … Until closing time."],
        ),
        # The next message is its reply, and needs no mark.
        (
            [("assistant", "How did they react?"), ("user", "Badly.")],
            [],
            ["assistant: How did they react?", "user: Badly."],
        ),
        # Rows of the same speaker are no replies to each other.
        (
            [("user", "It is Friday."), ("assistant", "Oh."), ("user", "It is late.")],
            ["Oh"],
            ["user: It is Friday.", "user: It is late."],
        ),
        # The beginning of the answer is missing.
        (
            [("user", f"Which of the two flights is the better one? {LONG}."), ("assistant", f"The first one is, {LONG}. {LONG.title()}. The second is cheaper, {LONG}.")],
            ["The first one", "And That"],
            [f"user: Which of the two flights is the better one? {LONG}.", f"assistant: … The second is cheaper, {LONG}."],
        ),
        # Items of a list keep their numbers, and stay apart.
        (
            [("assistant", "Two flights:\n1. **HAT004**\n2. **HAT142**\n- Price: $121\n\nWhich one?")],
            [],
            ["assistant: Two flights: 1. HAT004 / 2. HAT142 / Price: $121 / Which one?"],
        ),
        # An item that is left out leaves a mark.
        (
            [("assistant", "Three flights:\n1. HAT004\n2. HAT142\n3. HAT059")],
            ["HAT142"],
            ["assistant: Three flights: 1. HAT004 … 3. HAT059"],
        ),
        # Names in code are no layout.
        (
            [("assistant", "Call `Flask(__name__)` with **all** of `**options`.")],
            [],
            ["assistant: Call Flask(__name__) with all of **options."],
        ),
    ],
)  # fmt: skip
def test_a_row_reads_as_it_was_meant(messages: list[tuple[str, str]], without: list[str], rows: list[str]) -> None:
    assert written(pool(*messages), *without) == rows


PASTED = "Look:\n```python\nclass Stock:\n    rows = 3\n    def count(self):\n        return 5\n```\nwohoo, it works"


def test_a_pasted_block_is_one_line_and_the_words_behind_it_have_their_speaker() -> None:
    found = pool(("user", PASTED))

    assert written(found, "rows =", "return", "class", "def") == [
        "user: Look: [pasted 4 rows of python: Stock, count] wohoo, it works"
    ]
    assert written(found)[-2:] == ["return 5", "user: wohoo, it works"]


def test_code_in_an_answer_is_one_line_that_says_what_it_is() -> None:
    code = PASTED.replace("wohoo, it works", "It counts.")

    assert written(pool(("assistant", code)), "rows =", "return", "class Stock", "def") == [
        "assistant: Look: [wrote 4 rows of python: Stock, count] It counts."
    ]


def test_a_short_block_is_part_of_the_sentence_without_its_language() -> None:
    found = pool(("assistant", "They can go:\n```sql\nDELETE FROM movement;\n```\nCheck first."))

    assert written(found) == ["assistant: They can go: DELETE FROM movement; Check first."]


def test_rows_of_a_block_that_stand_alone_say_who_sent_them() -> None:
    assert written(pool(("user", PASTED)), "Look", "pasted", "class", "rows =", "def", "wohoo") == [
        "user: [pasted] return 5"
    ]


def test_rows_of_output_that_were_no_neighbours_are_marked_unless_their_numbers_show_it() -> None:
    plain = pool(("cat(notes)", "while True:\n  read()\n  if done: break\nclose()"))
    numbered = pool(("open(notes)", "1: while True:\n2:   read()\n3: close()"))

    assert written(plain, "read()") == ["cat(notes) -> while True:", "… if done: break", "close()"]
    assert written(numbered, "read()") == ["open(notes) -> 1: while True:", "3: close()"]


def test_the_text_of_a_message_stands_before_its_calls() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"path": "src"}'}}
    message = {"role": "assistant", "content": "Let us look into the folder.", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "fields.py"}
    found = LinePool(
        [
            MessageLines(0, "assistant", lines.read(message)),
            MessageLines(1, "tool", lines.read(result), "ls(path=src)"),
        ]
    )

    assert written(found) == ["assistant: Let us look into the folder.", "ls(path=src) -> fields.py"]


def calling(*arguments: str) -> dict[str, object]:
    """An assistant's message that lists folders."""
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "ls", "arguments": f'{{"path": "{path}"}}'}}
        for number, path in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def listed(*arguments: str) -> LinePool:
    """Calls of one message, and their results."""
    readings = [MessageLines(0, "assistant", lines.read(calling(*arguments)))]
    for number, path in enumerate(arguments, 1):
        result = {"role": "tool", "content": f"{path}/fields.py"}
        readings.append(MessageLines(number, "tool", lines.read(result), f"ls(path={path})"))
    return LinePool(readings)


def test_a_call_whose_result_is_left_out_says_that_it_had_one() -> None:
    assert written(listed("src"), "fields") == ["ls(path=src) …"]
    assert written(listed("src", "docs"), "src/fields") == ["ls(path=src) …", "ls(path=docs) -> docs/fields.py"]


@pytest.mark.parametrize(("text", "row"), [("[]", "ls(path=src) -> []"), ("60", "ls(path=src) -> 60")])
def test_a_very_short_result_is_always_shown(text: str, row: str) -> None:
    result = MessageLines(1, "tool", lines.read({"role": "tool", "content": text}), "ls(path=src)")
    found = LinePool([MessageLines(0, "assistant", lines.read(calling("src"))), result])

    assert render(found, [0]) == row


def test_a_result_never_stands_behind_the_call_of_another() -> None:
    """Where the tool's name is all that a result has of its call."""
    results = [
        MessageLines(place, "tool", lines.read({"role": "tool", "content": f"{place}: a row of it"}), "ls")
        for place in (1, 3)
    ]
    first, second = lines.read(calling("src")), lines.read(calling("docs"))
    found = LinePool(
        [MessageLines(0, "assistant", first), results[0], MessageLines(2, "assistant", second), results[1]]
    )

    assert render(found, [0, 3]) == "ls(path=src) …\nls -> 3: a row of it"


def test_a_call_without_a_result_says_nothing_of_one() -> None:
    alone = LinePool([MessageLines(0, "assistant", lines.read(calling("src")))])

    assert written(alone) == ["ls(path=src)"]


def test_each_result_of_several_calls_stands_behind_its_own_call() -> None:
    assert written(listed("src", "docs")) == ["ls(path=src) -> src/fields.py", "ls(path=docs) -> docs/fields.py"]


def test_a_call_whose_result_names_only_the_tool_is_written() -> None:
    calls = MessageLines(0, "assistant", lines.read(calling("src", "docs")))
    results = [
        MessageLines(number, "tool", lines.read({"role": "tool", "content": f"row {number} of it"}), "ls")
        for number in (1, 2)
    ]

    assert written(LinePool([calls, *results])) == [
        "ls(path=src)",
        "ls(path=docs)",
        "ls -> row 1 of it",
        "ls -> row 2 of it",
    ]


def test_words_without_the_beginning_of_their_message_are_marked() -> None:
    found = pool(("find(x)", '{"id": "KX-12"}'), ("assistant", "1. HAT004\nThe second is cheaper."))

    assert written(found, "HAT004") == ["find(x) -> KX-12", "assistant: … The second is cheaper."]


def test_a_list_of_plain_values_says_that_it_had_more() -> None:
    found = pool(("find(x)", '{"reservations": ["DXG8T6", "46BBSE", "P9VXUO"]}'))

    assert written(found, "46BBSE") == ["find(x) -> reservations: DXG8T6 … P9VXUO"]


def test_a_piece_of_a_long_value_shows_where_it_is_cut() -> None:
    text = " ".join(f"Part {number} of the car is as it should be." for number in range(20))
    found = pool(("check(car)", f'{{"report": "{text}"}}'))

    assert written(found) == [f"check(car) -> report={text}"]
    first, second, *others = [line.text for line in found.lines]
    assert written(found, second) == [" … ".join([f"check(car) -> {first}", " ".join(others).replace("… ", "")])]
    assert written(found, *others)[0].endswith(f"{second.removeprefix('… ')} …")


ANSWER = "I found these flights:\n" + "\n".join(
    f"{number}. Flight HAT0{number}2\n   - Departure: 0{number}:00 EST\n   - Arrival: 1{number}:30 EST\n   - Price: $12{number}"
    for number in range(1, 6)
)


@pytest.mark.parametrize("room", [20, 40, 60, 90])
def test_a_property_in_a_list_stands_behind_the_row_that_says_of_what(room: int) -> None:
    found = pool(("user", "Which flights are there?"), ("assistant", ANSWER))
    chosen = choose(found, room, COUNT)

    for place in chosen:
        if found.lines[place].text.startswith(("Departure", "Arrival", "Price")):
            headings = [at for at in chosen if at < place and "Flight" in found.lines[at].text]
            assert headings and place - headings[-1] <= 3


FLIGHTS = (
    '{"status": "confirmed", "flights": [{"flight_number": "HAT078", "prices": {"economy": 146, "business": 373}},'
    ' {"flight_number": "HAT118", "prices": {"economy": 167, "business": 438}}],'
    ' "passengers": [{"first_name": "Mia", "last_name": "Jackson", "dob": "1986-05-05"},'
    ' {"first_name": "Ivan", "last_name": "Garcia", "dob": "1960-12-01"}]}'
)


def test_a_value_stands_with_the_record_it_belongs_to() -> None:
    """Prices without their flights, and dates of birth without their passengers, would be anybody's."""
    found = pool(("get_reservation(id=OBUT9V)", FLIGHTS))

    assert render(found, range(len(found.lines))).split("; ") == [
        "get_reservation(id=OBUT9V) -> status=confirmed",
        "flights: HAT078",
        "prices: HAT078 economy=146 business=373",
        "flights: HAT118",
        "prices: HAT118 economy=167 business=438",
        "passengers: first_name=Mia last_name=Jackson dob=1986-05-05",
        "first_name=Ivan last_name=Garcia dob=1960-12-01",
    ]


def test_a_digest_never_has_a_value_without_the_name_of_its_record() -> None:
    found = pool(("get_reservation(id=OBUT9V)", FLIGHTS))

    for tokens in range(8, 120, 4):
        row = render(found, choose(found, tokens, COUNT))
        for record in row.split("; "):
            assert "dob=" not in record or "last_name=" in record
            assert "economy=" not in record or "HAT" in record


SEARCH = (
    '[{"flight_number": "HAT130", "prices": {"economy": 165}, "arrival": "01:00:00+1"},'
    ' {"flight_number": "HAT193", "prices": {"economy": 167}, "arrival": "02:00:00+1"}]'
)


def test_what_follows_a_nested_value_is_not_taken_for_nested() -> None:
    found = pool(("search(from=DEN)", SEARCH))

    assert written(found) == [
        "search(from=DEN) -> HAT130 arrival=01:00:00+1; prices: HAT130 economy=165"
        " / HAT193 arrival=02:00:00+1; prices: HAT193 economy=167"
    ]


def test_a_digest_has_no_heading_without_its_value_and_no_time_without_its_flight() -> None:
    found = pool(("search(from=DEN)", SEARCH))

    for tokens in range(8, 80, 2):
        row = render(found, choose(found, tokens, COUNT))
        for record in row.replace(" / ", "; ").split("; "):
            assert "prices:" not in record or "economy=" in record
            assert "arrival=" not in record or "HAT" in record


def test_a_wish_that_was_taken_back_never_stands_without_its_revocation() -> None:
    found = pool(
        ("user", "Please always answer with bullet points, I like bullet points."),
        ("assistant", "Of course, bullet points from now on."),
        ("user", "By the way, forget that about the bullet points again, from now on I would rather read whole sentences with all reasons, because bullet points make me nervous."),
        ("assistant", "Understood, sentences."),
    )  # fmt: skip

    for tokens in range(8, 90, 2):
        row = render(found, choose(found, tokens, COUNT))
        assert "always answer with bullet points" not in row or "forget that" in row


def named(*messages: tuple[str, str]) -> LinePool:
    """A folded part of user messages, each with the name of its speaker."""
    return LinePool(
        [
            MessageLines(n, "user", lines.read({"role": "user", "content": text}), name=name)
            for n, (name, text) in enumerate(messages)
        ]
    )


def test_the_members_of_a_group_are_told_apart_by_the_names_that_the_client_gives() -> None:
    group = named(("ines", "I bring the tent."), ("ola", "I bring the stove."), ("", "Who brings wood?"))

    assert written(group) == [
        "user (ines): I bring the tent.",
        "user (ola): I bring the stove.",
        "user: Who brings wood?",
    ]


def test_one_name_alone_tells_nothing_and_is_left_out() -> None:
    assert written(named(("ines", "I bring the tent."), ("ines", "And the stove."))) == [
        "user: I bring the tent.",
        "user: And the stove.",
    ]


def _with_calls(*arguments: dict[str, object]) -> LinePool:
    """A folded part with calls of one tool, each with a result."""
    readings = []
    for number, each in enumerate(arguments):
        called = {"id": "c", "function": {"name": "run", "arguments": orjson.dumps(each).decode()}}
        read = lines.read({"role": "assistant", "content": None, "tool_calls": [called]})
        done = lines.read({"role": "tool", "tool_call_id": "c", "content": f"It is done, step {number}."})
        readings += [MessageLines(2 * number, "assistant", read)]
        readings += [MessageLines(2 * number + 1, "tool", done, read[0].text)]
    return LinePool(readings)


def test_an_argument_that_all_calls_of_a_tool_have_is_shown_once() -> None:
    found = _with_calls(
        *({"wait_ms": 1000, "cmd": f"sort files again {n}", "login": True, "top": n % 2} for n in range(4))
    )

    calls = [row.partition(" -> ")[0] for row in written(found)]
    assert calls[0] == "run(wait_ms=1000, cmd=sort files again 0, login=true, top=0)"
    assert calls[1:] == [f"run(cmd=sort files again {n}, top={n % 2})" for n in range(1, 4)]
    # Of the others, only the results are chosen.
    results = [place for place, line in enumerate(found.lines) if line.kind is not LineKind.CALL]
    assert [row.partition(" -> ")[0] for row in render(found, results).split("\n")] == calls


@pytest.mark.parametrize("values", [[60] * 3, [60] * 4 + [90, 80, 70, 50, 40], ["a b"] * 4])
def test_an_argument_that_may_differ_is_shown_in_each_call(values: list[object]) -> None:
    found = _with_calls(*({"cmd": f"sort files again {n}", "limit": value} for n, value in enumerate(values)))

    assert all(f"limit={value}" in row for row, value in zip(written(found), values, strict=True))
