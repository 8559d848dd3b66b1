"""Splicing large bodies, and bodies that strict parsers refuse: the same bytes as small ones, no step longer than a piece."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire import lenient_json, piecewise, raw_json, splice, surrogates

SPACES = st.sampled_from([b"", b" ", b"\n\t ", b"\r\n"])
VALUES = st.sampled_from(
    [b"1.50", b'"a\\"b"', b"[1, {}]", b'{"a":[]}', b"null", "\"é😀\"".encode(), b'"\\u00e9"', b'""', b"-0.0e1", b"true"]
)  # fmt: skip
ODD = st.sampled_from([b"NaN", b"-Infinity", b"[Infinity,1]", b'"\\ud83d"', b'"NaN \\" NaN"', b"1"])
NAMES = st.sampled_from([b'"a"', b'"b"', b'"\\u0061"', b'"a\\"b"', '"é"'.encode(), b'""'])


def body_of(members: list[tuple[bytes, bytes]], space: bytes) -> bytes:
    return (
        space
        + b"{"
        + space
        + (space + b"," + space).join(n + space + b":" + space + v for n, v in members)
        + space
        + b"}"
        + space
    )


@given(st.lists(st.tuples(NAMES, VALUES | ODD), max_size=5), SPACES)
def test_members_are_found_where_a_lenient_parser_finds_them(members: list[tuple[bytes, bytes]], space: bytes) -> None:
    raw = body_of(members, space)
    text = raw.decode()
    spans = splice.spans_of(raw)
    found = {member.name: text[member.start : member.end].encode() for member in lenient_json.members_of(text)}
    assert {name: raw[a:b] for name, (a, b) in spans.items()} == found


@pytest.mark.parametrize(
    "more", [b"", b',"odd":NaN', b',"half":"\\ud83d"'], ids=["strict", "no number", "half an emoji"]
)
def test_a_large_body_is_spliced_without_reading_its_values(monkeypatch: pytest.MonkeyPatch, more: bytes) -> None:
    """Python's scanner read every value at once: some 0.3 s for 30 MB, in which nothing else ran."""

    def refused(*_: Any) -> None:
        raise AssertionError("a value was read")

    monkeypatch.setattr(lenient_json, "members_of", refused)
    text = 'é\\u00e9 \\"NaN\\" ' * 200_000
    raw = b'{"note":"\\u0065", "messages" : [{"role":"user","content":"%b"}] ,"model": "a"%b}' % (text.encode(), more)
    assert splice.splice(raw, {"model": "b", "new": 1}) == raw.replace(b'"a"', b'"b"')[:-1] + b',"new":1}'


def test_no_copy_of_a_large_body_is_longer_than_a_piece() -> None:
    raw = bytes(3 * raw_json.PIECE_BYTES + 5)
    pieces = raw_json.copies(raw, 7, len(raw))
    assert b"".join(pieces) == raw[7:]
    assert max(map(len, pieces)) <= raw_json.PIECE_BYTES


class Watched(bytes):
    """Bytes that refuse to be searched in longer pieces."""

    def find(self, text: bytes, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        assert end is not None and end - start <= raw_json.PIECE_BYTES + len(text)
        return super().find(text, start, end)

    def __contains__(self, _: object) -> bool:
        raise AssertionError("searched at once")

    count = __contains__  # type: ignore[assignment]


@pytest.mark.parametrize("at", [0, raw_json.PIECE_BYTES - 3, raw_json.PIECE_BYTES, 2 * raw_json.PIECE_BYTES - 1])
def test_a_word_is_found_wherever_it_stands_by_searching_pieces(at: int) -> None:
    raw = Watched(b"x" * at + b'"model"' + b"x" * (3 * raw_json.PIECE_BYTES) + b'"model"')
    assert raw_json.occurs(b'"model"', raw)
    assert raw_json.occurs(b'"model"', raw, 2)
    assert not raw_json.occurs(b'"model"', raw, 3)


@given(st.text(max_size=300), st.integers(16, 60))
def test_numbers_that_are_none_are_replaced_outside_of_texts_alone_however_small_the_pieces(
    text: str, piece: int
) -> None:
    value = {"a": text + "NaN", "b": [f"\\{text}\\\\", "Infinity"]}
    raw = orjson.dumps(value)[:-1] + b',"c":[NaN,-Infinity, Infinity ],"NaN":NaN}'
    before = surrogates.PIECE_BYTES
    surrogates.PIECE_BYTES = piece  # type: ignore[misc]
    try:
        found = surrogates.repaired(raw)
    finally:
        surrogates.PIECE_BYTES = before  # type: ignore[misc]
    assert orjson.loads(found) == {**value, "c": [None, None, None], "NaN": None}


@pytest.mark.parametrize(
    ("text", "fits"),
    [("a" * 20_000_000, True), ("é" * 20_000_000, True), ("a" * 11_000_000 + "😀", False), ("中" * 9_000_000, True), ("a" * 22_000_000 + "中", False)],
    ids=["ascii", "latin", "an emoji", "chinese", "one chinese letter"],
)  # fmt: skip
def test_a_text_that_would_take_forty_megabytes_is_not_read(text: str, fits: bool) -> None:
    raw = orjson.dumps(text)
    if fits:
        assert piecewise.loads(raw) == text
    else:
        with pytest.raises(orjson.JSONDecodeError):
            piecewise.loads(raw)


@given(st.text(max_size=40), st.integers(1, 45))
def test_the_beginning_of_a_text_is_read_from_its_first_bytes(text: str, characters: int) -> None:
    for raw in (
        orjson.dumps(text),
        b'"%b"' % text.encode("unicode-escape").replace(b"\\x", b"\\u00").replace(b"\\U0001", b"\\u0001"),
    ):
        try:
            whole = orjson.loads(raw)
        except orjson.JSONDecodeError:
            continue
        short = raw[: 1 + characters * piecewise.LONGEST_ESCAPE]
        assert piecewise.beginning(short, characters, whole=len(short) == len(raw)) == whole[:characters]
