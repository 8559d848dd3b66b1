"""Content encodings that the gateway can read: gzip and deflate, which Python has, and zstd, in which Codex sends its requests."""

import sys
import zlib
from functools import lru_cache
from typing import Final, Protocol

from gateway.serve.incoming.headers import Headers

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ASKED_FOR: Final = frozenset({"gzip", "deflate", "zstd"})
READ: Final = ASKED_FOR | {"x-gzip"}
CODINGS: Final = READ | {"aes128gcm", "br", "compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress"}
"""All encodings that a server may know (https://www.iana.org/assignments/http-parameters). Some clients write others by mistake, such as ``utf-8``."""
KEPT: Final = 64
"""Values of Accept-Encoding whose readable part is remembered, a number: each client library has one of its own."""
LARGEST_ZSTD_WINDOW: Final = 23
"""Memory that a zstd body may ask its decoder for, as a power of two of bytes: 8 MiB, the most that HTTP allows (RFC 9659)."""


@lru_cache(maxsize=KEPT)
def readable_encodings(accept_encoding: str) -> str:
    """Reduce a client's Accept-Encoding to encodings that the gateway can read: gzip, deflate, zstd, or none.

    A refusal must be readable for a retry, and brotli would need another dependency.
    """
    offered = (token.strip() for token in accept_encoding.lower().split(","))
    kept = [token for token in offered if token.split(";")[0].strip() in ASKED_FOR]
    return ", ".join(kept) or "identity"


class CannotDecodeError(ValueError):
    """A body is not encoded as its headers say."""


class Decoder(Protocol):
    """Decodes one body, piece by piece."""

    @property
    def waiting(self) -> int:
        """Bytes that were given and are not decoded yet."""

    @property
    def is_whole(self) -> bool:
        """Whether the end of the encoded body was reached, and nothing was given beyond it."""

    def decode(self, data: bytes, largest: int) -> bytes:
        """Decode what waits and ``data``, up to ``largest`` bytes of text. The rest waits. Raises CannotDecodeError."""


def decoder_for(headers: Headers) -> Decoder | None:
    """Return a decoder for a body with these headers; None when it is not encoded, or in an unknown way."""
    if not can_decode(headers):
        return None
    return _Zstd() if _codings(headers) == ["zstd"] else _Inflate()


def can_decode(headers: Headers) -> bool:
    """Return whether a body is encoded in a way that the gateway can read."""
    found = _codings(headers)
    return len(found) == 1 and found[0] in READ


def is_unreadable(headers: Headers) -> bool:
    """Return whether a body is encoded in a way that only a server may read, so that its bytes do not say what the server reads."""
    return bool(_codings(headers)) and not can_decode(headers)


class _Inflate:
    """gzip or deflate, told apart by the body's first bytes."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=47)  # 47: gzip or zlib, detected by the header

    @property
    def waiting(self) -> int:
        return len(self._zlib.unconsumed_tail)

    @property
    def is_whole(self) -> bool:
        return self._zlib.eof and not self._zlib.unused_data

    def decode(self, data: bytes, largest: int) -> bytes:
        waiting = self._zlib.unconsumed_tail
        try:
            return self._zlib.decompress(waiting + data if waiting else data, largest)
        except zlib.error as error:
            raise CannotDecodeError from error


class _Zstd:
    """zstd: one frame, as HTTP clients send it. What stands behind it is not read, so that the body counts as not whole."""

    def __init__(self) -> None:
        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: LARGEST_ZSTD_WINDOW}
        self._zstd = zstd.ZstdDecompressor(options=options)
        self._beyond = False
        self.waiting = 0

    @property
    def is_whole(self) -> bool:
        return self._zstd.eof and not self._beyond and not self._zstd.unused_data

    def decode(self, data: bytes, largest: int) -> bytes:
        if self._zstd.eof:
            self._beyond |= bool(data)
            return b""
        try:
            text = self._zstd.decompress(data, largest)
        except zstd.ZstdError as error:
            raise CannotDecodeError from error
        self.waiting = 0 if self._zstd.needs_input or self._zstd.eof else self.waiting + len(data)
        return text


def _codings(headers: Headers) -> list[str]:
    """Return the encodings of a body in their order. A header may stand twice, and some list ``identity``, which is none."""
    values = headers.getall("Content-Encoding", ())
    return [name for value in values for each in value.split(",") if (name := each.strip().lower()) in CODINGS]
