"""A skimmed body says the same as a parsed one, as far as it says anything."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.wire.chat import parse, skim
from gateway.wire.memory import Memory
from gateway.wire.skim import BEGINNING_BYTES, BEGINNING_STEP, OUTSIDE_MEMBERS, Skimmed, skimmed

TEXTS = st.text(max_size=20)
PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "file"])}, optional={"text": TEXTS, "file": TEXTS}
)
CONTENTS = st.none() | TEXTS | st.lists(PARTS | TEXTS, max_size=3)
CALLS = st.lists(
    st.fixed_dictionaries({"id": TEXTS, "function": st.dictionaries(TEXTS, TEXTS, max_size=2)}), max_size=3
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={
        "content": CONTENTS,
        "tool_calls": CALLS | st.none(),
        "audio": st.none() | st.just({"id": "a"}),
        "name": TEXTS,
    },
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGES, max_size=6)},
    optional={
        "model": TEXTS | st.integers(0, 9) | st.none(),
        "stream": st.booleans(),
        "max_tokens": st.integers(-5, 10**6) | st.none() | TEXTS,
        "tools": JSON,
        "metadata": JSON,
        OUTSIDE_MEMBERS[0]: JSON,
    },
)


def more_than_one_text(message: dict[str, Any]) -> bool:
    return "audio" in message or isinstance(message.get("content"), list)


@given(BODIES)
def test_a_skimmed_body_says_what_a_parsed_one_says(body):
    raw = orjson.dumps(body)
    skimmed, parsed = skim(raw), parse(raw)
    assert skimmed is not None and parsed is not None
    assert skimmed.model == parsed.model
    assert skimmed.stream == parsed.stream
    for name in ("model", "max_tokens", "tools", *OUTSIDE_MEMBERS):
        assert skimmed.head.get(name) == body.get(name)
    assert skimmed.may_call_in_parallel is any(len(message.get("tool_calls") or ()) > 1 for message in body["messages"])
    seen = [message for message in body["messages"] if more_than_one_text(message)]
    for outline, message in zip(skimmed.outline, seen, strict=True):
        assert outline.keys() == message.keys() - {"name", "tool_calls"}
        for key, value in outline.items():
            assert value == message[key] or (value == "" and isinstance(message[key], str))


@given(BODIES)
def test_a_skimmed_body_is_parsed_when_its_texts_are_read(body):
    raw = orjson.dumps(body)
    skimmed = skim(raw)
    assert skimmed is not None
    assert skimmed.body == body
    assert list(skimmed.messages) == body["messages"]
    assert skimmed.raw == raw


@given(JSON)
def test_whatever_is_skimmed_could_be_parsed(value):
    """A body of another shape is nobody's to decide about, skimmed or parsed."""
    raw = orjson.dumps(value)
    assert skim(raw) is None or parse(raw) is not None


@pytest.mark.parametrize("calls", [b"{}", b'"two"', b"2"])
def test_calls_of_another_shape_are_parsed(calls):
    """The upstream judges them."""
    raw = b'{"messages":[{"role":"assistant","tool_calls":' + calls + b"}]}"

    assert skim(raw) is None
    assert parse(raw) is not None


BROKEN = [
    b"",
    b"{",
    b"null",
    b'{"messages":{}}',
    b'{"messages":[1]}',
    b'{"messages":[{}]}',
    b'{"messages":[{"role":1}]}',
    b'{"messages":[{"role":"user","content":"a]}',
    b'{"messages":[{"role":"user","content":[tru]}]}',
    b'{"messages":[]} x',
    b'{"messages":' + b"[" * 100_000,
    b'{"messages":[{"role":"user","content":' + b"[" * 100_000,
]


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: repr(raw[:40]))
def test_a_broken_body_is_not_skimmed(raw):
    assert skim(raw) is None
    assert raw.count(b"[") > 1000 or parse(raw) is None


def test_the_last_of_two_equal_keys_counts():
    skimmed = skim(b'{"model":"a","messages":[],"model":"b","messages":[{"role":"user","content":["x"]}]}')
    assert skimmed is not None
    assert (skimmed.model, len(skimmed.outline)) == ("b", 1)


def test_a_text_that_cannot_be_parsed_leaves_nothing_to_fold():
    """What is no UTF-8 travels as it came; only whoever wants its texts finds none."""
    skimmed = skim(b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}')
    assert skimmed is not None
    assert (skimmed.model, skimmed.messages, skimmed.body["model"]) == ("m", (), "m")


LONG = {"role": "user", "content": "x" * BEGINNING_BYTES}
"""A first message by which the body before is found."""


def read_after(raw: bytes, *earlier: bytes) -> Skimmed | None:
    """Return what is read of a body after others."""
    memory = Memory()
    for each in earlier:
        skimmed(each, memory)
    return skimmed(raw, memory)


def same(left: Skimmed | None, right: Skimmed | None) -> bool:
    if left is None or right is None:
        return left is right
    firsts = [one.opening for one in (left, right)]
    return replace(left, opening=None) == replace(right, opening=None) and firsts[0] == firsts[1]


@given(BODIES, st.lists(MESSAGES, max_size=3), BODIES, st.booleans())
def test_a_body_is_read_alike_whatever_came_before_it(body, more, other, in_front):
    def written(messages: list[Any], members: dict[str, Any]) -> bytes:
        beside = {name: value for name, value in members.items() if name != "messages"}
        both = {**beside, "messages": messages} if in_front else {"messages": messages, **beside}
        return orjson.dumps(both)

    before = written([LONG, *body["messages"]], body)
    for messages in ([LONG, *body["messages"], *more], [LONG, *more], [LONG]):
        for members in (body, other):
            raw = written(messages, members)
            assert same(read_after(raw, before), read_after(raw))
            longer = written([*messages, *more], members)
            assert same(read_after(longer, before, raw), read_after(longer))


@pytest.mark.parametrize(
    "end",
    [
        b'"messages":[%b,{"role":"user","content":["a"%b]}]}',  # grown inside a message
        b'"messages":[%b,{"role":"user","content":"[\\"a\\"%b]"}]}',  # inside a text
        b'"messages":[%b],"tools":[{"role":"user"}%b]}',
        b'"tools":[{"role":"user"}%b],"messages":[%b]}',
        b'"messages":[%b],"stop":["a"%b]}',
        b'"messages":[%b],"messages":[{"role":"user"}%b]}',
    ],
)
@pytest.mark.parametrize("added", [b',{"role":"user","type":"web_search"}', b',"b"', b","])
def test_what_grows_elsewhere_is_read_as_if_it_were_new(end, added):
    def body(more: bytes) -> bytes:
        first = orjson.dumps(LONG)
        parts = (more, first) if end.startswith(b'"tools"') else (first, more)
        return b'{"model":"m",' + b'"user":"%b",' % (b"u" * BEGINNING_BYTES) + end % parts

    assert same(read_after(body(added), body(b"")), read_after(body(added)))
    assert same(read_after(body(2 * added), body(b""), body(added)), read_after(body(2 * added)))


def test_of_a_grown_conversation_only_what_is_new_is_read():
    question = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    before = orjson.dumps({"model": "m", "messages": [LONG, question], "stream": True})
    now = orjson.dumps({"model": "m", "messages": [LONG, question, {"role": "assistant"}, question], "stream": False})
    memory = Memory()
    earlier, later = skimmed(before, memory), skimmed(now, memory)

    assert earlier is not None and later is not None
    assert later.outline[0] is earlier.outline[0]
    assert (later.message_count, len(later.outline), later.head["stream"]) == (4, 2, False)
    assert skimmed(now, memory) is later

    longer = orjson.dumps({"model": "m", "messages": [LONG, question, {"role": "assistant"}, question, LONG]})
    latest = skimmed(longer, memory)
    assert latest is not None and latest.outline[1] is later.outline[1]


@pytest.mark.parametrize("place", range(BEGINNING_STEP + 1))
def test_a_body_that_differs_in_one_byte_is_read_as_if_it_were_new(place):
    """Whether it is one of the bytes by which an earlier body is found or not."""
    before = orjson.dumps({"messages": [LONG, {"role": "user"}]})
    at = BEGINNING_BYTES // 2 + place
    now = before[:at] + b"y" + before[at + 1 :]

    assert same(read_after(now, before), read_after(now))


def test_a_body_larger_than_a_share_of_the_memory_is_not_kept():
    memory = Memory(budget=4 * BEGINNING_BYTES)
    skimmed(orjson.dumps({"messages": [LONG]}), memory)

    assert memory.size == 0


def test_bodies_however_many_leave_room_for_messages():
    memory = Memory(budget=2**20)
    message = orjson.dumps({"role": "user", "content": "kept"})
    kept = memory.message(message)
    for number in range(60):
        first = {"role": "user", "content": f"{number} {LONG['content']}"}
        skimmed(orjson.dumps({"messages": [first, LONG]}), memory)

    assert memory.size < memory.budget * 3 / 4
    assert memory.message(message) is kept
