"""Ids of what only one server has are read from bodies and answers, and from nothing else in them."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.formats import FORMATS
from gateway.wire.server_ids import LONGEST, MOST, made_in

PATHS = {format.name: format for format in FORMATS.values()}
USER = {"role": "user", "content": "Hi"}


def part(**members: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": "Read it"}, members]}


@pytest.mark.parametrize(
    ("format", "body", "ids"),
    [
        ("responses", {"input": "Hi", "previous_response_id": "resp_1"}, ("resp_1",)),
        ("responses", {"input": "Hi", "conversation": "conv_1"}, ("conv_1",)),
        ("responses", {"input": "Hi", "conversation": {"id": "conv_1"}}, ("conv_1",)),
        ("responses", {"input": [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"}]}, ("msg_2", "msg_1")),
        ("responses", {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, ("rs_1",)),
        ("responses", {"input": [{"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}]}, ()),
        ("responses", {"input": [part(type="input_file", file_id="file-1")]}, ("file-1",)),
        (
            "responses",
            {"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "file_id": "file-1"}]}]},
            ("file-1",),
        ),
        ("responses", {"input": "Hi", "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, ("vs_1",)),
        ("responses", {"input": "Hi", "tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, ("cntr_1",)),
        (
            "responses",
            {"input": "Hi", "tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]},
            ("file-1",),
        ),
        ("responses", {"input": [{"type": "message", "id": "msg_1", **USER}], "tools": "none", "prompt": {"id": "pmpt_1"}}, ()),
        ("responses", {"input": [part(type="input_text", text='"file_id": "file-1"')]}, ()),
        ("chat", {"messages": [part(type="file", file={"file_id": "file-1"})]}, ("file-1",)),
        ("chat", {"messages": [USER, {"role": "assistant", "audio": {"id": "audio_1"}}, USER]}, ("audio_1",)),
        ("chat", {"messages": [USER], "previous_response_id": "resp_1"}, ()),
        ("messages", {"messages": [USER], "container": "container_1"}, ("container_1",)),
        ("messages", {"messages": [USER], "container": {"id": "container_1", "skills": []}}, ("container_1",)),
        ("messages", {"messages": [USER], "thread": {"type": "continue", "id": "thread_1"}}, ("thread_1",)),
        ("messages", {"messages": [part(type="document", source={"type": "file", "file_id": "file_1"})]}, ("file_1",)),
        (
            "messages",
            {"messages": [part(type="tool_result", tool_use_id="t", content=[{"type": "image", "source": {"file_id": "file_1"}}])]},
            ("file_1",),
        ),
        ("responses", {"input": "Hi", "previous_response_id": "x" * (LONGEST + 1), "conversation": 5}, ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("length", [0, 20_000], ids=["parsed", "skimmed"])
def test_a_body_names_ids(format: str, body: Any, ids: tuple[str, ...], length: int) -> None:
    raw = orjson.dumps({"model": "m", **body, "user": "x" * length})
    asked = PATHS[format].read(raw)
    assert asked is not None
    assert PATHS[format].ids.named(asked) == ids


def test_a_long_conversation_names_its_newest_items() -> None:
    items = [{"type": "item_reference", "id": f"msg_{number}"} for number in range(1000)]
    asked = PATHS["responses"].read(orjson.dumps({"model": "m", "input": items}))
    assert PATHS["responses"].ids.named(asked) == tuple(f"msg_{number}" for number in range(999, 999 - MOST, -1))


@pytest.mark.parametrize(
    ("format", "answer", "ids"),
    [
        ("responses", {"id": "resp_1", "output": [{"id": "msg_1"}, {"id": "ci_1", "container_id": "cntr_1"}]}, ("resp_1", "msg_1", "ci_1", "cntr_1")),
        ("responses", {"id": "resp_1", "conversation": {"id": "conv_1"}, "previous_response_id": "resp_0"}, ("resp_1", "conv_1")),
        ("responses", {"type": "response.created", "response": {"id": "resp_1", "output": []}}, ("resp_1",)),
        ("responses", {"type": "response.created", "response": {"id": "resp_1", "store": False}}, ()),
        ("responses", {"id": "resp_1", "store": False, "output": [{"id": "msg_1"}]}, ()),
        ("responses", {"error": {"message": "id resp_1", "id": "resp_1"}}, ()),
        ("chat", {"id": "chatcmpl-1", "choices": [{"message": {"content": "Hi", "audio": None}}]}, ("chatcmpl-1",)),
        ("chat", {"id": "chatcmpl-1", "choices": [{"message": {"audio": {"id": "audio_1"}}}]}, ("chatcmpl-1", "audio_1")),
        ("chat", {"id": "chatcmpl-1", "choices": [{"delta": {"audio": {"id": "audio_1"}}}]}, ("chatcmpl-1", "audio_1")),
        ("messages", {"id": "msg_1", "container": {"id": "container_1"}}, ("container_1",)),
        ("messages", {"type": "message_delta", "delta": {"container": {"id": "container_1"}}}, ("container_1",)),
        ("messages", {"id": "msg_1", "container": None}, ()),
        ("responses", {"id": ["resp_1"], "output": "none"}, ()),
    ],
)  # fmt: skip
def test_an_answer_makes_ids(format: str, answer: Any, ids: tuple[str, ...]) -> None:
    assert PATHS[format].ids.made(orjson.dumps(answer)) == ids


@pytest.mark.parametrize(
    ("format", "body", "may"),
    [
        ("responses", {"input": "Hi"}, True),
        ("responses", {"input": "Hi", "store": False}, False),
        ("chat", {"messages": [USER]}, False),
        ("chat", {"messages": [USER], "store": False}, False),
        ("chat", {"messages": [USER], "store": True}, True),
        ("chat", {"messages": [USER], "modalities": ["text", "audio"]}, True),
        ("messages", {"messages": [USER]}, True),
    ],
)
@pytest.mark.parametrize("length", [0, 20_000], ids=["parsed", "skimmed"])
def test_a_body_says_whether_its_answer_may_be_kept(format: str, body: Any, may: bool, length: int) -> None:
    asked = PATHS[format].read(orjson.dumps({"model": "m", **body, "user": "x" * length}))
    assert PATHS[format].ids.may_make(asked) is may


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["id", "input", "output", "response", "container", "file_id", "content", "tools", "messages", "choices", "audio"]), inner, max_size=4
    ),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_ids_in_any_json_are_texts(value: Any) -> None:
    raw = orjson.dumps(value)
    for format in PATHS.values():
        assert all(isinstance(one, str) for one in (*format.ids.made(raw), *made_in(raw)))
        asked = format.read(raw)
        if asked is not None:
            assert all(isinstance(one, str) for one in format.ids.named(asked))


def test_what_is_no_json_makes_nothing() -> None:
    for raw in (b"", b"[DONE]", b"\xff", b'{"id":"resp_1"', b"[" * 100_000):
        assert all(format.ids.made(raw) == () for format in PATHS.values())
