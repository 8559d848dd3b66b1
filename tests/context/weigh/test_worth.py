"""Each weight of facts is there for an order of lines; these tests fail when it no longer makes it."""

import pytest

from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import MOST_FOUND_IN_RESULT
from gateway.wire.chat import Message

OLD, NEW = "KX4071", "KX4072"
"""Two identifiers of one shape: without their use only their age differs."""


def result(text: str) -> Message:
    return {"role": "tool", "tool_call_id": "c", "content": text}


def said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def call(value: str) -> Message:
    made = {"id": "c", "type": "function", "function": {"name": "get", "arguments": f'{{"order": "{value}"}}'}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def pool(*messages: Message, first: int = -1) -> LinePool:
    readings = [
        MessageLines(n, message["role"], lines.read(message), "list_orders" if message["role"] == "tool" else "")
        for n, message in enumerate(messages)
    ]
    return LinePool(readings, first)


def worth(found: LinePool, message: int) -> float:
    """The worth of the first line of a message, alone."""
    return found.worth.of(found.positions[message].start, *found.worth.odds)


@pytest.mark.parametrize(
    "use",
    [call(OLD), said("user", f"What of {OLD}?"), said("assistant", f"There is {OLD} as well.")],
    ids=["a call used it", "the user named it", "the assistant named it"],
)
def test_a_value_that_was_used_is_worth_more_than_a_newer_one_that_only_stood_in_a_result(use: Message) -> None:
    unused = pool(result(f"{OLD} stored"), result(f"{NEW} stored"))
    used = pool(result(f"{OLD} stored"), result(f"{NEW} stored"), use)

    assert worth(unused, 0) < worth(unused, 1)
    assert worth(used, 0) > 1.5 * worth(used, 1)


def test_an_identifier_in_several_results_is_worth_more_than_a_newer_one_in_one() -> None:
    """It refers to something: a booking names its payment, and the account lists it."""
    listed, booked = result(f'{{"cards": ["{OLD}"]}}'), result(f'{{"paid_with": "{OLD}"}}')
    once = pool(listed, result(f'{{"cards": ["{NEW}"]}}'))
    again = pool(listed, result(f'{{"cards": ["{NEW}"]}}'), booked)

    assert worth(once, 0) < worth(once, 1)
    assert worth(again, 0) > 1.5 * worth(again, 1)


def test_a_date_in_several_results_is_worth_no_more() -> None:
    days = [result(f'{{"day": "2024-05-{day}"}}') for day in ("11", "12", "11")]

    assert worth(pool(*days), 0) < worth(pool(*days), 1)


def test_a_call_shows_use_more_than_a_user_does_and_a_user_more_than_the_assistant() -> None:
    by_call, by_user, by_assistant = (
        worth(pool(result(f"{OLD} stored"), use, said("user", "Go on.")), 0)
        for use in (call(OLD), said("user", f"What of {OLD}?"), said("assistant", f"There is {OLD} as well."))
    )

    assert by_call > 1.5 * by_user > 1.5 * 1.5 * by_assistant


def test_of_two_equal_lines_the_newer_one_is_worth_more() -> None:
    found = pool(
        said("assistant", "The parcel waits."), said("user", "Fine weather."), said("assistant", "The parcel waits.")
    )

    assert worth(found, 0) < 0.9 * worth(found, 2)


def test_a_binding_sentence_is_worth_more_than_a_newer_one_that_binds_nothing() -> None:
    binds = "You must never ring at the door of this house before we all had lunch and a rest."
    tells = "We had soup and bread at the table of this house and then cake and tea outside."
    found = pool(said("user", binds), said("user", tells))

    assert worth(found, 0) > 1.5 * worth(found, 1)


def test_a_few_words_of_the_user_are_worth_less_for_their_tokens_than_a_sentence() -> None:
    """An exclamation binds nothing, and it must not stand where an identifier could."""
    hello = said("user", "Hi there!")
    asked = said("user", "The barn that we bought in the spring needs a new roof before the cold and the snow set in.")
    found = pool(hello, asked, first=0)
    told = pool(asked, hello, first=0)

    assert worth(found, 0) / found.lines[0].size < worth(told, 0) / told.lines[0].size


def test_an_identifier_of_a_record_is_worth_more_than_a_date_and_a_date_more_than_a_time() -> None:
    record = pool(result(f'{{"at": "11:30:00", "day": "2024-05-11", "code": "{OLD}"}}'))
    at, day, code = (record.worth.of(position, *record.worth.odds) for position in record.positions[0])

    assert code > 2 * day
    assert day > 3 * at


def test_of_equal_errors_in_one_output_the_first_is_worth_more() -> None:
    """Twenty tests may fail at the same row."""
    found = pool(result("step seven error\nstep eight\nstep seven error"))
    first, _, second = [found.worth.of(position, *found.worth.odds) for position in found.positions[0]]

    assert first > second + 0.4


def test_a_row_that_reports_an_error_is_worth_more_than_a_newer_one_that_does_not() -> None:
    found = pool(result("step seven error"), result("step seven fine"))

    assert worth(found, 0) > 1.5 * worth(found, 1)


def test_the_first_message_of_the_user_is_worth_more_than_the_same_said_later() -> None:
    told = (said("user", "The old barn needs a roof."), said("user", "The old barn needs a door."))

    assert worth(pool(*told, first=0), 0) > worth(pool(*told, first=0), 1)
    assert worth(pool(*told), 0) < worth(pool(*told), 1)


def test_a_document_in_the_first_message_is_not_worth_more_than_one_later() -> None:
    """Chats about documents begin with one: only the user's own words say what the conversation is about."""
    told = [
        said("user", f"<context>\nThe {thing} is closed.\nIt is old.\nIt is red.\n</context>")
        for thing in ("shed", "barn")
    ]
    found = pool(*told, first=0)

    rows = [found.worth.of(found.positions[message].start + 1, *found.worth.odds) for message in (0, 1)]
    assert rows[0] < rows[1]


def test_a_call_is_worth_something_where_all_its_facts_are_known() -> None:
    found = pool(call(OLD))
    nothing = dict.fromkeys(found.worth.odds.in_speech, 0.0)

    assert found.worth.of(0, nothing, nothing) > 0


MANY = [
    said("user", f"It was then that the {thing} came by.") for thing in ("baker miller tailor smith cooper" * 8).split()
]


@pytest.mark.parametrize(
    ("older", "newer", "replaces"),
    [
        ("The deposit for the barn is 300 dollars.", "The deposit for the barn is 450 dollars.", True),
        (
            "The flat with two rooms beside the school costs 300 dollars.",
            "For mending that garden shed with its flat roof the plumber wants 450 dollars.",
            False,
        ),
        ("It was 300 then.", "It was 450 then.", False),
    ],
    ids=["the same words", "one word in common", "nothing but common words"],
)
def test_a_newer_value_replaces_an_older_one_only_where_they_share_most_of_their_telling_words(
    older: str, newer: str, replaces: bool
) -> None:
    found = pool(said("user", older), *MANY, said("user", newer))

    assert (0 in found.replaced) is replaces


def test_an_address_that_an_agent_wrote_to_keeps_its_worth_however_it_works() -> None:
    """Other values in the calls of an agent that works on its own are pieces of code. To whom it wrote, it writes again."""
    values = ("ann@example.com", OLD)

    def worths(*more: Message) -> list[float]:
        return [
            worth(pool(result(f"{value} stored"), call(value), said("user", "Go on."), *more), 0) for value in values
        ]

    results = [result(f"step {number} fine") for number in range(9)]
    ordinary, autonomous = worths(), worths(*results)

    assert ordinary[0] == pytest.approx(ordinary[1], rel=0.2)
    assert autonomous[0] > 1.5 * autonomous[1]


def test_rules_in_the_reminder_at_the_beginning_count_like_the_users_task() -> None:
    """Claude Code puts the project's rules there, once. A later reminder speaks of the moment, and a document is material."""

    def worth_of_rule(tag: str, *, is_first: bool) -> float:
        rule = "- Names of exported functions stay as they are, because others call them."
        content = f"<{tag}>\nThe rules of the project:\n{rule}\nThat is all.\n</{tag}>\nFind the mistake."
        opening = () if is_first else (said("user", "Hello."),)
        found = pool(*opening, said("user", content), *(result(f"step {number} fine") for number in range(9)), first=0)
        position = next(position for position, line in enumerate(found.lines) if line.text == rule)
        return found.worth.of(position, *found.worth.odds)

    rule = worth_of_rule("system-reminder", is_first=True)
    assert rule > 5 * worth_of_rule("system-reminder", is_first=False)
    assert rule > 5 * worth_of_rule("document", is_first=True)


@pytest.mark.parametrize("path", ["src/board.py", "justfile", "q3_2025.csv"])
def test_of_an_agent_that_works_on_its_own_what_an_argument_names_has_more_worth_than_a_word_of_its_code(
    path: str,
) -> None:
    """It opens a file again and again. A piece of code that it wrote is seldom a word of a later call."""
    code = " ".join(["first = second", *[f"word{number}" for number in range(30)]])
    steps = [result(f"step {number} fine") for number in range(9)]
    named, written = (pool(said("user", "Go on."), call(value), *steps) for value in (path, f"{code} {path}"))

    def odds_of_path(found: LinePool) -> float:
        speech_odds = found.worth.odds.in_speech
        (word,) = [word for word in speech_odds if path.startswith(word.key) or word.key == path]
        return speech_odds[word]

    assert odds_of_path(named) > 5 * odds_of_path(written)


@pytest.mark.parametrize("row", ["Person {} <person.{}@example.com>", "src/part_{}/case.py:12: run()"])
def test_of_an_agent_that_works_on_its_own_what_few_rows_of_a_result_found_has_a_high_worth(row: str) -> None:
    """Many are a list of customers, or all files of a folder."""
    steps = [result(f"step {number} fine") for number in range(9)]

    def worth_of_first_row(number: int) -> float:
        rows = [row.replace("{}", chr(ord("a") + each)) for each in range(number)]
        return worth(pool(result("\n".join(rows)), said("user", "Go on."), *steps), 0)

    few, many = (worth_of_first_row(number) for number in (MOST_FOUND_IN_RESULT, MOST_FOUND_IN_RESULT + 1))
    assert few > 5 * many


@pytest.mark.parametrize("row", ["@functools.cache", "react@18.2.0"])
def test_what_only_looks_like_an_address_has_no_higher_worth_in_a_result(row: str) -> None:
    """Files that an agent reads have decorators, and versions of packages."""
    steps = [result(f"step {number} fine") for number in range(9)]

    def worth_in_result(text: str) -> float:
        return worth(pool(result(text), said("user", "Go on."), *steps), 0)

    assert worth_in_result("ann@example.com") > 3 * worth_in_result(row)
