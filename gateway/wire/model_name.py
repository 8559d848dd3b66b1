"""Read the model's name from bodies that cannot be parsed as a whole.

A body decides which upstream, and so whose key, a request gets. Text that is not strict JSON (NaN, a lone surrogate,
bytes that are not UTF-8, a missing end) and forms still contain their model's name.
"""

import re
from collections.abc import Sequence
from email.message import Message
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from gateway.wire import surrogates
from gateway.wire.lenient_json import members_of
from gateway.wire.raw_json import all_members, occurs, occurs_in_any_case

NO_MODEL: Final = ""
"""The body was parsed and names no model."""
_ESCAPED: Final = (rb"\u004", rb"\u005", rb"\u006", rb"\u007")
"""How letters of ASCII are escaped, also those of a member's name."""
FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")
"""The content types of forms."""
_JSON_STARTS: Final = (b"{", b"[")
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{1,70}")
"""Characters that RFC 2046 section 5.1.1 allows in a boundary."""


def model_in(body: bytes, content_type: str) -> str | None:
    """Return the model in a body, `NO_MODEL` when it names none, or None when it cannot be read."""
    declared = Message()
    declared["content-type"] = content_type
    kind = declared.get_content_type()
    if kind in FORMS and body.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in _JSON_STARTS:
        return None  # some servers read JSON whatever it is called, and only the first value
    if kind == "multipart/form-data":
        return _in_form(body, str(declared.get_param("boundary", "")))
    if kind == "application/x-www-form-urlencoded":
        return _one(parse_qs(body.decode("latin-1"), max_num_fields=None).get("model", []))
    return NO_MODEL if not body.strip() else _in_json(body)


class _Body(msgspec.Struct):
    """The one member that is read; the others are skipped without building them."""

    model: Any = msgspec.UNSET


_read: Final = msgspec.json.Decoder(_Body).decode


def is_ambiguous(body: bytes, names: Sequence[str] = ("model",)) -> bool:
    """Return whether a JSON object has a member twice, with different values: some parsers take the first, others the last.

    Letters of any case count, because Go does not tell ``model`` from ``Model``.
    """
    quoted = (b'"%b"' % name.encode() for name in names)
    if not any(occurs(sign, body) for sign in _ESCAPED) and not any(
        occurs_in_any_case(name, body, 2) for name in quoted
    ):
        return False
    try:
        found = [(name.lower(), bytes(value)) for name, value in all_members(body) if name.lower() in names]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        whole = surrogates.repaired(body)
        return whole is not body and is_ambiguous(whole, names)
    return len(set(found)) > len({name for name, _ in found})


def _in_json(body: bytes) -> str | None:
    try:
        model = _read(body).model
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _in_text(body.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace"))
    if model is msgspec.UNSET:
        return NO_MODEL
    return None if is_ambiguous(body) else _name(model)


def _in_text(text: str) -> str | None:
    """Read the members of an object one by one, up to an unreadable place."""
    found: str | None = None
    try:
        for member in members_of(text):
            if member.name == "model":
                if found not in (None, member.value):
                    return None
                found = _name(member.value)
    except (ValueError, RecursionError):
        return found
    return NO_MODEL if found is None else found


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _in_form(body: bytes, boundary: str) -> str | None:
    """Read the field `model` of a multipart form."""
    if not _BOUNDARY.fullmatch(boundary):
        return None
    mark = b"--" + boundary.encode()
    parts = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(parts) < 2:
        return None
    found = []
    for part in parts[1:]:
        head, gap, value = part.partition(b"\r\n\r\n")
        if gap and _field(head) == "model":
            found.append(value.decode("utf-8", "replace").strip())
    return _one(found)


def _field(head: bytes) -> str:
    """Return the name of the field in a part of a form."""
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name.strip().lower() == "content-disposition":
            declared = Message()
            declared["content-disposition"] = value.strip()
            return str(declared.get_param("name", "", "content-disposition"))
    return ""


def _one(found: list[str]) -> str | None:
    """Return the only value; two different values would be read differently by us and the upstream."""
    if not found:
        return NO_MODEL
    return found[0] if len(set(found)) == 1 and found[0] else None
