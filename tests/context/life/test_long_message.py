"""The identity of a message of megabytes is the same, and written in pieces."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.life.identity import chain
from gateway.wire import message, piecewise
from gateway.wire.message import canonical, canonical_pieces

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), JSON, st.integers(1, 9))
def test_pieces_are_the_canonical_form(members: dict[str, object], content: object, longest: int) -> None:
    said = {**members, "role": "user", "content": content}
    whole = canonical(said)
    before = piecewise.PIECE_BYTES
    piecewise.PIECE_BYTES = longest  # type: ignore[misc]
    try:
        assert b"".join(canonical_pieces(said)) == whole
    finally:
        piecewise.PIECE_BYTES = before  # type: ignore[misc]


def test_no_piece_of_a_long_message_is_longer_than_six_bytes_a_letter_of_what_is_parsed_at_once() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3_000_000}}
    said = {"role": "user", "content": [{"type": "text", "text": "\x01é😀" * 400_000}, image]}
    pieces = list(canonical_pieces(said))
    assert max(map(len, pieces)) <= 6 * piecewise.PIECE_BYTES
    assert b"".join(pieces) == canonical(said)


def test_a_long_message_is_hashed_without_being_written_whole(monkeypatch) -> None:
    written: list[int] = []
    dumps = orjson.dumps

    def watched(value: object, **options: object) -> bytes:
        found = dumps(value, **options)  # type: ignore[arg-type]
        written.append(len(found))
        return found

    said = {"role": "user", "content": [{"type": "text", "text": "word " * 1_000_000}]}
    expected = chain([{**said, "content": "word " * 1_000_000}], "scope")
    monkeypatch.setattr(message.orjson, "dumps", watched)
    assert chain([said], "scope") == expected, "a list of plain texts is the same as a text"
    assert max(written) <= piecewise.PIECE_BYTES + 2
