"""Multipart forms: read and write one short field, without reading the files beside it.

Servers differ in how they read odd forms. So a form that some server may read otherwise counts as unreadable.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

MULTIPART: Final = "multipart/form-data"
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{1,70}")
"""Characters that RFC 2046 section 5.1.1 allows in a boundary."""
_PARAMETER: Final = re.compile(
    r"""[ \t]*+;[ \t]*+([^\s;:="\\]++)=(?:"((?:[^"\\]|\\.)*+)"|"([^";=]*+)"(?=[ \t]*+\Z)|([^\s;"\\]++))(?=[ \t]*+(?:;|\Z))"""
)
"""A parameter of a header (RFC 9110 section 5.6.6); values without quotes may have more characters, as clients write them.

The last value may end in a backslash: ``requests`` and curl send the name of such a file without escapes. To some servers the backslash escapes
the quote, so that the value has no end. It may have no ``;`` and no ``=``, so none of them finds another parameter in it.
"""
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]++):[ \t]*+(.*+)")
_AS_IT_IS: Final = ("7bit", "8bit", "binary")
"""Transfer encodings that leave a value as it is."""
_PLAIN_CHARSETS: Final = ("utf-8", "us-ascii", "iso-8859-1")
"""Charsets in which the name of a model has the bytes that it has in ASCII."""
_FOLD: Final = re.compile(rb"\r\n(?=[ \t])")
"""A line break inside a header."""
_GAP: Final = b"\r\n\r\n"
"""What stands between the head and the value of a part."""
_LINE_END: Final = re.compile(rb"[ \t]*\r\n")
"""What follows a boundary in its line (RFC 2046 section 5.1.1). To most parsers a line with more is no boundary."""
_END: Final = re.compile(rb"--\s*+\Z")
"""What follows the last boundary. Some parsers also read the parts behind it."""
MOST_PARTS: Final = 1000
"""Parts of a form. Go's parser reads no more: https://pkg.go.dev/mime/multipart#hdr-Limits."""
LONGEST_HEAD: Final = 2**12
"""Bytes of the head of a part. Chosen: a long name of a file takes 1,000."""


class _Part(NamedTuple):
    """What stands between two boundaries: a part, or what is before the first boundary or behind the last."""

    head: bytes
    gap: bytes
    """Empty for what is no part."""
    value: bytes
    field: str
    """The name of its field; "" for what is no part."""


def kind_of(content_type: str) -> str:
    """Return the type in a header, in small letters and without parameters."""
    return content_type.partition(";")[0].strip().lower()


def values_of(body: bytes, content_type: str, name: str) -> list[str] | None:
    """Return every value of a field, without the space around it; None for a form that cannot be read."""
    parts = _parts(body, _mark(content_type), (name,))
    if parts is None:
        return None
    return [part.value.decode("utf-8", "replace").strip() for part in parts if part.field == name]


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
    if not any(part.field == name for part in parts):
        parts.insert(1, written)
    pieces = [b"".join(written[:3] if part.field == name else part[:3]) for part in parts]
    return (b"\r\n" + mark).join(pieces).removeprefix(b"\r\n")


def _mark(content_type: str) -> bytes:
    """Return what begins the line of a boundary; empty if the header does not name one boundary."""
    boundary = (_parameters(content_type) or {}).get("boundary", "")
    return b"--" + boundary.encode() if _BOUNDARY.fullmatch(boundary) else b""


def _parts(body: bytes, mark: bytes, wanted: Collection[str]) -> list[_Part] | None:
    """Return the parts of a form, what stands before the first boundary included; None when they cannot be told."""
    if not mark:
        return None
    first, *pieces = (b"\r\n" + body).split(b"\r\n" + mark, MOST_PARTS + 1)
    # Some parsers see a boundary anywhere in a line, and a part before the first one.
    if first.strip(b"\r\n") or not pieces or len(pieces) > MOST_PARTS or body.count(mark) != len(pieces):
        return None
    end = [pieces.pop()] if _END.match(pieces[-1]) else []
    found = [_Part(first, b"", b"", "")]
    for piece in pieces:
        head, gap, value = piece.partition(_GAP)
        field = _field(head, wanted) if gap and _LINE_END.match(piece) else None
        if field is None:
            return None
        found.append(_Part(head, gap, value, field))
    return [*found, *(_Part(piece, b"", b"", "") for piece in end)]


def _field(head: bytes, wanted: Collection[str]) -> str | None:
    """Return the name of the field in a part of a form; None when some parser may read a wanted one there, and others do not."""
    headers = _headers(head)
    if headers is None:
        return None
    disposition = headers.get("content-disposition", "")
    parameters = _parameters(disposition)
    if parameters is None or "name" not in parameters:
        return None
    name = parameters["name"]
    if name not in wanted:
        return None if name.replace("\\", "").strip().lower() in wanted else name
    is_file = any(key.startswith("filename") for key in parameters)
    return name if kind_of(disposition) == "form-data" and not is_file and _is_text(headers) else None


def _headers(head: bytes) -> dict[str, str] | None:
    """Return the headers of a part by their names in small letters; None where parsers differ, as in two of one name."""
    text = _FOLD.sub(b"", head).decode("utf-8", "replace")
    lines = text.split("\r\n")
    if len(head) > LONGEST_HEAD or lines != text.splitlines():  # some parsers end a line elsewhere, too
        return None
    found: dict[str, str] = {}
    for line in lines[1:]:  # the first is the rest of the boundary's line
        header = _HEADER.fullmatch(line)
        if header is None or header[1].lower() in found:
            return None
        found[header[1].lower()] = header[2]
    return found


def _is_text(headers: dict[str, str]) -> bool:
    """Return whether every parser reads a value as the text that it seems to be."""
    charset = (_parameters(headers.get("content-type", "")) or {}).get("charset", "utf-8")
    encoding = headers.get("content-transfer-encoding", "binary")
    return charset.lower() in _PLAIN_CHARSETS and encoding.strip().lower() in _AS_IT_IS


def _parameters(header: str) -> dict[str, str] | None:
    """Return the parameters of a header, by their names in small letters; None where parsers differ.

    They differ in names in pieces or with a charset (``name*0*``, RFC 2231), and in two parameters of one name.
    """
    found: dict[str, str] = {}
    at = len(header.partition(";")[0])
    while at < len(header.rstrip()):
        parameter = _PARAMETER.match(header, at)
        if parameter is None:
            return None
        name = parameter[1].lower()
        if name in found or ("*" in name and not name.startswith("filename*")):
            return None
        found[name] = next(value for value in parameter.groups()[1:] if value is not None)
        at = parameter.end()
    return found
