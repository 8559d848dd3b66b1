"""Long JSON has the same values, and the same errors, whether it is parsed at once or in pieces."""

import json  # noqa: TID251  # writes escapes, which orjson does not
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire import piecewise

SHORT = 16
"""Bytes of a piece in these tests."""


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "PIECE_BYTES", SHORT)


TEXTS = st.text(st.sampled_from('a"\\/\n\t\x7f é漢😀'), max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_every_value_is_read_as_it_is_at_once(value: Any, is_escaped: bool) -> None:
    raw = json.dumps(value).encode() if is_escaped else orjson.dumps(value)
    assert orjson.dumps(piecewise.loads(raw)) == orjson.dumps(orjson.loads(raw))


@given(
    st.binary(max_size=80)
    | st.lists(st.sampled_from([b'"', b"\\", b"\\ud83d", b"a" * 9, b"\xc3", b",", b"[", b"]", b"{", b":"])).map(
        b"".join
    )
)
def test_what_is_no_json_is_no_json_in_pieces(raw: bytes) -> None:
    for text in (raw, b'"' + raw + b'"', b'["' + raw + b'"]', b'{"a":' + raw + b"}"):
        try:
            expected = orjson.loads(text)
        except orjson.JSONDecodeError:
            with pytest.raises(orjson.JSONDecodeError):
                piecewise.loads(text)
        else:
            assert piecewise.loads(text) == expected


@pytest.mark.parametrize("shift", range(40))
def test_no_escape_and_no_character_is_split(shift: int) -> None:
    raw = b'"' + b"x" * shift + b'\\ud83d\\ude00\\\\\\"\\u6f22\xe6\xbc\xa2\xf0\x9f\x98\x80\\n' * 5 + b'"'
    assert piecewise.loads(raw) == orjson.loads(raw)


def test_of_two_members_with_one_name_the_last_counts() -> None:
    raw = b'{"a":"first, and long","b":1,"a":"second"}'
    assert list(piecewise.loads(raw).items()) == list(orjson.loads(raw).items())
