"""The seam for wire formats: what every format must hold."""

import orjson
import pytest

from gateway.wire.chat import CHAT
from gateway.wire.format import Edits
from gateway.wire.formats import FORMATS, format_of

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
