"""Messages are read once, and are what they were."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire import interned
from gateway.wire.chat import parse
from gateway.wire.derived import derived_of
from gateway.wire.memory import LONGEST_SHARE, Memory

LONG = "word " * 1000


def body(*messages: dict[str, Any], **beside: Any) -> bytes:
    return orjson.dumps({"model": "m", "messages": [{"role": "user", "content": LONG}, *messages], **beside})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=4), json_values)
def test_a_body_says_what_it_says(messages: list[dict[str, Any]], beside: Any) -> None:
    raw = orjson.dumps({"first": beside, "messages": messages, "last": beside})

    read = interned.read(raw, Memory())

    assert read == orjson.loads(raw)
    assert list(read) == ["first", "messages", "last"]


def test_a_message_seen_before_is_the_same_object_with_all_that_was_found_out() -> None:
    memory = Memory()
    before = parse(body({"role": "assistant", "content": "yes"}), memory)
    assert before
    derived_of(before.messages[0]).costs["a counter"] = 1

    after = parse(body({"role": "assistant", "content": "no"}, {"role": "user", "content": "why?"}), memory)

    assert after
    assert after.messages[0] is before.messages[0]
    assert derived_of(after.messages[0]).costs == {"a counter": 1}
    assert after.messages[1] is not before.messages[1]


def test_a_message_that_comes_again_after_the_same_one_is_the_same_object_until_it_is_forgotten() -> None:
    memory = Memory()
    raw = body({"role": "assistant", "content": "yes"}, {"role": "user", "content": "why?"})
    before, again = parse(raw, memory), parse(raw, memory)
    assert before and again
    assert all(one is other for one, other in zip(before.messages, again.messages, strict=True))

    for message in (before.messages[0], before.messages[2]):
        memory.message(message.raw)  # type: ignore[attr-defined]
    memory.count(memory.budget - memory.size + 1)
    memory.count(-memory.budget // 2)
    later = parse(raw, memory)

    assert later
    assert [one is other for one, other in zip(before.messages, later.messages, strict=True)] == [True, False, True]
    assert derived_of(later.messages[1]).on_growth is not None


@pytest.mark.parametrize(
    "raw",
    [
        body()[:-1],
        body() + b"}",
        body().replace(b"word ", b"w\xfford ", 1),
        b"[" * 100_000,
        orjson.dumps([LONG]),
        orjson.dumps({"messages": LONG}),
        orjson.dumps({"messages": [LONG]}),
        orjson.dumps({"messages": [{"content": LONG}]}),
        orjson.dumps({"model": LONG}),
    ],
)
def test_what_is_no_chat_request_is_none_here_as_it_is_when_short(raw: bytes) -> None:
    """Cases 1, 118."""
    assert parse(raw) is None


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    raw = body()[:-1] + b',"messages":[{"role":"user","content":"last"}]}'

    request = parse(raw)

    assert request
    assert request.messages == ({"role": "user", "content": "last"},)


def test_a_message_with_a_file_in_it_is_read_and_not_kept() -> None:
    raw = orjson.dumps({"messages": [{"role": "user", "content": "A" * 50_000}]})
    memory = Memory(int(100_000 / LONGEST_SHARE))

    one, two = parse(raw, memory), parse(raw, memory)

    assert one and two
    assert one.messages == two.messages == tuple(orjson.loads(raw)["messages"])
    assert one.messages[0] is not two.messages[0]
