"""Any split of the bytes gives the same events; a broken stream neither crashes nor fills the memory."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.sse import Event, Events


def read(*chunks: bytes, limit: int = 1000) -> list[Event]:
    parser = Events(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: {}\n\n", [Event("", b"{}")]),
        (b"data:{}\n\n", [Event("", b"{}")]),
        (b"data:  x\n\n", [Event("", b" x")]),
        (b"event: error\ndata: {}\n\n", [Event("error", b"{}")]),
        (b"data: a\ndata: b\n\n", [Event("", b"a\nb")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [Event("", b"a"), Event("", b"b"), Event("", b"c")]),
        (b": keep-alive\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n", [Event("", b"a")]),
        (b"id: 7\nretry: 10\ndata: a\n\n", [Event("", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("", b"a")]),
        (b"data\n\n", [Event("", b"")]),
        (b"event: ping\n\ndata: a\n\n", [Event("", b"a")]),
        (b"data: unfinished", [Event("", b"unfinished")]),
        (b"data: [DONE]\n\n", [Event("", b"[DONE]")]),
        (b'error: {"code":400}\n\n', [Event("error", b'{"code":400}')]),
        (b"event: \xff\ndata: \xff\n\n", [Event("�", b"\xff")]),
        (b"", []),
        (b"\n\n\r\n", []),
    ],
)
def test_a_stream_says_what_it_says(stream: bytes, events: list[Event]) -> None:
    assert read(stream) == events


LINES = st.sampled_from(
    [b"data: one", b"data:two", b"data", b": comment", b"event: error", b"", b"", b"nonsense", b"data: \xe4\xbd\xa0"]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=30).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


@given(STREAMS | st.binary(max_size=200), st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    assert read(*chunks) == read(stream)
    assert read(*(stream[place : place + 1] for place in range(len(stream)))) == read(stream)


@pytest.mark.parametrize("step", [1, 7, 5000])
def test_an_over_long_event_is_dropped_and_reading_goes_on(step: int) -> None:
    stream = b"data: a\n\ndata: " + b"x" * 3000 + b"\ndata: y\n\ndata: b\n\n"
    chunks = [stream[place : place + step] for place in range(0, len(stream), step)]
    assert read(*chunks) == [Event("", b"a"), Event("", b"b")]


def test_an_event_of_many_short_lines_is_bounded_too() -> None:
    assert read(b"data: x\n" * 500 + b"\ndata: b\n\n") == [Event("", b"b")]
