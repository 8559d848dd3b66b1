"""A skimmed body says the same as a parsed one, as far as it says anything."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat import ELSEWHERE, parse, skim

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
        ELSEWHERE[0]: JSON,
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
    for name in ("model", "max_tokens", "tools", *ELSEWHERE):
        assert skimmed.head.get(name) == body.get(name)
    seen = [message for message in body["messages"] if more_than_one_text(message)]
    for outline, message in zip(skimmed.outline, seen, strict=True):
        assert outline.keys() == message.keys() - {"name", "tool_calls"}
        for key, value in outline.items():
            assert value == message[key] or (value == "" and isinstance(message[key], str))


@given(BODIES)
def test_whoever_asks_for_the_texts_gets_the_whole_body(body):
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
