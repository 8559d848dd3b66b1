"""What a back end writes around every answer is no fact that a later call needs."""

from typing import Any

import orjson
import pytest

from gateway.context.choose.digest import choose
from gateway.context.choose.rows import render
from gateway.context.count.message_cost import counter
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool

COUNT = counter("o200k").text
TOOLS = ("find_customer", "get_line", "list_plans", "get_invoice")


def pool(answers: dict[str, dict[str, Any]], said: str = "Thanks.") -> LinePool:
    """Results of tools, each behind its call, and what the user said then."""
    messages: list[tuple[dict[str, Any], str]] = [({"role": "user", "content": "Hello, I have a question."}, "")]
    for tool, answer in answers.items():
        called = {"id": tool, "type": "function", "function": {"name": tool, "arguments": "{}"}}
        messages.append(({"role": "assistant", "content": None, "tool_calls": [called]}, ""))
        messages.append(({"role": "tool", "tool_call_id": tool, "content": orjson.dumps(answer).decode()}, f"{tool}()"))
    messages.append(({"role": "user", "content": said}, ""))
    return LinePool(
        [MessageLines(index, each["role"], lines.read(each), tool) for index, (each, tool) in enumerate(messages)], 0
    )


def answers(tools: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {
        tool: {
            "id": f"LN-31{n}07{n}",
            "note": "open",
            "meta": {"request_id": f"e27f1a{n}-1b8{n}", "node": f"a{n}-2{n}"},
        }
        for n, tool in enumerate(tools)
    }


def texts_of_envelope(found: LinePool) -> set[str]:
    return {found.lines[place].text for place in found.envelope}


def test_an_id_of_each_answer_leaves_its_room_to_ids_of_records() -> None:
    found = pool(answers(TOOLS))
    digest = render(found, choose(found, 70, COUNT))

    assert all(f"LN-31{n}07{n}" in digest for n in range(len(TOOLS)))
    assert "e27f1a" not in digest


def test_a_field_of_fewer_tools_is_none() -> None:
    assert not pool(answers(TOOLS[:2])).envelope


def test_the_id_of_a_result_is_none() -> None:
    """Many interfaces call the id of whatever they return *id*."""
    assert not any("LN-31" in text for text in texts_of_envelope(pool(answers(TOOLS))))


def test_the_number_of_an_order_in_every_answer_is_none_once_it_is_named() -> None:
    every = {tool: {"order_id": "W4471820", **answer} for tool, answer in answers(TOOLS).items()}
    found = texts_of_envelope(pool(every, "What about W4471820?"))

    assert any("e27f1a0" in text for text in found)
    assert not any("W4471820" in text for text in found)


def commands(*outputs: str, code: str = "0", said: str = "Thanks.") -> LinePool:
    """Results of commands, each behind the header that Codex writes; the last one has this exit code."""
    readings: list[tuple[dict[str, Any], str]] = []
    for n, output in enumerate(outputs):
        exit_code = code if n == len(outputs) - 1 else "0"
        header = f"Chunk ID: 2f{n}a0c\nWall time: 0.{n}13 seconds\nProcess exited with code {exit_code}\nOriginal token count: {n}7\nOutput:\n"
        readings.append(
            ({"role": "tool", "tool_call_id": "c", "content": header + output}, f"exec_command(cmd=step {n})")
        )
    readings.append(({"role": "user", "content": said}, ""))
    return LinePool([MessageLines(n, each["role"], lines.read(each), tool) for n, (each, tool) in enumerate(readings)])


OUTPUTS = tuple(f"{where}: order W44718{n}0\n3 rows" for n, where in enumerate(("lane", "card", "board", "shelf")))


def test_rows_that_a_program_writes_before_each_output_are_an_envelope() -> None:
    found = commands(*OUTPUTS)
    digest = render(found, choose(found, 75, COUNT))

    assert len(found.envelope) == 5 * len(OUTPUTS)
    assert all(f"W44718{n}0" in digest for n in range(len(OUTPUTS)))
    assert "Chunk" not in digest
    assert "Chunk" not in render(found, choose(found, 1000, COUNT))


def test_a_header_without_output_is_an_envelope_too() -> None:
    """A command that prints nothing has only the header. Otherwise its number would be shown as its output."""
    found = commands(*OUTPUTS, "", "")

    assert len(found.envelope) == 5 * (len(OUTPUTS) + 2)
    assert "Chunk" not in render(found, choose(found, 1000, COUNT))


def edits(*results: str) -> LinePool:
    """Results of edits of four files."""
    return LinePool(
        [
            MessageLines(n, "tool", lines.read({"role": "tool", "content": text}), f"edit(file_path=src/{name}.py, …)")
            for n, (name, text) in enumerate(zip(("lane", "card", "board", "shelf", "crate"), results, strict=False))
        ]
    )


UPDATED = [
    f"The file src/{name}.py has been updated. Its state is current." for name in ("lane", "card", "board", "shelf")
]


def test_an_answer_that_only_repeats_its_call_is_an_envelope() -> None:
    """Claude Code writes behind each edit that the state of the file is current in the context: after a fold it is not."""
    found = edits(*UPDATED, "String not found in src/crate.py.")

    assert texts_of_envelope(found) == set(UPDATED)
    assert not edits(*UPDATED[:3]).envelope
    assert not edits(*[f"It has {n}12 rows now." for n in range(4)]).envelope


@pytest.mark.parametrize("code", ["1", "127", "-9"])
def test_the_exit_code_of_a_command_that_failed_is_none(code: str) -> None:
    found = commands(*OUTPUTS, code=code)

    assert f"Process exited with code {code}" not in texts_of_envelope(found)
    assert "Process exited with code 0" in texts_of_envelope(found)


def test_a_header_that_is_named_later_or_of_few_results_is_none() -> None:
    assert not any("Chunk" in text for text in texts_of_envelope(commands(*OUTPUTS, said="Read on at 2f0a0c.")))
    assert not commands(*OUTPUTS[:3]).envelope


def test_records_as_text_are_no_headers() -> None:
    found = commands(*OUTPUTS)
    orders = [
        MessageLines(
            n,
            "tool",
            lines.read({"role": "tool", "content": f"Total: {n}12.50\nStatus: open\nParcel: {n}5 kg"}),
            "get_order",
        )
        for n in range(6)
    ]

    assert found.envelope
    assert not LinePool(orders).envelope
