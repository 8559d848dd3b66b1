"""Calls that an agent writes into its text.

Many agents do not use the tool calls of the API: the model writes a call in the form that its prompt asks for, and the program sends
the result as a message of the user. Forms of calls:

- an element whose name is a tool's, with its arguments as elements: ``<read_file><path>a.py</path></read_file>``
- JSON between tags, in a fence, or alone: ``<tool_call>{"name": "search", "arguments": {}}</tool_call>``
- an element that names the tool: ``<function=search><parameter=query>tea</parameter></function>``, ``<invoke name="search">``
- two rows: ``Action: search``, ``Action Input: tea``
- a command or a program in a fence or in ``<code>``, at the end of the message
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from gateway.context.read.elements import Element, elements_of
from gateway.context.read.pasted import FENCE
from gateway.wire import exact_json


class TextCall(NamedTuple):
    """A call in a text."""

    name: str
    arguments: str
    """As JSON, or as they were written."""


class Called(NamedTuple):
    """A message of an agent, read for its calls."""

    prose: str
    """What it says besides its calls."""
    calls: tuple[TextCall, ...] = ()
    certain: bool = False
    """Whether these are certainly calls. A block of code may be meant for a reader."""


_NAME_MEMBERS: Final = ("name", "tool", "tool_name", "action", "function", "command", "recipient_name")
"""Members of a call in JSON with the tool's name."""
_ARGUMENT_MEMBERS: Final = (
    "arguments",
    "args",
    "parameters",
    "params",
    "action_input",
    "tool_input",
    "input",
    "kwargs",
)
"""Members of a call in JSON with its arguments."""
_THOUGHT_MEMBERS: Final = ("thought", "thoughts", "reasoning", "rationale")
"""Members in which an agent thinks: prose, beside a call in JSON."""
_JSON_TAGS: Final = frozenset(
    {"action", "call", "function", "function_call", "function_calls", "tool", "tool_call", "tool_calls", "tool_use"}
)
"""Elements around a call in JSON, or around elements that are calls."""
_CODE_TAGS: Final = frozenset({"bash", "code", "execute", "python", "shell"})
_THINKING_TAGS: Final = frozenset({"analysis", "reasoning", "think", "thinking", "thought"})
_SAID_TAGS: Final = frozenset(
    {"answer", "explanation", "message", "question", "reason", "response", "result", "summary", "thought"}
)
"""Arguments in which the agent speaks: a report, or a question to the user."""
_COMMAND_LANGUAGES: Final = frozenset(
    {"", "bash", "cmd", "console", "ipython", "powershell", "py", "python", "sh", "shell", "sql", "terminal", "zsh"}
)
"""Languages of fenced blocks that are programs or commands, and so are calls."""
_CALL_LANGUAGES: Final = frozenset({"action", "json", "tool", "tool_call", "tool_code"})
"""Languages of fenced blocks that have a call in JSON."""

_NAMED: Final = re.compile(r"""(?:=|name=)["']?([\w.:/-]{1,80})""")
"""The name in an opening tag, behind the element's own."""
_ACTION: Final = re.compile(r"^[ *#]{0,4}Action(?: \d{1,3})?\*{0,2}:\*{0,2}[ \t]*(?P<name>[^\n]{0,200})$", re.M)
_ACTION_INPUT: Final = re.compile(r"^[ *#]{0,4}Action Input(?: \d{1,3})?\*{0,2}:\*{0,2}[ \t]*", re.M)
_LABEL: Final = re.compile(
    r"^[ *#]{0,4}(?:Thought|Thinking|Reasoning|Final Answer|Discussion)(?: \d{1,3})?\*{0,2}:\*{0,2}[ \t]*", re.M | re.I
)
_LANGUAGE: Final = re.compile(r"(?P<language>[\w.-]{0,30})[^\S\n]*\n")
"""The first row of a fenced block."""


def called_in(text: str) -> Called:
    """Read a message of an agent for its calls. Calls that cannot be written as JSON (halves of emoji, hundreds of levels) are read as prose."""
    try:
        return _called_in_any_form(text) or Called(text)
    except (TypeError, RecursionError):
        return Called(text)


def _called_in_any_form(text: str) -> Called | None:
    """Read the calls in the first form that a message has. A form is only looked for if its marks are there."""
    found = _json_alone(text) if text.lstrip().startswith("{") else None
    if found is None and "</" in text:
        found = _elements(text)
    if found is None and "Action" in text:
        found = _actions(text)
    if found is None and text.rstrip().endswith(FENCE):
        found = _fenced(text)
    return found


def _json_alone(text: str) -> Called | None:
    """Read a message that is nothing but a call in JSON."""
    value = exact_json.loads_object(text)
    call = _json_call(value)
    if value is None or call is None:
        return None
    said = [value[name] for name in _THOUGHT_MEMBERS if isinstance(value.get(name), str)]
    return Called("\n".join(said), (call,), certain=True)


def _json_call(value: Mapping[str, Any] | None) -> TextCall | None:
    """Return the call in a JSON object; None if it has none, or if there is no object."""
    if value is None:
        return None
    inner = next((value[key] for key in ("command", "function", "action") if isinstance(value.get(key), dict)), value)
    name = next((inner[key] for key in _NAME_MEMBERS if isinstance(inner.get(key), str)), "")
    given = next((inner[key] for key in _ARGUMENT_MEMBERS if key in inner), None)
    if not name or (given is None and inner is value):
        return None
    return TextCall(name, given if isinstance(given, str) else _as_json(given or {}))


def _as_json(value: Any) -> str:
    return orjson.dumps(value, default=exact_json.written).decode()


def _elements(text: str) -> Called | None:
    """Read a message with elements that are calls."""
    calls: list[TextCall] = []
    prose: list[str] = []
    certain, start = False, 0
    for element in elements_of(text):
        called = _element(element, element.inner(text))
        if called is not None:
            prose += [text[start : element.start], called.prose]
            calls += called.calls
            certain = certain or called.certain
            start = element.end
    return _called([*prose, text[start:]], calls, certain=certain)


def _called(prose: list[str], calls: list[TextCall], *, certain: bool) -> Called | None:
    """Return a message with these calls; None without one."""
    said = "\n".join([part.strip() for part in prose if part.strip()])
    return Called(_LABEL.sub("", said).strip(), tuple(calls), certain) if calls else None


def _element(element: Element, inner: str) -> Called | None:
    """Read an element that is thinking, a call, or around calls; None for any other element."""
    name, named = element.name, _NAMED.search(element.rest)
    if name in _THINKING_TAGS:
        return Called(inner)
    if named and name in {"function", "invoke"}:
        return Called(
            "", (TextCall(named[1], _as_json(_members(inner)) if "</" in inner else inner.strip()),), certain=True
        )
    if name in _JSON_TAGS:
        call = _json_call(exact_json.loads_object(inner))
        return Called("", (call,), certain=True) if call else _elements(inner)
    if name in _CODE_TAGS:
        return Called("", (TextCall(name, _as_json({"code": inner.strip()})),))
    return _tool_element(name, inner)


def _tool_element(name: str, inner: str) -> Called | None:
    """Read an element whose name is a tool's: it is of several words, or it has nothing but elements inside."""
    members = _members(inner)
    if name != name.lower() or not (members or "_" in name.strip("_")):
        return None
    said = [value for member, value in members.items() if member in _SAID_TAGS]
    given = {member: value for member, value in members.items() if member not in _SAID_TAGS}
    call = TextCall(name, _as_json(given if members else {"input": inner.strip()}))
    return Called("\n".join(said), (call,), certain=True)


def _members(inner: str) -> dict[str, str]:
    """Return the arguments of a call by name, each of them an element."""
    found: dict[str, str] = {}
    for element in elements_of(inner):
        named = _NAMED.search(element.rest)
        name = named[1] if named and element.name in {"arg", "param", "parameter"} else element.name
        found[name] = element.inner(inner).strip()
    return found


def _actions(text: str) -> Called | None:
    """Read a message with rows ``Action:`` and ``Action Input:``."""
    found = list(_ACTION.finditer(text))
    ends = [*[action.start() for action in found[1:]], len(text)]
    calls: list[TextCall] = []
    for action, end in zip(found, ends, strict=False):
        given = text[action.end() : end]
        label = _ACTION_INPUT.search(given)
        if label:
            calls.append(TextCall(action["name"].strip(" `*"), _without_fence(given[label.end() :])))
        elif call := _json_call(exact_json.loads_object(_without_fence(action["name"] + given))):
            calls.append(call)
    return _called([text[: found[0].start()]], calls, certain=True) if calls else None


def _without_fence(text: str) -> str:
    """Return a text without the fence around all of it."""
    plain = text.strip()
    opened = _LANGUAGE.match(plain, len(FENCE)) if plain.startswith(FENCE) else None
    return plain[opened.end() :].removesuffix(FENCE).strip() if opened else plain


def _fenced(text: str) -> Called | None:
    """Read a message that ends with a fenced block: all its blocks of commands are calls."""
    pieces = text.rstrip().split(FENCE)
    prose = pieces[::2]
    calls: list[TextCall] = []
    certain = False
    for block in pieces[1::2]:
        opened = _LANGUAGE.match(block)
        language = opened["language"].lower() if opened else ""
        inner = block[opened.end() :].strip() if opened else block.strip()
        call = _json_call(exact_json.loads_object(inner)) if language in _CALL_LANGUAGES else None
        if call is None and inner and (language in _COMMAND_LANGUAGES or language.startswith(("tool", "mswea"))):
            call = TextCall(language or "shell", _as_json({"code": inner}))
        calls += [call] if call else []
        prose += [] if call else [block]
        certain = certain or (call is not None and language in _CALL_LANGUAGES)
    return _called(prose, calls, certain=certain)
