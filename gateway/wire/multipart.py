"""Multipart forms: read and write one short field, without reading the files beside it.

Servers differ in how they read odd forms. So a form that some server may read otherwise counts as unreadable.
"""

import re
from collections.abc import Collection
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Final, NamedTuple

MULTIPART: Final = "multipart/form-data"
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{1,70}")
"""Characters that RFC 2046 section 5.1.1 allows in a boundary."""
_FOLD: Final = re.compile(rb"\r\n(?=[ \t])")
"""A line break inside a header."""
_BARE_BREAK: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")
"""Half of a line break: some parsers end a line there."""
_GAP: Final = b"\r\n\r\n"
"""What stands between the head and the value of a part."""
_LINE_END: Final = re.compile(rb"[ \t]*\r\n")
"""What follows a boundary in its line (RFC 2046 section 5.1.1). To most parsers a line with more is no boundary."""
_END: Final = re.compile(rb"--\s*+\Z")
"""What follows the last boundary. Some parsers also read the parts behind it."""
MOST_PARTS: Final = 1000
"""Parts of a form. Go's parser reads no more: https://pkg.go.dev/mime/multipart#hdr-Limits."""
LONGEST_HEAD: Final = 2**12
"""Bytes of the head of a part. Chosen: a long name of a file takes 1,000. Python takes time for the square of its parameters."""


class _Part(NamedTuple):
    """What stands between two boundaries."""

    head: bytes
    gap: bytes
    """Empty where the part has no value."""
    value: bytes
    field: str
    """The name of its field; "" where there is none."""


def kind_of(content_type: str) -> str:
    """Return the type in a header, in small letters and without parameters."""
    return _declared("content-type", content_type).get_content_type()


def values_of(body: bytes, content_type: str, name: str) -> list[str] | None:
    """Return every value of a field, without the space around it; None for a form that cannot be read."""
    parts = _parts(body, _mark(content_type), (name,))
    if parts is None:
        return None
    return [part.value.decode("utf-8", "replace").strip() for part in parts if part.gap and part.field == name]


def may_have(body: bytes, content_type: str, names: Collection[str]) -> bool:
    """Return whether some parser may find one of these fields in a form; True for a form that cannot be read."""
    parts = _parts(body, _mark(content_type), names)
    return parts is None or any(part.field in names for part in parts)


def with_value(body: bytes, content_type: str, name: str, value: str) -> bytes:
    """Return a form in which a field has this value; a missing field is added as the first. Everything else keeps its bytes.

    Raises ValueError for a form that cannot be read, or a value that is more than one line.
    """
    mark = _mark(content_type)
    parts = _parts(body, mark, (name,))
    if parts is None or not value.isprintable():
        raise ValueError("the field cannot be written")
    head = b'\r\nContent-Disposition: form-data; name="%b"' % name.encode()
    written = _Part(head, _GAP, value.encode(), name)
    if not any(part.gap and part.field == name for part in parts):
        parts.insert(1, written)
    pieces = [b"".join(written[:3] if part.gap and part.field == name else part[:3]) for part in parts]
    return (b"\r\n" + mark).join(pieces).removeprefix(b"\r\n")


def _mark(content_type: str) -> bytes:
    """Return what begins the line of a boundary; empty if the header does not name one boundary."""
    boundaries = _parameters(_declared("content-type", content_type), "content-type", "boundary")
    if len(boundaries) != 1 or not _BOUNDARY.fullmatch(boundaries[0]):
        return b""
    return b"--" + boundaries[0].encode()


def _parts(body: bytes, mark: bytes, wanted: Collection[str]) -> list[_Part] | None:
    """Return the parts of a form, the one before the first boundary included; None when they cannot be told."""
    if not mark:
        return None
    first, *pieces = (b"\r\n" + body).split(b"\r\n" + mark, MOST_PARTS + 1)
    if not pieces or len(pieces) > MOST_PARTS:
        return None
    if any(b"\n" + mark in piece or b"\r" + mark in piece for piece in (first, *pieces)):
        return None  # some parsers see a boundary there, too
    end = [pieces.pop()] if _END.match(pieces[-1]) else []
    found = [_Part(first, b"", b"", "")]
    for piece in pieces:
        head, gap, value = piece.partition(_GAP)
        field = _field(head, wanted) if _LINE_END.match(piece) else None
        if field is None:
            return None
        found.append(_Part(head, gap, value, field))
    return [*found, *(_Part(piece, b"", b"", "") for piece in end)]


def _field(head: bytes, wanted: Collection[str]) -> str | None:
    """Return the name of the field in a part of a form; None when some parser may read a wanted one there, and others do not."""
    if len(head) > LONGEST_HEAD:
        return None
    head = _FOLD.sub(b"", head)
    if _BARE_BREAK.search(head):
        return None
    declared = Message()
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name.strip().lower() == "content-disposition":
            declared["content-disposition"] = value.strip()
    names = _parameters(declared, "content-disposition", "name")
    if len(names) > 1 or len(declared) > 1:
        return None
    name = names[0] if names else ""
    return None if name not in wanted and name.replace("\\", "").strip().lower() in wanted else name


def _declared(header: str, value: str) -> Message:
    declared = Message()
    declared[header] = value
    return declared


def _parameters(declared: Message, header: str, name: str) -> list[str]:
    """Return every value of one parameter of a header."""
    return [collapse_rfc2231_value(value) for key, value in declared.get_params([], header) if key.lower() == name]
