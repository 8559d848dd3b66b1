"""Streams of JSON values, one in a line."""

from hypothesis import given
from hypothesis import strategies as st

from providers.ndjson import Lines


def read(raw: bytes, size: int, limit: int = 1000) -> list[bytes]:
    reader = Lines(limit)
    found = [event for start in range(0, len(raw), size) for event in reader.feed(raw[start : start + size])]
    return [event.data for event in [*found, *reader.close()]]


def test_each_line_that_is_not_blank_is_an_event() -> None:
    assert read(b'{"a":1}\n\r\n{"b":2}\r\n  \n{"c":3}', 4) == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert read(b"", 1) == []


def test_a_line_over_the_limit_is_dropped() -> None:
    assert read(b"x" * 20 + b"\nshort\n" + b"y" * 20, 3, limit=10) == [b"short"]


@given(raw=st.binary(max_size=60), size=st.integers(1, 9))
def test_it_does_not_matter_how_the_bytes_are_split(raw: bytes, size: int) -> None:
    assert read(raw, size) == read(raw, 100)
