"""Read the model's name from bodies that cannot be parsed as a whole.

A body decides which upstream, and so whose key, a request gets. Text that is not strict JSON (NaN, a lone surrogate,
bytes that are not UTF-8, a missing end) and forms still contain their model's name.

Servers differ in how they read odd bodies. So a body that some server may read as naming another model counts as unreadable.
"""

import re
from collections.abc import Sequence
from email.message import Message
from email.utils import collapse_rfc2231_value
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
_OBJECT: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{")
"""How a JSON object begins."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{1,70}")
"""Characters that RFC 2046 section 5.1.1 allows in a boundary."""
_FOLD: Final = re.compile(rb"\r\n(?=[ \t])")
"""A line break inside a header."""
_BARE_BREAK: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")
"""Half of a line break: some parsers end a line there."""


def model_in(body: bytes, content_type: str) -> str | None:
    """Return the model in a body, `NO_MODEL` when it names none, or None when it cannot be read."""
    declared = Message()
    declared["content-type"] = content_type
    kind = declared.get_content_type()
    if kind not in FORMS:
        return NO_MODEL if not body.strip() else _in_json(body)
    if kind == "multipart/form-data":
        in_form = _in_form(body, _parameters(declared, "content-type", "boundary"))
    else:
        in_form = _one(parse_qs(body.decode("latin-1"), max_num_fields=None).get("model", []))
    # Some servers read JSON under any content type, up to the end of its first value. And curl sends JSON as a form by default.
    return _in_json_called_form(body, in_form) if _OBJECT.match(body) else in_form


def _in_json_called_form(body: bytes, in_form: str | None) -> str | None:
    """Return the model in JSON; None if it is not strict, or if it names another model as a form."""
    in_json = _in_json(body)
    if in_form == in_json:
        return in_json
    return in_json if not in_form and _is_strict_json(body) else None


def _is_strict_json(body: bytes) -> bool:
    """Return whether a whole body is one JSON object. Then it has no line that begins a part of a form."""
    try:
        _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


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
            if member.name.lower() == "model":
                if found not in (None, member.value):
                    return None
                found = _name(member.value)
    except (ValueError, RecursionError):
        return found
    return NO_MODEL if found is None else found


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _in_form(body: bytes, boundaries: list[str]) -> str | None:
    """Read the field `model` of a multipart form."""
    if len(boundaries) != 1 or not _BOUNDARY.fullmatch(boundaries[0]):
        return None
    mark = b"--" + boundaries[0].encode()
    parts = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(parts) < 2:
        return None
    if any(b"\n" + mark in part or b"\r" + mark in part for part in parts):  # some parsers see a boundary there, too
        return None
    found = []
    for part in parts[1:]:
        if part.strip() == b"--":  # behind the last part
            continue
        head, gap, value = part.partition(b"\r\n\r\n")
        field = _field(head)
        if field is None:
            return None
        if gap and field == "model":
            found.append(value.decode("utf-8", "replace").strip())
    return _one(found)


def _field(head: bytes) -> str | None:
    """Return the name of the field in a part of a form; None when some parser may read another one."""
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
    return None if name != "model" and name.replace("\\", "").strip().lower() == "model" else name


def _parameters(declared: Message, header: str, name: str) -> list[str]:
    """Return every value of one parameter of a header."""
    return [collapse_rfc2231_value(value) for key, value in declared.get_params([], header) if key.lower() == name]


def _one(found: list[str]) -> str | None:
    """Return the only value; two different values would be read differently by us and the upstream."""
    if not found:
        return NO_MODEL
    return found[0] if len(set(found)) == 1 and found[0] else None
