"""Calls inside the code that is a call's only argument.

Some agents have one tool that runs code, and the code calls the other tools: ``const r = await tools.exec_command({cmd: "ls"})``. A call
is read if its first argument is an object literal. The literal is read tolerantly: a member's value is a string, or the code as it stands.
"""

import re
from typing import Final, NamedTuple

LEAST_CALLED_SHARE: Final = 1 / 3
"""Share of the code that is in such calls, at least. Chosen: code that does more than to call and to print says more as it stands."""


class CodeCall(NamedTuple):
    """A call in code."""

    name: str
    """Without the objects before it."""
    arguments: dict[str, str]


_STRING: Final = r""""(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|`(?:[^`\\]|\\.)*+`?"""
"""One without an end goes to the end of the text, so that it is looked at once."""
_STRING_OR_CALL: Final = re.compile(rf"{_STRING}|(?<![\w$])([A-Za-z_$][\w$]*+)\(\s*+(?=\{{)", re.S)
"""A call in a string is none: a command of a shell may quote a program."""
_ONE_STRING: Final = re.compile(_STRING, re.S)
_TOKEN: Final = re.compile(rf"{_STRING}|[{{}}\[\](),:]", re.S)
_OPENING: Final = frozenset("{[(")
_CLOSING: Final = frozenset("}])")
_ESCAPED: Final = re.compile(r"\\(.)", re.S)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


def code_calls_in(code: str) -> list[CodeCall]:
    """Return the calls in code, if they are `LEAST_CALLED_SHARE` of it; else none."""
    calls: list[CodeCall] = []
    called, end = 0, 0
    while found := _STRING_OR_CALL.search(code, end):
        end = found.end()
        if not found[1]:
            continue
        arguments: dict[str, str] = {}
        end = _read_literal(code, end, arguments)
        if end < 0:
            return []
        called += end - found.start()
        calls.append(CodeCall(found[1], arguments))
    return calls if called >= LEAST_CALLED_SHARE * len(code.strip()) else []


def _read_literal(code: str, start: int, members: dict[str, str]) -> int:
    """Read the members of the object literal at a position, and return where it ends; -1 if it has no end."""
    depth, key, member = 0, "", start + 1
    for found in _TOKEN.finditer(code, start):
        token, at = found[0], found.start()
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0 or (depth == 1 and token == ","):
            if value := code[member:at].strip():
                # `{cmd}` is short for `{cmd: cmd}`.
                members[key or value] = _text_of(value)
            if depth == 0:
                return at + 1
            key, member = "", at + 1
        elif depth == 1 and token == ":" and not key:
            key, member = _text_of(code[member:at].strip()), at + 1
    return -1


def _text_of(value: str) -> str:
    """Return what a string says; any other code as it stands."""
    if not _ONE_STRING.fullmatch(value):
        return value
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), value[1:-1])
