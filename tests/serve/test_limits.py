"""Limits of a body: a long one is believed to have few values only where it has."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.serve.incoming import limits

VALUES = st.recursive(
    st.none() | st.just(0) | st.sampled_from(["", "a,[{", "x" * 40]),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text("kl", max_size=2), inner, max_size=4),
    max_leaves=80,
)


def count(value: Any) -> int:
    """How many JSON values there are, that of the whole included."""
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return 1 + sum(map(count, inner))


@given(VALUES, st.integers(1, 12))
def test_a_body_with_more_values_than_the_limit_is_always_looked_at(value: Any, looked_at: int) -> None:
    text, values = orjson.dumps(value), count(value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "COUNTED_AT_ONCE", looked_at)
        assert not any(limits.surely_has_fewer_values(text, most) for most in range(1, values))


def test_texts_are_counted_by_their_signs_only_as_far_as_the_limit_is_in_doubt() -> None:
    prose = orjson.dumps("words, and words " * 40_000)
    assert limits.surely_has_fewer_values(prose, len(prose) // 3)
    assert not limits.surely_has_fewer_values(b"[" + b"0," * 200_000 + b"0]", 200_000)
