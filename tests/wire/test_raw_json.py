"""A body is emptied of messages that are known without reading them, or left alone."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.raw_json import members, rows, without_rows

A, B = b'{"role":"user","content":"one, ] two"}', b'{ "role" : "assistant","content":"\\"messages\\":[" }'

EMPTIED = [
    (b'{"model":"m","messages":[%b,%b],"n":1.50}', b'{"model":"m","messages":[],"n":1.50}'),
    (b'{ "messages" : [ %b ,\n\t%b ] , "n":1 }', b'{ "messages" : [] , "n":1 }'),
    (b'{"s":"\\"messages\\":[","messages":[%b,%b]}', b'{"s":"\\"messages\\":[","messages":[]}'),
]


@pytest.mark.parametrize(("raw", "short"), EMPTIED)
def test_known_messages_are_taken_out_and_every_other_byte_stays(raw: bytes, short: bytes) -> None:
    assert without_rows(raw % (A, B), "messages", [A, B]) == short


UNCERTAIN = [
    b'{"messages":[%b],"more":[%b]}',  # fewer than are known
    b'{"messages":[%b,%b,{"role":"user"}]}',  # more than are known
    b'{"messages":[%b,%b],"messages":[{"role":"user"}]}',  # of two members with one name the last counts
    b'{"metadata":{"messages":[%b,%b]},"messages":[{"role":"user"}]}',  # the member of an inner object
    b'{"items":[%b,%b]}',
]


@pytest.mark.parametrize("raw", UNCERTAIN)
def test_a_body_stays_whole_where_the_messages_are_not_certainly_its_own(raw: bytes) -> None:
    assert without_rows(raw % (A, B), "messages", [A, B]) == raw % (A, B)


def test_two_equal_lists_are_two_lists() -> None:
    raw = b'{"messages":[%b],"messages":[%b]}' % (A, A)

    assert without_rows(raw, "messages", [A]) == raw


messages = st.lists(
    st.dictionaries(st.sampled_from(["role", "content", "messages"]), st.text(), max_size=3), max_size=4
)


@given(messages, st.dictionaries(st.sampled_from(["a", "messages ", "z"]), messages | st.text()), st.booleans())
def test_an_emptied_body_says_the_same_without_its_messages(
    told: list[dict[str, str]], beside: dict[str, object], indented: bool
) -> None:
    raw = orjson.dumps({**beside, "messages": told, "last": 1}, option=orjson.OPT_INDENT_2 if indented else None)
    known = rows(members(raw)["messages"]) or []  # type: ignore[index]

    assert orjson.loads(without_rows(raw, "messages", known)) == {**beside, "messages": [], "last": 1}
