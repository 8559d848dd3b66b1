"""The seam for wire formats: what every format must hold."""

from typing import Any

import orjson
import pytest

from gateway.wire.chat import CHAT
from gateway.wire.format import Edits, Format
from gateway.wire.formats import FORMATS, format_of
from gateway.wire.messages import MESSAGES
from gateway.wire.responses import RESPONSES

BODY = b'{"model": "a",  "messages": [{"role":"user","content":"Hi"}], "temperature": 1.50, "max_tokens": 900}'


def test_each_format_stands_under_its_own_path():
    assert all(path == format.path and format_of(path) is format for path, format in FORMATS.items())
    assert format_of("/v1/embeddings") is None


def test_no_edit_returns_the_very_bytes():
    conversation = CHAT.parse(BODY)
    for edits in (Edits(), Edits(model="a"), Edits(messages=conversation.messages), Edits(output=900)):
        assert CHAT.encode(conversation, edits) is conversation.raw


def test_edits_leave_every_other_byte():
    conversation = CHAT.parse(BODY)
    shorter = ({"role": "user", "content": "H"},)
    assert CHAT.encode(conversation, Edits("b", shorter, 16)) == (
        b'{"model": "b",  "messages": [{"role":"user","content":"H"}], "temperature": 1.50, "max_tokens": 16}'
    )


def test_a_long_body_is_skimmed_and_says_the_same():
    long = orjson.dumps({**orjson.loads(BODY), "messages": [{"role": "user", "content": "word " * 9000}]})
    skimmed, parsed = CHAT.read(long), CHAT.parse(long)
    assert "messages" not in skimmed.head
    assert (skimmed.model, skimmed.stream, skimmed.output_limits) == (parsed.model, parsed.stream, parsed.output_limits)
    assert skimmed.messages == parsed.messages


PREAMBLES = [
    b"",
    b'{"choices":[]}',
    b'{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}',
    b'{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
    b'{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":[]}}]}',
]
CONTENT = [
    b'{"choices":[{"index":0,"delta":{"content":"H"}}]}',
    b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c"}]}}]}',
    b'{"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}',
    b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    b'{"choices":[{"index":0,"text":"a completion"}]}',
    b'{"choices":[],"usage":{"prompt_tokens":3}}',
    b'{"choices":[],"error":{"message":"no"}}',
    b'{"error":{"message":"no"}}',
    b"[DONE]",
    b"not JSON",
    b"[" * 5000,
]


@pytest.mark.parametrize("data", PREAMBLES)
def test_an_event_without_content_is_a_preamble(data: bytes):
    assert CHAT.is_preamble(data)


@pytest.mark.parametrize("data", CONTENT)
def test_anything_else_counts_as_content(data: bytes):
    assert not CHAT.is_preamble(data)


def with_calls_of_one_id(path: str) -> dict[str, Any]:
    """A request whose assistant made three calls, all with the same id or none."""
    given = [{"number": number, "text": "x" * 50} for number in range(3)]
    if path == MESSAGES.path:
        blocks = [{"type": "tool_use", "id": {"odd": 1}, "name": "f", "input": each} for each in given]
        return {
            "model": "m",
            "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": blocks}],
        }
    calls = [{"type": "function_call", "name": "f", "arguments": orjson.dumps(each).decode()} for each in given]
    return {"model": "m", "input": [{"role": "user", "content": "Go."}, *calls]}


@pytest.mark.parametrize("format", [MESSAGES, RESPONSES], ids=lambda format: format.name)
def test_cut_arguments_go_to_their_own_call_whatever_the_ids(format: Format) -> None:
    asked = format.parse(orjson.dumps(with_calls_of_one_id(format.path)))
    assert asked is not None
    said = asked.messages[-1]
    calls = [*said["tool_calls"]]
    calls[1] = {**calls[1], "function": {**calls[1]["function"], "arguments": '{"number":1,"text":"x..."}'}}

    sent = format.encode(asked, Edits(messages=(*asked.messages[:-1], {**said, "tool_calls": calls})))

    again = format.parse(sent)
    assert again is not None
    arguments = [orjson.loads(call["function"]["arguments"]) for call in again.messages[-1]["tool_calls"]]
    assert arguments == [
        {"number": 0, "text": "x" * 50},
        {"number": 1, "text": "x..."},
        {"number": 2, "text": "x" * 50},
    ]
