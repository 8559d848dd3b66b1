"""Who is who: which conversations are the same up to where, and whose memory they may use."""

import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.life.identity import chain, key_hash, scope_of
from tests.fakes import user

SCOPE = "alice.openai"

Message = dict[str, Any]


def calling(arguments: str, **more: Any) -> Message:
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


SAME = [
    ("key order", '{"role":"user","content":"hi","name":"ann"}', '{"name":"ann","content":"hi","role":"user"}'),
    ("white space", '{"role":"user","content":"hi"}', '{ "role" : "user",\n "content" : "hi" }'),
    ("escapes", '{"role":"user","content":"h\\u00e9"}', '{"role":"user","content":"hé"}'),
    ("parts", '{"role":"user","content":"hi"}', '{"role":"user","content":[{"type":"text","text":"hi"}]}'),
    ("null", '{"role":"assistant","content":null}', '{"role":"assistant"}'),
    (
        "cache marks, which clients move along with the newest message",
        '{"role":"user","content":"hi"}',
        '{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}',
    ),
    ("tool arguments", orjson.dumps(calling('{"a":1,"b":2}')), orjson.dumps(calling('{ "b": 2, "a": 1 }'))),
]

DIFFERENT = [
    ("the text", user("hi"), user("ho")),
    ("the role", user("hi"), {"role": "assistant", "content": "hi"}),
    ("the speaker's name", user("hi"), {**user("hi"), "name": "ann"}),
    ("tool arguments", calling('{"a":1}'), calling('{"a":2}')),
    ("tool arguments that are no JSON", calling("{a"), calling("{b")),
    ("a number and its text", calling('{"a":1}'), calling('{"a":"1"}')),
    ("the image", user([{"type": "image_url", "image_url": {"url": "a"}}]), user([{"type": "image_url", "image_url": {"url": "b"}}])),
    ("unknown fields", {**user("hi"), "x": 1}, {**user("hi"), "x": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "other"), SAME, ids=[row[0] for row in SAME])
def test_spelling_makes_no_difference(what: str, one: bytes | str, other: bytes | str) -> None:
    assert chain([orjson.loads(one)], SCOPE) == chain([orjson.loads(other)], SCOPE)


@pytest.mark.parametrize(("what", "one", "other"), DIFFERENT, ids=[row[0] for row in DIFFERENT])
def test_meaning_makes_a_difference(what: str, one: Message, other: Message) -> None:
    assert chain([one], SCOPE) != chain([other], SCOPE)


def test_five_identical_messages_have_five_positions() -> None:
    assert len(set(chain([user("ok")] * 5, SCOPE))) == 5


def test_an_edit_changes_every_hash_from_there_on_and_none_before() -> None:
    messages = [user(f"message {number}") for number in range(6)]
    edited = [*messages[:3], user("edited"), *messages[4:]]
    before, after = chain(messages, SCOPE), chain(edited, SCOPE)
    assert before[:3] == after[:3]
    assert not set(before[3:]) & set(after[3:])


def test_a_changed_first_message_leaves_nothing_in_common() -> None:
    messages = [user("a"), user("b"), user("c")]
    assert not set(chain(messages, SCOPE)) & set(chain([user("x"), *messages[1:]], SCOPE))


def test_two_futures_share_their_common_past() -> None:
    past = [user("a"), user("b")]
    one, other = chain([*past, user("left")], SCOPE), chain([*past, user("right")], SCOPE)
    assert one[:2] == other[:2]
    assert one[2] != other[2]


def test_a_history_that_its_client_compacted_is_a_new_conversation() -> None:
    messages = [user(f"message {number}") for number in range(8)]
    compacted = [user("summary of what was said"), *messages[6:]]
    assert not set(chain(messages, SCOPE)) & set(chain(compacted, SCOPE))


def test_where_one_message_ends_cannot_be_shifted_into_the_next() -> None:
    assert chain([user("ab"), user("c")], SCOPE)[-1] != chain([user("a"), user("bc")], SCOPE)[-1]


def test_two_callers_with_the_same_words_have_nothing_in_common() -> None:
    messages = [user("a"), user("b")]
    assert not set(chain(messages, "alice.openai")) & set(chain(messages, "bob.openai"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=50)
@given(
    messages=st.lists(
        st.fixed_dictionaries({"role": st.text(max_size=5)}, optional={"content": JSON, "tool_calls": JSON}), max_size=6
    )
)
def test_any_message_has_an_identity_and_a_longer_history_extends_it(messages: list[Message]) -> None:
    whole = chain(messages, SCOPE)
    assert len(whole) == len(messages)
    assert chain(messages[:3], SCOPE) == whole[:3]


def test_json_nested_deeper_than_it_can_be_written_has_an_identity() -> None:
    def nested(depth: int, leaf: str) -> Message:
        return user(orjson.loads("[" * depth + leaf + "]" * depth))

    assert chain([nested(900, "1")], SCOPE) == chain([nested(900, "1")], SCOPE)
    assert chain([nested(900, "1")], SCOPE) != chain([nested(900, "2")], SCOPE)
    assert chain([nested(900, "1")], SCOPE) != chain([nested(901, "1")], SCOPE)


def test_a_key_hash_can_be_computed_with_b2sum() -> None:
    assert key_hash(["Bearer sk-123"]) == hashlib.blake2b(b"sk-123", digest_size=16).hexdigest()
    assert key_hash(["bearer  sk-123 "]) == key_hash(["sk-123"])


def test_scopes_differ_by_key_and_by_upstream_and_begin_with_the_key_hash() -> None:
    def scope(credentials: list[str], upstream: str) -> str:
        return scope_of(key_hash(credentials), upstream)

    one = scope(["Bearer sk-1"], "openai")
    assert one.startswith(key_hash(["sk-1"]) + ".")
    assert len({one, scope(["Bearer sk-2"], "openai"), scope(["Bearer sk-1"], "local"), scope([], "openai")}) == 4


@pytest.mark.parametrize("credential", ["Bearer", "Bearer ", "", " ", "Basic dXNlcjpwYXNz", "ключ", "\udcff"])
def test_any_header_value_has_a_key_hash(credential: str) -> None:
    assert len(key_hash([credential])) == 32
