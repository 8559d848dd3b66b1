"""Read the model's name from bodies that cannot be parsed as a whole.

A body decides which upstream, and so whose key, a request gets. Text that is not strict JSON (NaN, a lone surrogate,
bytes that are not UTF-8, a missing end) and forms still contain their model's name.

Servers differ in how they read odd bodies. So a body that some server may read as naming another model counts as unreadable.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import orjson

from gateway.wire import multipart, surrogates
from gateway.wire.lenient_json import members_of
from gateway.wire.raw_json import all_members, occurs, occurs_in_any_case, readable, rows
from gateway.wire.raw_json import members as members_of_object
from gateway.wire.splice import splice

NO_MODEL: Final = ""
"""The body was parsed and names no model."""
_ESCAPED: Final = (rb"\u004", rb"\u005", rb"\u006", rb"\u007")
"""How letters of ASCII are escaped, also those of a member's name."""
FORMS: Final = (multipart.MULTIPART, "application/x-www-form-urlencoded")
"""The content types of forms."""
_OBJECT: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{")
"""How a JSON object begins."""
Holders = Mapping[str, "Holders"]
"""Members that may name a model, each with those inside it that may."""
HOLDERS: Final[Holders] = {
    "response": {},
    "session": {"input_audio_transcription": {}, "audio": {"input": {"transcription": {}}}},
    "input_audio_transcription": {},
}
"""Where a WebSocket message, or a request about one, may name models: Realtime's ``session`` also names that of its transcriptions
(https://platform.openai.com/docs/api-reference/realtime-client-events/session/update)."""
SUBSTITUTES: Final = frozenset({"models", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks"})
"""Members that name models to use if the first one fails, at OpenRouter (https://openrouter.ai/docs/guides/routing/model-fallbacks) and at
LiteLLM (https://docs.litellm.ai/docs/proxy/reliability)."""
TOOLS: Final = "tools"
"""Member with the tools of a request. Some that the provider runs name a model of their own: the advisor of Messages, and the image
generation of Responses (https://platform.claude.com/docs/en/api/beta/messages/create,
https://platform.openai.com/docs/api-reference/responses/create)."""
_TOOL: Final[Holders] = {"tool": {"svg": {}}}
_OTHERS: Final = HOLDERS.keys() | SUBSTITUTES | {TOOLS}
"""Members that may name models beside the body's own."""
MOST_FIELDS: Final = 100_000
"""Fields of a plain form, which also counts as one if it is JSON with so many ``&`` or ``;``. Reading them takes 0.15 s of a thread."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def model_in(body: bytes, content_type: str) -> str | None:
    """Return the model in a body, `NO_MODEL` when it names none, or None when it cannot be read."""
    kind = multipart.kind_of(content_type)
    if kind not in FORMS:
        return NO_MODEL if not body.strip() else _in_json(body)[0]
    if kind == multipart.MULTIPART:
        fields = multipart.values_of(body, content_type, "model")
    else:
        plain = _plain_fields(body, ("model",))
        if plain is None:
            return None
        fields = plain["model"]
    # Some servers read JSON under any content type, up to the end of its first value. And curl sends JSON as a form by default.
    if _OBJECT.match(body):
        return _in_json_called_form(body, fields)
    return None if fields is None else _one(fields)


def model_of_session(body: bytes, content_type: str) -> str | None:
    """Return the model in a request for a Realtime session: that of its ``session``, or its own. Returns what `model_in` returns, and None
    if it names both, and they differ."""
    own = model_in(body, content_type)
    if own is None or other_models(body, content_type) is None:
        return None
    session = (readable(body)[1] or {}).get("session", b"")
    inner = model_in(session, "") if session.startswith(b"{") else NO_MODEL
    named = {own, inner} - {NO_MODEL}
    return None if len(named) > 1 else next(iter(named), NO_MODEL)


def _plain_fields(body: bytes, names: Collection[str]) -> dict[str, list[str]] | None:
    """Return the values that a plain form has under these names in any case; None if it has too many fields, or if they differ where a ``;``
    parts fields, too, as some parsers read it."""
    if body.count(b"&") + body.count(b";") >= MOST_FIELDS:
        return None
    readings = []
    for text in (body, body.replace(b";", b"&")) if b";" in body else (body,):
        found: dict[str, list[str]] = {name: [] for name in names}
        for name, value in parse_qsl(text.decode("latin-1"), keep_blank_values=True):
            if folded(name.strip()) in found:
                found[folded(name.strip())].append(value)
        readings.append(found)
    return found if readings[0] == readings[-1] else None


def _in_json_called_form(body: bytes, fields: list[str] | None) -> str | None:
    """Return the model in JSON; None if it is not strict, or if it names another model as a form, or two.

    A body that is one JSON object has no line that begins a part of a form: then ``fields`` is None.
    """
    in_json, is_strict = _in_json(body)
    in_form = None if fields is None else _one(fields)
    return in_json if in_form == in_json or (not fields and is_strict) else None


class _Body(msgspec.Struct):
    """The one member that is read; the others are skipped without building them."""

    model: Any = msgspec.UNSET


_read: Final = msgspec.json.Decoder(_Body).decode


def folded(name: str) -> str:
    """Return the name of a member as parsers read it that ignore the case of letters. Go does, by Unicode's rules: to it ``ſ`` is an ``s``.
    Java also takes ``ı`` and ``İ`` for an ``i``."""
    return name.lower() if name.isascii() else name.upper().casefold().replace("\u0307", "")


def is_ambiguous(body: bytes) -> bool:
    """Return whether servers differ in the model that they read in a JSON object; see `differs`. Most bodies are not parsed for this."""
    return may_differ(body, "model") and differs(body, ("model",))


def may_differ(body: bytes, name: str) -> bool:
    """Return whether a member may stand in a JSON object twice, or in other letters. Parses nothing."""
    quoted = b'"%b"' % name.encode()
    return (
        any(occurs(sign, body) for sign in _ESCAPED)
        or occurs_in_any_case(quoted, body, 2)
        or (not occurs(quoted, body) and occurs_in_any_case(quoted, body))
    )


def differs(body: bytes, names: Collection[str]) -> bool:
    """Return whether servers differ in the value that they read for one of these members of a JSON object.

    If a member stands twice, some take the first value and others the last. If the case of its letters differs, some read it and
    others do not.
    """
    try:
        found = [(name, bytes(value)) for name, value in all_members(body) if folded(name) in names]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        whole = surrogates.repaired(body)
        return whole is not body and differs(whole, names)
    values = {(folded(name), value) for name, value in found}
    exact = {name for name, _ in found if name in names}
    return len(values) > len(exact)


def values_in_any_case(body: bytes, name: str) -> list[Any]:
    """Return all values of a member of a JSON object, also of those whose name has other letters; none if they cannot be read."""
    try:
        return [msgspec.json.decode(value) for each, value in all_members(body) if folded(each) == name]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        whole = surrogates.repaired(body)
        return values_in_any_case(whole, name) if whole is not body else []


def models_in_message(raw: bytes) -> frozenset[str] | None:
    """Return the models that a WebSocket message names, its own or another one; None when one cannot be read."""
    own, others = model_in(raw, ""), other_models(raw)
    return None if own is None or others is None else others | frozenset(filter(None, [own]))


def other_models(raw: bytes, content_type: str = "") -> frozenset[str] | None:
    """Return the models that a body names beside its own, in `HOLDERS`, `SUBSTITUTES` and `TOOLS`; None when one cannot be read, as in a
    form."""
    names = _OTHERS
    if not _OBJECT.match(raw) and multipart.kind_of(content_type) in FORMS:
        return None if _form_may_have(raw, content_type, names) else frozenset()
    whole, members = readable(raw)
    if members is None:  # some servers read what we cannot
        shown = any(occurs_in_any_case(b'"%b"' % name.encode(), raw) for name in names)
        return None if shown or any(occurs(sign, raw) for sign in _ESCAPED) else frozenset()
    if differs(whole, names):
        return None
    found = [*_models_held(members, HOLDERS), *_models_of_tools(members)]
    try:
        for name in SUBSTITUTES & members.keys():
            found += _models_among(msgspec.json.decode(members[name]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None if None in found else frozenset(filter(None, found))


def _models_held(members: Mapping[str, bytes], holders: Holders) -> Iterator[str | None]:
    """Yield the models that some members name; None for one that cannot be read."""
    for name, inner in holders.items():
        value = members.get(name, b"")
        if value.startswith(b"{"):
            yield model_in(value, "")
            if inner:
                yield from [None] if differs(value, inner) else _models_held(members_of_object(value) or {}, inner)


def _models_of_tools(members: Mapping[str, bytes]) -> Iterator[str | None]:
    """Yield the models that the tools of a request name, its own and those in an item of its ``input``; None for one that cannot be read."""
    for tool in rows(members.get(TOOLS, b"")) or ():
        yield from _models_held({"tool": tool}, _TOOL)
    for item in rows(members.get("input", b"")) or ():
        if differs(item, (TOOLS,)):
            yield None
        elif TOOLS in (inner := members_of_object(item) or {}):
            yield from _models_of_tools({TOOLS: inner[TOOLS]})


def with_names(raw: bytes, name_of: Callable[[str], str], holders: Holders = HOLDERS) -> bytes:
    """Return a JSON object in which each model, its own and those in ``holders``, has the name that ``name_of`` returns for it. One that
    cannot be read, or names no model that changes, is returned itself."""
    changes: dict[str, Any] = {}
    members = members_of_object(raw) or {}
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        model = _read(raw).model
        if isinstance(model, str) and (name := name_of(model)) != model:
            changes["model"] = name
    for name, inner in holders.items():
        value = members.get(name, b"")
        if value.startswith(b"{") and (named := with_names(value, name_of, inner)) is not value:
            changes[name] = orjson.Fragment(named)
    return splice(raw, changes) if changes else raw


def _form_may_have(body: bytes, content_type: str, names: Collection[str]) -> bool:
    """Return whether some server may find one of these fields in a form."""
    if multipart.kind_of(content_type) == multipart.MULTIPART:
        return multipart.may_have(body, content_type, names)
    plain = _plain_fields(body, names)
    return plain is None or any(plain.values())


def _models_among(value: Any) -> Iterator[str]:
    """Yield the names in a list of substitutes: texts, objects with a ``model``, or objects with lists by model."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        inner = value if isinstance(value, list) else [value["model"]] if "model" in value else value.values()
        for each in inner:
            yield from _models_among(each)


def _in_json(body: bytes) -> tuple[str | None, bool]:
    """Return the model in JSON, and whether the whole body is one JSON object."""
    try:
        model = _read(body).model
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _in_text(body.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")), False
    if is_ambiguous(body):
        return None, True
    return NO_MODEL if model is msgspec.UNSET else _name(model), True


def _in_text(text: str) -> str | None:
    """Read the members of an object one by one, up to an unreadable place."""
    found: str | None = None
    try:
        for member in members_of(text):
            if folded(member.name) == "model":
                if member.name != "model" or found not in (None, member.value):
                    return None
                found = _name(member.value)
    except (ValueError, RecursionError):
        return found
    return NO_MODEL if found is None else found


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _one(found: list[str]) -> str | None:
    """Return the only value; two different values would be read differently by us and the upstream."""
    if not found:
        return NO_MODEL
    return found[0] if len(set(found)) == 1 and found[0] else None


def with_model_in(body: bytes, content_type: str, model: str) -> bytes:
    """Return a body that names this model: JSON, or a multipart form. Raises ValueError for one in which it cannot be written."""
    if multipart.kind_of(content_type) != multipart.MULTIPART or _OBJECT.match(body):
        return splice(body, {"model": model})
    return multipart.with_value(body, content_type, "model", model)
