"""How messages read as lines."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.read.line import MOST_LINE_CHARACTERS, Line, LineKind
from gateway.context.read.lines import read, skim
from gateway.wire.memory import Memory
from tests.context import messages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def texts(message: dict[str, Any]) -> list[str]:
    return [line.text for line in read(message)]


def result(value: Any) -> dict[str, Any]:
    return messages.result("c", value)


def test_what_a_user_wants_kept_to_stands_alone() -> None:
    """So that it can be quoted word for word."""
    message = {"role": "user", "content": "Hi there! Never book night flights. I liked the last one a lot, thanks."}

    assert "Never book night flights." in texts(message)


def test_a_short_answer_is_one_line() -> None:
    assert texts({"role": "assistant", "content": "Done. It is booked."}) == ["Done. It is booked."]


def test_marks_of_layout_are_left_out_of_answers() -> None:
    assert texts({"role": "assistant", "content": "- **Gate:** B12\n- `x`"}) == ["Gate: B12", "x"]


@pytest.mark.parametrize("text", ["Expected [***], got ['***'].", "Pass **args and **options."])
def test_stars_that_are_no_layout_stay(text: str) -> None:
    assert texts({"role": "assistant", "content": text}) == [text]


def test_stars_of_code_stay_without_its_marks() -> None:
    message = {"role": "assistant", "content": "`**args` and `**options` are passed to **`run`**."}

    assert texts(message) == ["**args and **options are passed to run."]


def test_colours_of_a_terminal_are_left_out_of_output() -> None:
    """They split the words: `1m8` is no number of tests that failed."""
    output = "\x1b[31m== \x1b[1m8 failed\x1b[0m, \x1b[32m83 passed\x1b[0m ==\n\x1b]8;;http://a.example\x1b\\a.py\x1b]8;;\x1b\\:7"

    assert texts(result(output)) == ["== 8 failed, 83 passed ==", "a.py:7"]


def test_of_a_long_edit_the_rows_that_differ_are_shown() -> None:
    """The rows that both texts have say only where it is."""
    rows = [f"    value_{n} = read_value(source_{n}, limit={n * 100})" for n in range(6)]
    old, new = "\n".join(rows), "\n".join([*rows[:3], "    checked = True", *rows[3:]])
    (line,) = texts(messages.call("c", "edit", path="src/a.py", old=old, new=new))

    assert " ".join(line.split()) == (
        "edit(path=src/a.py, old=… value_3 = read_value(source_3, limit=300) …, new=… checked = True value_3 = read_value(source_3, limit=300) …)"
    )


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/a.py\n",
        "cat >> src/a.py <<'EOF'\nimport os\nfrom read_all import read\n",
    ],
)
@pytest.mark.parametrize("is_text", [False, True])
def test_a_path_in_the_first_rows_of_a_long_argument_names_something(command: str, *, is_text: bool) -> None:
    rows = "\n".join(f"+read('lib/b{n}.py')" for n in range(20))
    function = {
        "name": "run",
        "arguments": command + rows if is_text else orjson.dumps({"cmd": command + rows}).decode(),
    }
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    (line,) = read(message)

    assert [word.key for word in line.arguments] == ["src/a.py"]


def test_a_command_is_written_as_it_is_typed() -> None:
    arguments = '{"argv": ["ls", "-la", "src"], "env": ["A B", "C"]}'
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": arguments}}

    assert texts({"role": "assistant", "content": None, "tool_calls": [call]}) == ["shell(argv=ls -la src, env=A B; C)"]


def test_a_call_is_one_line() -> None:
    arguments = '{"id":"A1","legs":[{"no":"H1"},{"no":"H2"}],"vip":true}'
    call = {"id": "c", "type": "function", "function": {"name": "book", "arguments": arguments}}

    assert texts({"role": "assistant", "content": None, "tool_calls": [call]}) == ["book(A1, legs=H1; H2, vip=true)"]


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("src/board.py", ["src/board.py"]),
        ("justfile", ["justfil"]),
        ("cat ops/nightly.timer && git status", ["ops/nightly.timer"]),
        ("cat migrations/0042_orders.sql && git show 1a2b3c4", ["migrations/0042_orders.sql"]),
        ("curl https://shop.example/v2/orders?page=3", ["https://shop.example/v2/orders"]),
        (["ann@example.com", "ben@example.com"], ["ann@example.com", "ben@example.com"]),
        ([{"path": "src/board.py", "old": "import os\nimport re"}], ["src/board.py"]),
        (["git", "commit", "-am", *["word"] * 20], []),
        ("import os\nimport re", []),
        ("from gateway.context.read.lines import MOST_ARGUMENT_CHARACTERS, MOST_LINE_CHARACTERS", []),
    ],
)
def test_an_argument_of_one_word_and_the_paths_of_a_command_name_something(argument: object, named: list[str]) -> None:
    """Other words of arguments belong to texts and to pieces of code."""
    function = {"name": "run", "arguments": orjson.dumps({"argument": argument}).decode()}
    (line,) = read({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]})

    assert [word.key for word in line.arguments] == named


def _call_line(**arguments: object) -> Line:
    function = {"name": "edit", "arguments": orjson.dumps(arguments).decode()}
    (line,) = read({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]})
    return line


def test_of_a_long_call_the_longest_arguments_are_cut_and_short_ones_stay_whole() -> None:
    items = "    item,\n" * 60
    old, new = [f"{name} = [\n{items}]  # {name} ends" for name in ("before", "after")]
    line = _call_line(old=old, path="src/gateway/board.py", new=new)

    assert "src/gateway/board.py" in line.text
    assert all([words in line.text for words in ("before = [", "# before ends", "after = [", "# after ends")])
    assert len(line.text) < MOST_LINE_CHARACTERS


def test_of_a_call_with_very_many_arguments_each_keeps_some_characters_until_the_line_is_full() -> None:
    line = _call_line(**{f"key{number}": f"value {number} " * 20 for number in range(6)})

    assert all([f"key{number}=value {number}" in line.text for number in range(6)])


def test_only_what_is_shown_of_a_call_is_a_known_fact() -> None:
    line = _call_line(path="src/board.py", text=f"first W2378156 {'and so on ' * 60}K-77 {'and so on ' * 60}last")

    assert "w2378156" in [word.key for word in line.words]
    assert "k-77" not in [word.key for word in line.words]
    assert "K-77" not in line.text


def test_no_half_word_of_a_long_argument_is_shown() -> None:
    line = _call_line(text="identifier_of_something " * 60)

    assert set(line.text.removeprefix("edit(text=").removesuffix(")").split()) == {"identifier_of_something", "…"}


ROWS = "src/board.py:12: first = 1\nsrc/lane.py:40: second = 2\nsrc/card.py:7: third = 3\n"


@pytest.mark.parametrize(
    ("value", "members"),
    [
        ({"output": ROWS, "returncode": 0}, ["returncode=0"]),
        ({"output": ROWS, "metadata": {"exit_code": 1, "duration_seconds": 0.1}}, ["exit_code=1 duration_seconds=0.1"]),
        ({"stdout": ROWS, "stderr": ""}, []),
    ],
)
def test_output_in_json_is_read_as_rows_behind_the_other_members(value: dict[str, Any], members: list[str]) -> None:
    lines = read(result(value))
    rows = read(result(ROWS))

    assert [line.text for line in lines] == members + [line.text for line in rows]
    assert [line.kind for line in lines[len(members) :]] == [LineKind.OUTPUT] * len(rows)
    assert len({line.group for line in lines}) == len(lines)


@pytest.mark.parametrize(
    "value",
    [
        {"stdout": ROWS, "stderr": ROWS},
        {"address": "Rope Walk 12\nBS1 6ZJ Bristol"},
        {"note": "a\nb\nc", "orders": [{"id": "W4471820", "status": "delivered"}]},
    ],
)
def test_json_with_other_texts_is_read_as_records(value: dict[str, Any]) -> None:
    assert {line.kind for line in read(result(value))} == {LineKind.RECORD}


def _line_of_code(code: str, **more: str) -> Line:
    function = {"name": "exec", "arguments": orjson.dumps({"code": code, **more}).decode()}
    return read({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]})[0]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            'const r = await tools.exec_command({cmd: "sed -n 1,80p src/a.py", yield_time_ms: 1000}); text(r.output)',
            "exec_command(cmd=sed -n 1,80p src/a.py, yield_time_ms=1000)",
        ),
        (
            "const r = await tools.run({'cmd': 'ls \\'a b\\'', argv: ['x', {y: 1}]});",
            "run(cmd=ls 'a b', argv=['x', {y: 1}])",
        ),
        (
            "await Promise.all([tools.read({path: `a.py`}), tools.read({path, whole: true,})]);",
            "read(path=a.py); read(path=path, whole=true)",
        ),
        ("read({})", "read()"),
    ],
)
def test_of_a_call_that_runs_code_the_calls_in_it_are_shown(code: str, shown: str) -> None:
    custom = {"type": "custom", "custom": {"name": "exec", "input": code}}

    assert _line_of_code(code).text == shown
    assert texts({"role": "assistant", "content": None, "tool_calls": [custom]}) == [shown]


@pytest.mark.parametrize(
    "code",
    [
        "log({level: 1}); const total = rows.filter((row) => row.open).map((row) => row.amount).reduce((a, b) => a + b)",
        'const r = await tools.exec_command({cmd: "ls',
        'read("a.py", {whole: true})',
        "let r = 1",
        """mongosh parcels --eval 'db.orders.find({status: "open"})'""",
        """python -c "print(dumps({'a': 'first', 'b': 'second'}))\"""",
    ],
)
def test_code_that_does_more_than_to_call_is_shown_as_it_stands(code: str) -> None:
    assert _line_of_code(code).text == f"exec(code={code})"


def test_code_beside_other_arguments_is_shown_as_it_stands() -> None:
    assert (
        _line_of_code("read({path: 'a.py'})", why="It is new.").text
        == "exec(code=read({path: 'a.py'}), why=It is new.)"
    )


def test_a_path_in_code_names_something_as_in_any_call() -> None:
    line = _line_of_code("text(await tools.exec_command({cmd: 'cat src/board.py'}))")

    assert [word.key for word in line.arguments] == ["src/board.py"]


def test_a_long_command_in_code_is_cut_and_its_short_arguments_stay() -> None:
    line = _line_of_code(f"await tools.write({{text: 'first {'and so on ' * 60}', path: 'src/board.py'}})")

    assert line.text.startswith("write(text=first and so on")
    assert "path=src/board.py" in line.text or "src/board.py)" in line.text
    assert len(line.text) <= MOST_LINE_CHARACTERS


@pytest.mark.parametrize("levels", [41, 300, 480, 1000])
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_a_call_with_deep_arguments_is_read_as_text(levels: int, opening: str, closing: str) -> None:
    """One such call made every fold of its conversation fail, so the request was sent as it came."""
    call = {"function": {"name": "edit", "arguments": f"{opening * levels}1{closing * levels}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}

    (line,) = read(message)

    assert line.text.startswith(f"edit({opening}")
    assert len(line.text) <= MOST_LINE_CHARACTERS + len("edit()") + len(" … ")
    assert read(message, Memory()) == (line,)


def test_a_call_that_cannot_be_written_as_json_is_read() -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "edit", "arguments": "half \ud83d"}}]}

    assert read(message, Memory()) == read(message)


@pytest.mark.parametrize("number", ["123456789012345678901234567890", "0.00001", "1.50"])
def test_a_number_is_written_as_it_came(number: str) -> None:
    function = {"name": "pay", "arguments": f'{{"amount":{number}}}'}
    call = {"id": "c", "type": "function", "function": function}

    assert texts({"role": "assistant", "content": None, "tool_calls": [call]}) == [f"pay(amount={number})"]
    assert any(number in line for line in texts(result(f'[{{"account":"K-77","amount":{number}}}]')))


def test_an_argument_keeps_its_key_where_its_shape_does_not_say_as_much() -> None:
    """Two identifiers could be mistaken for each other, and so could a day of birth for a day of travel."""
    arguments = '{"date":"2024-05-21","born":"1990-04-05","from":"HAT01X","to":"HAT02X","number":"100200"}'
    call = {"id": "c", "type": "function", "function": {"name": "move", "arguments": arguments}}

    assert texts({"role": "assistant", "content": None, "tool_calls": [call]}) == [
        "move(2024-05-21, born=1990-04-05, from=HAT01X, to=HAT02X, number=100200)"
    ]


def test_a_date_of_a_record_that_is_just_called_so_needs_no_key() -> None:
    assert texts(result({"flight": "HAT01X", "date": "2024-05-21", "booked": "2024-05-02"})) == [
        "HAT01X",
        "2024-05-21",
        "booked=2024-05-02",
    ]


def test_a_record_gives_up_its_json() -> None:
    """The one identifier with letters needs no key; weak values stand together."""
    value = {
        "order": "W2378156",
        "city": "Denver",
        "items": 3,
        "paid": True,
        "lines": [{"sku": "KX-12", "day": "2024-05-01"}],
    }

    assert texts(result(value)) == ["W2378156", "city=Denver", "items=3 paid=true", "KX-12", "day=2024-05-01"]
    assert [line.label for line in read(result(value))][-1] == "lines"


def test_a_table_by_name_keeps_its_names() -> None:
    value = {"cards": {"card_1": {"limit": 5}, "card_2": {"limit": 7}}}

    assert texts(result(value)) == ["card_1", "limit=5", "card_2", "limit=7"]


def test_a_newer_value_has_the_slot_of_the_older() -> None:
    older, newer = (read(result({"id": "R2D2X", "status": status})) for status in ("waiting", "delivered"))

    assert older[-1].slot == newer[-1].slot != ""


def test_rows_of_one_shape_share_their_worth() -> None:
    log = "\n".join([*(f"GET /item/{number} 200" for number in range(50)), "disk /dev/sda1 is full"])

    shares = {line.text: line.share for line in read(result(log))}

    assert shares["disk /dev/sda1 is full"] > 10 * shares["GET /item/7 200"]


def test_rows_that_report_errors_are_marked() -> None:
    assert [line.error for line in read(result("ok\nTraceback (most recent call last):"))] == [False, True]


def test_a_huge_result_is_read_in_bounded_pieces() -> None:
    assert len(read(result([{"n": number} for number in range(50_000)]))) <= 1300
    assert max(len(line.text) for line in read(result("x" * 100_000))) <= 400
    assert len(skim(result("row of text\n" * 1000))) < 40


def test_prose_and_output_and_json_give_lines_of_different_kinds() -> None:
    assert read({"role": "user", "content": "x y"})[0].kind is LineKind.SENTENCE
    assert read(result("plain"))[0].kind is LineKind.OUTPUT
    assert read(result({"a": 1}))[0].kind is LineKind.RECORD


@given(JSON)
def test_any_json_can_be_read(value: Any) -> None:
    assert all(line.size > 0 for line in read(result(value)))


def test_sentences_that_begin_with_small_letters_are_separate_lines() -> None:
    said = "Hey there. i need a flight to Oslo, any day next week. never book me on a red-eye. thanks."

    assert "never book me on a red-eye." in texts({"role": "user", "content": said})


@pytest.mark.parametrize(
    "rule",
    [
        'Always sign with "Yours, M." and never add a date.',
        'End every answer with "Over and out!"',
        "Never shorten names, e.g. Bob for Robert, or i.e. where a word will do.",
        "Please answer in short sentences; two at most.",
        "Schreib mir immer auf Deutsch, z.B. auch bei Rechnungen.",
        "Always address me as Dr. Okafor in letters.",
        "Dr. Okafor must always be in copy.",
        "Nie nach 18 Uhr anrufen, bitte auch nicht bzw. nur im Notfall mailen.",
    ],
)
def test_a_sentence_stays_whole(rule: str) -> None:
    assert rule in texts(
        {"role": "user", "content": f"It rained in Ghent all day, what a pity. {rule} Thanks a lot for it!"}
    )


def test_a_pasted_block_is_a_line_that_says_what_it_is_and_rows_of_output() -> None:
    code = "class Shelf:\n    pass\n\ndef refill(shelf):\n    return shelf"
    found = read({"role": "user", "content": f"Why does this fail?\n```python\n{code}\n```\nI never use globals."})

    assert [line.text for line in found if line.kind is LineKind.SENTENCE] == [
        "Why does this fail?",
        "[pasted 5 rows of python: Shelf, refill]",
        "I never use globals.",
    ]
    assert not any(line.binding for line in found if line.kind is LineKind.OUTPUT)
