"""Messages are read once, and are what they were."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire import interned
from gateway.wire.chat import memo_of, parse

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

    read = interned.read(raw)

    assert read == orjson.loads(raw)
    assert list(read) == ["first", "messages", "last"]


def test_a_message_seen_before_is_the_same_object_with_all_that_was_found_out() -> None:
    before = parse(body({"role": "assistant", "content": "yes"}))
    assert before
    memo_of(before.messages[0])["asked"] = 1

    after = parse(body({"role": "assistant", "content": "no"}, {"role": "user", "content": "why?"}))

    assert after
    assert after.messages[0] is before.messages[0]
    assert memo_of(after.messages[0]) == {"asked": 1}
    assert after.messages[1] is not before.messages[1]


@pytest.mark.parametrize(
    "raw",
    [
        body()[:-1],
        body() + b"}",
        body().replace(b"word ", b"w\xfford ", 1),
        body().replace(b"word ", b"\\ud800 ", 1),
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
    raw = orjson.dumps({"messages": [{"role": "user", "content": "A" * (interned.LONGEST + 1)}]})

    one, two = parse(raw), parse(raw)

    assert one and two
    assert one.messages == two.messages == tuple(orjson.loads(raw)["messages"])
    assert one.messages[0] is not two.messages[0]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interned, "KEPT_BYTES", 20_000)
    first = parse(body(n=0))
    assert first

    for number in range(40):
        parse(orjson.dumps({"messages": [{"role": "user", "content": f"{number} {LONG}"}]}))

    again = parse(body(n=1))
    assert again
    assert again.messages == first.messages
    assert again.messages[0] is not first.messages[0]
    assert len(interned._TABLE._young) + len(interned._TABLE._old) < 20
