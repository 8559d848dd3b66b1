"""Passages: lines of one message that are quoted together."""

from typing import Any

from gateway.context.read import lines
from gateway.context.weigh.passages import PASSAGE_TOKENS, split_into_passages

SENTENCE = "The plumber comes on Tuesday with the new valve for the boiler."


def passages_of(message: dict[str, Any]) -> list[range]:
    read = lines.read(message)
    return split_into_passages(read, range(len(read)))


def test_a_message_hardly_longer_than_a_passage_is_whole() -> None:
    assert len(passages_of({"role": "user", "content": " ".join([SENTENCE] * 3)})) == 1


def test_long_prose_is_split_into_passages_that_have_all_its_lines() -> None:
    message = {"role": "user", "content": " ".join(f"{SENTENCE} No {number} is due." for number in range(30))}
    read, passages = lines.read(message), passages_of(message)

    assert [position for passage in passages for position in passage] == list(range(len(read)))
    assert len(passages) > 1
    assert all(sum(read[at].size for at in each) <= PASSAGE_TOKENS for each in passages if len(each) > 1)


def test_each_record_of_a_long_result_is_a_passage() -> None:
    records = ", ".join(
        f'{{"id": "KX-{number}", "name": "lamp {number}", "price": {number}.5}}' for number in range(40)
    )
    message = {"role": "tool", "tool_call_id": "c", "content": f"[{records}]"}
    read = lines.read(message)

    assert all(len({read[at].group for at in passage}) == 1 for passage in passages_of(message))
