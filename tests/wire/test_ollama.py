"""Ollama's own chat API: what is read of it, and what a fold makes of it."""

from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.standin import ollama as strict
from gateway.standin.validity import broken_more_often
from gateway.wire.format import Edits
from gateway.wire.formats import recognise
from gateway.wire.message import text_of
from gateway.wire.ollama import OLLAMA, is_end, is_preamble
from tests.wire.conversations import PNG, ollama_body
from tests.wire.folding import folded, read

USER = {"role": "user", "content": "Go."}


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, **({} if arguments is None else {"arguments": arguments})}, **more}


def said(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def result(text: str = "found", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, **more}


def asked(*messages: Any, **more: Any) -> Any:
    return read(OLLAMA, {"model": "m", "messages": list(messages), **more})


# Reading


def test_a_body_is_read_with_ollamas_defaults() -> None:
    request = asked(USER)
    assert (request.model, request.stream, request.output_limits, request.asked_window) == ("m", True, (), None)
    assert asked(USER, stream=None).stream
    assert not asked(USER, stream=False).stream


@pytest.mark.parametrize(
    ("options", "window", "limits"),
    [
        ({"num_ctx": 8192, "num_predict": 300}, 8192, (300,)),
        ({"num_ctx": 8192.0, "num_predict": 300.0}, 8192, (300,)),
        ({"num_ctx": 0, "num_predict": 0}, None, ()),
        ({"num_ctx": -1, "num_predict": -1}, None, ()),
        ({"num_ctx": True, "num_predict": -2}, None, ()),
        ({"num_ctx": "8192", "num_predict": None}, None, ()),
        (None, None, ()),
        ([8192], None, ()),
    ],
)
def test_window_and_output_limit_are_positive_numbers_among_the_options(options, window, limits) -> None:
    request = asked(USER, options=options)
    assert (request.asked_window, request.output_limits) == (window, limits)


def test_results_get_the_ids_of_their_calls_by_order_and_by_name() -> None:
    request = asked(
        USER, said(call("look", {"a": 1}), call("write", {}), call("look")),
        result(tool_name="write"), result(tool_name="look"), result(), result("too many"),
        said(call("look", {}, id="x"), call("look", {}, id="y")), result(tool_call_id="y"), result(),
    )  # fmt: skip
    assert [each["id"] for each in request.messages[1]["tool_calls"]] == ["call_1_0", "call_1_1", "call_1_2"]
    ids = [message.get("tool_call_id") for message in request.messages if message["role"] == "tool"]
    assert ids == ["call_1_1", "call_1_0", "call_1_2", "result_5", "y", "x"]


def test_arguments_are_text_in_the_view_with_all_their_digits() -> None:
    raw = b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"id": 123456789012345678901234567890}}}]}]}'
    request = OLLAMA.parse(raw)
    assert request is not None
    function = request.messages[0]["tool_calls"][0]["function"]
    assert function == {"name": "f", "arguments": '{"id":123456789012345678901234567890}'}


def test_images_are_media_in_the_view() -> None:
    content = asked({"role": "user", "content": "What is this?", "images": [PNG]}).messages[0]["content"]
    assert [part["type"] for part in content] == ["text", "image"]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        None,
        "hello",
        {"role": "user"},
        [USER, "hello"],
        [{"content": "no role"}],
        [{"role": 1, "content": "x"}],
        [{"role": "user", "content": [{"type": "text", "text": "parts"}]}],
        [{"role": "user", "content": "x", "images": "QUJD"}],
        [{"role": "user", "content": "x", "images": [1]}],
        [{"role": "assistant", "tool_calls": {}}],
        [{"role": "assistant", "tool_calls": ["f"]}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a":1}'}}]}],
        [{"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}],
        [{"role": "tool", "content": "x", "tool_name": ["f"]}],
    ],
)
def test_what_ollama_does_not_read_as_a_conversation_is_none(messages) -> None:
    assert OLLAMA.parse(orjson.dumps({"model": "m", "messages": messages})) is None


def test_deep_arguments_and_doubled_members_are_read() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    raw = b'{"model":"x","model":"m","messages":[],"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":%b}}]}]}'
    request = OLLAMA.parse(raw % deep)
    assert request is not None
    assert request.model == "m"
    assert request.messages[0]["tool_calls"][0]["function"]["arguments"].encode() == deep
    assert OLLAMA.parse(raw % (b'{"a":' * 100_000)) is None


def test_what_is_no_strict_json_is_read_and_leaves_as_it_came() -> None:
    repaired = OLLAMA.parse(rb'{"model":"m","messages":[{"role":"user","content":"half \ud83d"}]}')
    assert repaired is not None
    assert not repaired.rewritten


RECOGNISED = [
    {"messages": [USER], "options": {}},
    {"messages": [USER], "keep_alive": 0},
    {"messages": [USER], "think": False},
    {"messages": [{**USER, "images": [PNG]}]},
    {"messages": [USER, said(call("f", {}))]},
    {"messages": [USER, said(call("f", {})), result(tool_name="f")]},
]


@pytest.mark.parametrize("body", RECOGNISED)
def test_a_body_is_recognised_without_its_path(body) -> None:
    found = recognise(orjson.dumps({"model": "m", **body}))
    assert found is not None
    assert found.format is OLLAMA


def test_a_body_that_may_be_of_chat_completions_is_one() -> None:
    given = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for more in ([], [{"role": "assistant", "tool_calls": [given]}]):
        found = recognise(orjson.dumps({"model": "m", "messages": [USER, *more]}))
        assert found is not None
        assert found.format.name == "chat"


# Writing


def test_edits_leave_every_other_byte() -> None:
    raw = (
        b'{"model": "a",  "messages": [{"role":"user","content":"Hi"}], "options": {"num_predict": 900, "top_p": 0.50}}'
    )
    request = OLLAMA.parse(raw)
    assert request is not None
    for edits in (Edits(), Edits(model="a"), Edits(messages=request.messages), Edits(output=900)):
        assert OLLAMA.encode(request, edits) is request.raw
    shorter = ({**request.messages[0], "content": "H"},)
    assert OLLAMA.encode(request, Edits("b", shorter, 16)) == (
        b'{"model": "b",  "messages": [{"role":"user","content":"H"}], "options": {"num_predict": 16, "top_p": 0.50}}'
    )


def test_a_changed_message_keeps_its_other_members() -> None:
    request = asked(
        {**USER, "images": [PNG, "QUJD"], "more": 1.5},
        said(call("f", {"a": 1}, id="c", more=[1]), call("f", {"a": 2}), thinking="hm"),
        result(tool_name="f"),
    )
    asking, calling, found = request.messages
    text, first, _ = asking["content"]
    cut = {**calling["tool_calls"][1], "function": {**calling["tool_calls"][1]["function"], "arguments": '{"a":3}'}}
    edited = (
        {**asking, "content": [text, first, {"type": "text", "text": "[image removed]"}]},
        {**{name: value for name, value in calling.items() if name != "reasoning"}, "tool_calls": [calling["tool_calls"][0], cut]},
        {**found, "content": "f..."},
        {"role": "user", "content": [{"type": "text", "text": "A note."}]},
    )  # fmt: skip
    sent = orjson.loads(OLLAMA.encode(request, Edits(messages=edited)))
    assert sent["messages"] == [
        {**USER, "content": "Go.\n[image removed]", "images": [PNG], "more": 1.5},
        said(call("f", {"a": 1}, id="c", more=[1]), call("f", {"a": 3}), thinking=""),
        result("f...", tool_name="f"),
        {"role": "user", "content": "A note."},
    ]


# Folding


@pytest.mark.parametrize("start", [0, 200])
def test_every_fold_is_acceptable_to_a_strict_server(start: int) -> None:
    for seed in range(start, start + 200):
        body = ollama_body(seed)
        assert strict.violations(body) == [], seed
        rung, share = 1 + seed % 3, (0.7, 0.3, 0.1, 0.05)[seed % 4]
        sent = orjson.loads(folded(OLLAMA, body, share, rung))
        assert broken_more_often(strict.violations(body), strict.violations(sent)) == [], seed
        assert {name: value for name, value in sent.items() if name != "messages"} == {
            name: value for name, value in body.items() if name != "messages"
        }
        assert b"turnfold." not in orjson.dumps(sent)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), share=st.floats(0.03, 0.9), rung=st.integers(1, 3))
def test_calls_stay_with_their_results_and_nothing_is_made_up(seed: int, share: float, rung: int) -> None:
    """Ids of calls are the client's own or none, arguments are objects, images are the client's."""
    body = ollama_body(seed)
    sent = orjson.loads(folded(OLLAMA, body, share, rung))["messages"]
    waiting: Counter[str] = Counter()
    own_ids = {each.get("id") for message in body["messages"] for each in message.get("tool_calls", ())}
    for message in sent:
        if message["role"] == "tool":
            waiting["results"] -= 1
        else:
            assert waiting["results"] == 0
        for each in message.get("tool_calls", ()):
            waiting["results"] += 1
            assert each.get("id") in own_ids
            assert isinstance(each["function"]["arguments"], dict)
        assert isinstance(message["content"], str)
        assert all(image == PNG for image in message.get("images", ()))
    assert waiting["results"] == 0
    assert body["messages"][-1]["role"] == sent[-1]["role"]


def test_the_newest_message_is_kept_as_it_came() -> None:
    rows = [{"role": ("user", "assistant")[n % 2], "content": f"Turn {n}: the port is 80{n}." * 30} for n in range(41)]
    sent = orjson.loads(folded(OLLAMA, {"model": "m", "messages": rows}, 0.2))["messages"]
    assert text_of(sent[-1]).startswith(rows[-1]["content"])
    assert len(sent) < len(rows)


# Streams


@pytest.mark.parametrize(
    ("line", "preamble", "end"),
    [
        (b'{"message":{"role":"assistant","content":""},"done":false}', True, False),
        (b'{"message":{"role":"assistant","content":"","thinking":"","tool_calls":[]},"done":false}', True, False),
        (b'{"message":{"role":"assistant","content":"H"},"done":false}', False, False),
        (b'{"message":{"role":"assistant","content":"","thinking":"H"},"done":false}', False, False),
        (b'{"message":{"role":"assistant","content":"","tool_calls":[{}]},"done":false}', False, False),
        (b'{"message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":3}', False, True),
        (b'{"error":"no"}', False, False),
        (b'{"message":"odd","done":false}', False, False),
        (b"not JSON", False, False),
        (b"[" * 5000, False, False),
    ],
)
def test_lines_before_content_and_the_last_line_are_told_apart(line: bytes, preamble: bool, end: bool) -> None:
    assert (is_preamble(line), is_end(line)) == (preamble, end)
