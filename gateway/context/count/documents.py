"""Read the number of pages and of text characters from a PDF's bytes, without rendering it."""

import re
import zlib
from typing import Final

import msgspec

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGES: Final = re.compile(rb"/Count\s+(\d{1,5})")
_STREAM: Final = re.compile(rb"stream\r?\n")
_TEXT_OPERAND: Final = re.compile(rb"\(((?:[^\\()]|\\.){1,2000})\)|<([0-9A-Fa-f]{2,4000})>")

LARGEST_DOCUMENT: Final = 2_000_000
"""Bytes of a document that are read, and bytes to which its streams may unpack; the rest is estimated from the size."""


class Contents(msgspec.Struct, frozen=True):
    """Pages and characters of a document; both are too low when fonts or object streams hide content."""

    pages: int
    characters: int


def read(document: bytes) -> Contents:
    """Count a PDF's pages and the characters in its content streams. Other documents have none."""
    if not document.startswith(b"%PDF"):
        return Contents(0, 0)
    head = document[:LARGEST_DOCUMENT]
    pages = len(_PAGE.findall(head))
    characters, left = 0, LARGEST_DOCUMENT
    for found in _STREAM.finditer(head):
        content = _unpack(head, found.end(), left)
        left -= len(content)
        if b"BT" in content:
            characters += sum(len(text) + len(code) // 4 for text, code in _TEXT_OPERAND.findall(content))
        pages += len(_PAGE.findall(content)) if b"/Page" in content else 0
        if left <= 0:
            break
    pages = pages or max((int(count) for count in _PAGES.findall(head)), default=1)
    return Contents(pages, characters)


def _unpack(document: bytes, start: int, most: int) -> bytes:
    """Return a stream's content, inflated if it is deflated; empty when it cannot be inflated."""
    end = document.find(b"endstream", start)
    packed = document[start : end if end >= 0 else len(document)]
    try:
        return zlib.decompressobj().decompress(packed, most)
    except zlib.error:
        return packed[:most] if packed[:2].isascii() else b""
