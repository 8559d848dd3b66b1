"""Messages in binary frames: read in every encoding that servers read, and told from audio."""

import array
import math

import pytest

from gateway.wire.binary import message_in

TEXT = '{"type":"response.create","model":"héavy"}'

MESSAGES = [
    TEXT.encode(),
    b" \r\n\t" * 40 + TEXT.encode(),
    b"\xef\xbb\xbf" + TEXT.encode(),
    *(TEXT.encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")),
    b'{"type":"\xff"}',
    b'{"type" : NaN}',
    b'{"' + b"n" * 200_000 + b'":1}',
    b'{"type":"response.create","mod',
]

OTHERS = [
    b"",
    b" ",
    b"{",
    b"{}",
    b"[1]",
    b"{\0\x01\0\x02\0\x03\0",
    b"{\xff\xfe\x80",
    b'{"\xff\xfe\x80',
    b'{"a"}',
    b'{"a":\xff',
    b"\0" * 4000,
    b"\x80\x7b" * 2000,
    array.array("h", [int(200 * math.sin(step / 9)) for step in range(4800)]).tobytes(),
    b"OggS\0\x02" + bytes(range(256)),
]


@pytest.mark.parametrize("data", MESSAGES)
def test_the_beginning_of_an_object_is_a_message(data):
    assert message_in(data).lstrip().startswith("{")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_message_is_read_in_every_encoding(encoding):
    assert message_in(TEXT.encode(encoding)) == TEXT


@pytest.mark.parametrize("data", OTHERS)
def test_audio_is_no_message(data):
    assert message_in(data) is None


def test_audio_that_begins_with_a_brace_anywhere_is_no_message():
    audio = array.array("h", [int(200 * math.sin(step / 9)) for step in range(4800)]).tobytes()
    starts = [place for place in range(len(audio)) if audio[place : place + 1] == b"{"]
    assert starts
    assert not [place for place in starts if message_in(audio[place:]) is not None]
