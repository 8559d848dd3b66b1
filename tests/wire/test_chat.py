"""The wire format: reading bodies as they come, and editing as few bytes as possible."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire import chat as wire
from gateway.wire.format import Edits
from gateway.wire.message import call_arguments, call_name, canonical, media_parts, text_of, tool_calls
from gateway.wire.splice import splice

NOT_DECIDABLE = [
    b"",
    b"not json",
    b"[]",
    b'"text"',
    b"{}",
    b'{"messages":null}',
    b'{"messages":{}}',
    b'{"messages":["hi"]}',
    b'{"messages":[{"content":"no role"}]}',
    b'{"messages":[{"role":7}]}',
    b'{"messages":[{"role":"user","content":"\xff"}]}',
]


@pytest.mark.parametrize("raw", NOT_DECIDABLE)
def test_a_body_of_another_shape_is_nothing_to_decide_about(raw: bytes) -> None:
    assert wire.parse(raw) is None


def test_an_empty_history_is_a_request_all_the_same() -> None:
    request = wire.parse(b'{"model":"m","messages":[]}')

    assert request is not None
    assert request.messages == ()


@pytest.mark.parametrize("model", [b"null", b"7", b'["m"]', b"{}"])
def test_a_model_that_is_no_string_reads_as_none(model: bytes) -> None:
    request = wire.parse(b'{"model":' + model + b',"messages":[]}')

    assert request is not None
    assert request.model == ""


SPLICES = [
    (b'{"model":"fast","n":1.50}', {"model": "slow"}, b'{"model":"slow","n":1.50}'),
    (b'{ "model" :  "fast" , "n":1.50 }', {"model": "slow"}, b'{ "model" :  "slow" , "n":1.50 }'),
    (b'{"n":1e2,"model":"fast"}', {"model": "slow"}, b'{"n":1e2,"model":"slow"}'),
    (b'{"x":{"model":"inner"},"model":"fast"}', {"model": "slow"}, b'{"x":{"model":"inner"},"model":"slow"}'),
    (b'{"model":"a","model":"fast"}', {"model": "slow"}, b'{"model":"a","model":"slow"}'),
    (b'{"mod\\u0065l":"fast"}', {"model": "slow"}, b'{"mod\\u0065l":"slow"}'),
    (b'{"s":"\\u00e9 \\"}{","max_tokens":5}', {"max_tokens": 3}, b'{"s":"\\u00e9 \\"}{","max_tokens":3}'),
    (b"{}", {"a": 1}, b'{"a":1}'),
    (b'{"a":1}', {"b": None, "c": []}, b'{"a":1,"b":null,"c":[]}'),
    ('{"t":"日本","m":1}'.encode(), {"m": 2}, '{"t":"日本","m":2}'.encode()),
    (
        b'\n{"big":123456789012345678901234567890,"m":1}\n',
        {"m": 2},
        b'\n{"big":123456789012345678901234567890,"m":2}\n',
    ),
]


@pytest.mark.parametrize(("raw", "changes", "expected"), SPLICES)
def test_splicing_changes_the_named_values_and_no_other_byte(
    raw: bytes, changes: dict[str, object], expected: bytes
) -> None:
    assert splice(raw, changes) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["model", "messages", "max_tokens", "x", 'q"', "é"]), json_values, min_size=1),
    st.dictionaries(st.sampled_from(["model", "messages", "max_tokens", "new"]), json_values, min_size=1),
    st.booleans(),
)
def test_a_spliced_body_says_what_the_body_said_with_the_changes(
    body: dict[str, object], changes: dict[str, object], indented: bool
) -> None:
    raw = orjson.dumps(body, option=orjson.OPT_INDENT_2 if indented else None)

    assert orjson.loads(splice(raw, changes)) == {**body, **changes}


@pytest.mark.parametrize("raw", [b"[]", b'{"a" 1}', b"3"])
def test_splicing_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"object|Expecting"):
        splice(raw, {"a": 1})


ODD = b'{"model":"m", "messages": [ {"role" : "user","n":1.50, "content":"caf\\u00e9"} , {"role":"assistant","content":"ok" },{"role":"user", "content":"next"}]}'


def test_a_message_that_stays_keeps_its_bytes_when_others_are_dropped_or_added() -> None:
    request = wire.parse(ODD)
    assert request is not None
    first, _, last = request.messages

    sent = wire.encode(request, Edits(messages=({"role": "user", "content": "note"}, first, last)))

    assert sent == (
        b'{"model":"m", "messages": [{"role":"user","content":"note"},'
        b'{"role" : "user","n":1.50, "content":"caf\\u00e9"},{"role":"user", "content":"next"}]}'
    )


def test_messages_with_lone_surrogates_are_written_as_they_were_read() -> None:
    request = wire.parse(b'{"messages":[{"role":"user","content":"cut \\ud83d"},{"role":"user","content":"go"}]}')
    assert request is not None

    sent = wire.encode(request, Edits(messages=request.messages[:1]))

    assert orjson.loads(sent) == {"messages": [{"role": "user", "content": "cut \ufffd"}]}


SAME = [
    ({"role": "user", "content": "hi"}, {"content": "hi", "role": "user"}),
    ({"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    ({"role": "assistant", "content": None}, {"role": "assistant"}),
    (
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a":1,"b":2}'}}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{ "b": 2, "a": 1 }'}}],
        },
    ),
]
DIFFERENT = [
    ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi "}),
    ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi", "name": "bo"}),
    (
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a":1}'}}]},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a":2}'}}]},
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_meaning_has_equal_canonical_bytes(one: dict[str, object], other: dict[str, object]) -> None:
    """Case 70."""
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_meaning_has_different_canonical_bytes(one: dict[str, object], other: dict[str, object]) -> None:
    assert canonical(one) != canonical(other)


def test_text_is_read_from_strings_parts_and_nested_tool_results() -> None:
    nested = {
        "role": "tool",
        "content": [{"type": "tool_result", "content": [{"type": "text", "text": "deep"}]}, "bare"],
    }

    assert text_of(nested) == "deep\nbare"
    assert text_of({"role": "user", "content": None}) == ""
    assert text_of({"role": "user", "content": 7}) == ""


@given(json_values, json_values)
def test_reading_a_message_of_any_shape_never_fails(content: object, calls: object) -> None:
    message = {"role": "assistant", "content": content, "tool_calls": calls, "function_call": content}

    text_of(message)
    list(media_parts(message))
    for call in tool_calls(message):
        call_name(call)
        call_arguments(call)
    canonical(message)
