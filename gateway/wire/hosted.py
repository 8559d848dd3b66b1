"""Tools that the provider runs: where the texts of their results are, and which of them may be shortened.

A result is shown to the core as a message of its own with the role ``tool``. Each text that may be shortened is a part that knows its
place in the item, so a shorter text is written back to it. All other bytes of the item stay.

The members are those of the providers' published schemas:
https://platform.openai.com/docs/api-reference/responses/create, https://platform.claude.com/docs/en/api/messages/create.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import msgspec
import orjson

from gateway.wire.message import Message, dumps
from gateway.wire.raw_json import array, members, rows
from gateway.wire.splice import splice
from gateway.wire.views import IMAGE_TOKENS, Opaque, opaque


class Text(Enum):
    """What may be done with a text of a result."""

    CUT = "may be shortened"
    WHOLE = "stays whole: a name, an address, or something that the provider wants back as it was"
    IMAGE = "base64 of an image, which is no text"


CUT, WHOLE, IMAGE = Text.CUT, Text.WHOLE, Text.IMAGE

Pattern = Text | str | tuple["Pattern", ...] | list["Pattern"] | Mapping[str, "Pattern"]
"""Where texts are in a JSON value: an object by the names of its members, a list by the pattern of all its values, alternatives as a tuple.
A member with a string as its pattern must have this value; otherwise nothing is found in its object."""


class HostedItem(msgspec.Struct, frozen=True):
    """A kind of item of Responses that is a call and its result in one."""

    arguments: tuple[str, ...]
    """The members that say what the tool was called with."""
    result: Mapping[str, Pattern]
    is_in_body: bool = True
    """Whether the result has no text that only the provider has."""


ITEMS: Final[Mapping[str, HostedItem]] = MappingProxyType(
    {
        "mcp_call": HostedItem(
            ("arguments",),
            {"output": CUT, "error": (CUT, {"message": CUT, "content": (CUT, [{"text": CUT}])})},
        ),
        "code_interpreter_call": HostedItem(("code",), {"outputs": [{"logs": CUT}]}, is_in_body=False),
        "file_search_call": HostedItem(("queries",), {"results": [{"filename": WHOLE, "text": CUT}]}, is_in_body=False),
        "web_search_call": HostedItem(("action",), {}, is_in_body=False),
        "image_generation_call": HostedItem(("revised_prompt",), {"result": IMAGE}, is_in_body=False),
    }
)
"""The items of Responses by their type. Without ``include`` in its request, a client has no results of searches and no logs."""

_PRINTED: Final = {"stdout": CUT, "stderr": CUT}
_ERROR: Final = {"error_code": WHOLE}

BLOCKS: Final[Mapping[str, Pattern]] = MappingProxyType(
    {
        "mcp_tool_result": {"content": (CUT, [{"text": CUT}])},
        "web_search_tool_result": {"content": ([{"title": WHOLE, "url": WHOLE, "page_age": WHOLE}], _ERROR)},
        "web_fetch_tool_result": {
            "content": (
                _ERROR,
                {
                    "url": WHOLE,
                    "content": {
                        "title": WHOLE,
                        "source": ({"type": "text", "data": CUT}, {"type": "content", "content": (CUT, [{"text": CUT}])}),
                    },
                },
            )
        },
        "code_execution_tool_result": {
            "content": (
                _ERROR,
                {"type": "code_execution_result", **_PRINTED},
                {"type": "encrypted_code_execution_result", "stderr": WHOLE},
            )
        },
        "bash_code_execution_tool_result": {"content": (_ERROR, _PRINTED)},
        "text_editor_code_execution_tool_result": {
            "content": (_ERROR, {"error_message": WHOLE, "lines": [WHOLE]}, {"file_type": "text", "content": CUT})
        },
        "tool_search_tool_result": {"content": (_ERROR, {"tool_references": [{"tool_name": WHOLE}]})},
        "advisor_tool_result": {"content": (_ERROR, {"text": WHOLE})},
    }
)  # fmt: skip
"""The results of Messages by the type of their block. A web search has its pages in encrypted form; a page that was fetched is a document
like one of the client's."""

_Path = tuple[str | int, ...]
"""The names and indices that lead to a text in an item."""
PLACE: Final = "place"
"""The member of a part with its path in the item."""


def call(kind: str, item: Mapping[str, Any], call_id: Any) -> dict[str, Any]:
    """Return the call in an item of Responses. Its input is never cut: it is written with its result."""
    given = {name: item[name] for name in ITEMS[kind].arguments if item.get(name) is not None}
    first = next(iter(given.values()), None)
    name = item.get("name")
    called = name if isinstance(name, str) and name else kind.removesuffix("_call")
    return custom_call(call_id, called, first if isinstance(first, str) else given or "")


def custom_call(call_id: Any, name: Any, given: Any) -> dict[str, Any]:
    """Return a call whose input is never cut. An input that is no text is written as JSON."""
    written = given if isinstance(given, str) else dumps(given).decode()
    return {"id": call_id, "type": "custom", "custom": {"name": name, "input": written}}


def result(kind: str, item: Mapping[str, Any], call_id: Any) -> dict[str, Any]:
    """Return the result in an item of Responses as a message."""
    row = ITEMS[kind]
    shown = {name: value for name, value in item.items() if name not in (*row.arguments, "name")}
    return {"role": "tool", "tool_call_id": call_id, "content": parts(shown, row.result, is_in_body=row.is_in_body)}


def parts(item: Mapping[str, Any], pattern: Pattern, *, is_in_body: bool) -> list[Mapping[str, Any]]:
    """Return the texts of a result in their order, and the rest of it, which is only counted."""
    found = list(_found(item, pattern, ()))
    rest = opaque(_without(item, [path for path, _, _ in found]), is_in_body=is_in_body)
    rest.extra_tokens += IMAGE_TOKENS * sum(text is IMAGE for _, text, _ in found)
    shown: list[Mapping[str, Any]] = []
    for path, text, value in found:
        if text is CUT:
            shown.append({"type": "text", PLACE: path, "text": value})
        elif text is WHOLE:
            shown.append(Opaque({"content": value}))
    return [*shown, rest]


def _found(value: Any, pattern: Pattern, path: _Path) -> Iterator[tuple[_Path, Text, str]]:
    """Return the texts of a value that a pattern names, with their paths."""
    if isinstance(pattern, Text):
        if isinstance(value, str) and value:
            yield path, pattern, value
    elif isinstance(pattern, tuple):
        for alternative in pattern:
            yield from _found(value, alternative, path)
    elif isinstance(pattern, list):
        for number, inner in enumerate(value if isinstance(value, list) else ()):
            yield from _found(inner, pattern[0], (*path, number))
    elif isinstance(pattern, Mapping) and isinstance(value, dict) and _has(value, pattern):
        for name, inner in pattern.items():
            yield from _found(value.get(name), inner, (*path, name))


def _has(value: Mapping[str, Any], pattern: Mapping[str, Pattern]) -> bool:
    """Return whether an object has the values that a pattern demands."""
    return all(value.get(name) == inner for name, inner in pattern.items() if isinstance(inner, str))


def _without(value: Any, paths: Sequence[_Path]) -> Any:
    """Return a copy of a value without the texts at some paths."""
    inside = _by_first_step(dict.fromkeys(paths, ""))
    keys = value.items() if isinstance(value, dict) else enumerate(value)
    kept = [
        (key, _without(inner, list(inside[key])) if key in inside else inner)
        for key, inner in keys
        if () not in inside.get(key, ())
    ]
    return dict(kept) if isinstance(value, dict) else [inner for _, inner in kept]


def _by_first_step(texts: Mapping[_Path, str]) -> dict[str | int, dict[_Path, str]]:
    found: dict[str | int, dict[_Path, str]] = {}
    for path, text in texts.items():
        found.setdefault(path[0], {})[path[1:]] = text
    return found


def with_texts(raw: bytes, before: Message, after: Message) -> bytes:
    """Return a result's item with the texts that a fold has shortened. All other bytes stay."""
    given, sent = _texts(before), _texts(after)
    shorter = {path: text for path, text in sent.items() if text != given.get(path)}
    return _with(raw, shorter) if shorter else raw


def _texts(message: Message) -> dict[_Path, str]:
    content = message.get("content")
    return {part[PLACE]: part["text"] for part in content if PLACE in part} if isinstance(content, list) else {}


def _with(raw: bytes, texts: Mapping[_Path, str]) -> bytes:
    """Return a JSON value with other texts at some paths."""
    if () in texts:
        return dumps(texts[()])
    inside = _by_first_step(texts)
    if (values := rows(raw)) is not None:
        return dumps(array(_with(row, inside[n]) if n in inside else row for n, row in enumerate(values)))
    found = members(raw) or {}
    return splice(raw, {str(name): orjson.Fragment(_with(found[str(name)], inner)) for name, inner in inside.items()})
