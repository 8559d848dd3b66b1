"""Read a body of the Anthropic Messages format as views of its messages.

One user message with tool results becomes several views: one per result, and one for the user's words. Blocks that the
core must not touch (server tools with their results, compactions, the thinking of the current tool loop) are `Opaque`
parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gateway.wire import piecewise
from gateway.wire.format import Format
from gateway.wire.memory import Memory
from gateway.wire.message import CONTINUES, Message, dumps
from gateway.wire.raw_json import members, readable
from gateway.wire.views import Piece, ViewedRequest, opaque, pieces, texts_in, view

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
MEDIA: Final = frozenset({"image", "document"})
LOCAL: Final = frozenset({"compaction", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"})
"""Blocks besides texts, calls and thinking whose whole content is in the body."""
SERVED: Final = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls that the server answers, in the same message or in a later one."""
REMINDER: Final = "<system-reminder>"
"""Claude Code puts such blocks behind tool results (https://code.claude.com/docs): they are not a question."""


@dataclass(frozen=True, slots=True)
class BlockOrigin:
    """The origin of a view: the message in the body and its blocks, None when its content is one text."""

    at: int
    """Index of the message; -1 for ``system``."""
    blocks: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Given:
    """One message of the body."""

    raw: bytes
    role: str
    content: str | None
    """The content if it is one text."""
    blocks: tuple[Piece, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MessagesRequest(ViewedRequest):
    """A Messages body: its bytes, its messages, and their views."""

    given: tuple[Given, ...]
    origins: tuple[BlockOrigin, ...]
    compacted: tuple[int, int]
    """The message and the block of the newest compaction; (-1, -1) where there is none."""

    @property
    def message_count(self) -> int:
        return len(self.given)

    @property
    def output_limits(self) -> tuple[int, ...]:
        return self.limits_named("max_tokens")

    @property
    def refers_elsewhere(self) -> bool:
        return self.continues or any(self.head.get(name) for name in ("container", "mcp_servers"))

    @property
    def continues(self) -> bool:
        """Whether the server has the messages before these, as in `thread: {"type": "continue"}`."""
        thread = self.head.get("thread")
        return isinstance(thread, dict) and thread.get("type") == "continue"


def read(raw: bytes, memory: Memory, made_by: Format) -> MessagesRequest | None:
    """Read a body; return None when it cannot be decided about."""
    raw, found = readable(raw)
    rows = pieces(found["messages"]) if found and "messages" in found else None
    if not found or not rows:
        return None
    given = [_given(row) for row in rows]
    try:
        head = {name: piecewise.loads(value) for name, value in found.items() if name != "messages"}
    except orjson.JSONDecodeError:
        return None
    if None in given:
        return None
    whole = tuple(each for each in given if each is not None)
    compacted = _newest_compaction(whole)
    views, origins = _views(head.get("system"), whole, compacted)
    return MessagesRequest(
        format=made_by,
        raw=raw,
        head=head,
        views=views,
        shaped={**{name: value for name, value in head.items() if name != "system"}, **_shaped(head)},
        memory=memory,
        given=whole,
        origins=origins,
        compacted=compacted,
    )


def _given(row: Piece) -> Given | None:
    role, content = row.value.get("role"), row.value.get("content")
    if not isinstance(role, str):
        return None
    if isinstance(content, str):
        return Given(row.raw, role, content)
    inside = members(row.raw)
    blocks = pieces(inside["content"]) if inside and "content" in inside else None
    return None if blocks is None else Given(row.raw, role, None, tuple(blocks))


Found = tuple[Mapping[str, Any], BlockOrigin]


def _views(
    system: Any, given: Sequence[Given], compacted: tuple[int, int]
) -> tuple[tuple[Message, ...], tuple[BlockOrigin, ...]]:
    """Return all views in order with their origins. Messages before the newest compaction are not read, so they have
    none."""
    found: list[Found] = []
    if system:
        found.append(({"role": "system", "content": system}, BlockOrigin(-1, None)))
    start, block = compacted
    running = max((at for at, each in enumerate(given) if _asks(each)), default=-1)
    for at, each in enumerate(given):
        if at < start:
            continue
        if at == start:
            found.append(_compaction(at, block, each))
        found += _views_of(at, each, block + 1 if at == start else 0, running=at > running)
    found = _connected(found, given)
    views = tuple(view(number, message) for number, (message, _) in enumerate(found))
    return views, tuple(origin for _, origin in found)


def _connected(found: list[Found], given: Sequence[Given]) -> list[Found]:
    """Mark each view that cannot stand without an earlier one: a server's tool was called there, and its result, or a call that it made
    itself, is here.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling
    """
    called: dict[str, int] = {}
    connected: list[Found] = []
    for number, (message, origin) in enumerate(found):
        used: list[int] = []
        for n in origin.blocks or () if message["role"] == "assistant" else ():
            block = given[origin.at].blocks[n]
            if block.type in SERVED:
                called[str(block.value.get("id"))] = number
            elif called.get(_served(block), number) < number:
                used.append(called[_served(block)])
        connected.append(({**message, CONTINUES: number - min(used)} if used else message, origin))
    return connected


def _served(block: Piece) -> str:
    """Return the id of the server's call that a block belongs to, as its result or as a call that it makes; empty for any other block."""
    caller = block.value.get("caller")
    name = block.value.get("tool_use_id", caller.get("tool_id") if isinstance(caller, dict) else None)
    return name if isinstance(name, str) else ""


def _newest_compaction(given: Sequence[Given]) -> tuple[int, int]:
    """Return the message and the block of the newest compaction; (-1, -1) without one."""
    places = (
        (at, n) for at, each in enumerate(given) for n, block in enumerate(each.blocks) if block.type == "compaction"
    )
    return max(places, default=(-1, -1))


def _compaction(at: int, block: int, each: Given) -> Found:
    return {"role": "system", "content": [opaque(each.blocks[block].value)]}, BlockOrigin(at, (block,))


def _asks(each: Given) -> bool:
    """Return whether a message is a question of the user, and not only results of a tool loop."""
    return each.role == "user" and (each.content is not None or not _results(each) or bool(_said(each, 0)))


def _results(each: Given) -> list[int]:
    return [n for n, block in enumerate(each.blocks) if block.type == "tool_result"]


def _said(each: Given, first: int) -> list[int]:
    """Return the blocks of the user's words, without blocks that a program put behind tool results."""
    rest = [n for n, block in enumerate(each.blocks) if n >= first and block.type != "tool_result"]
    texts = [each.blocks[n].value.get("text") for n in rest]
    reminders = all(isinstance(text, str) and text.lstrip().startswith(REMINDER) for text in texts)
    return [] if _results(each) and reminders else rest


def _views_of(at: int, each: Given, first: int, *, running: bool) -> Iterator[Found]:
    """Return the views of one message, from a block on."""
    if each.content is not None:
        # As a part, so that text placed before it is a separate block, which can carry a cache mark.
        content = texts_in(each.content, "text") if each.role == "user" else each.content
        yield {"role": each.role, "content": content}, BlockOrigin(at, None)
    elif each.role == "user":
        yield from _user_views(at, each, first)
    elif numbers := tuple(range(first, len(each.blocks))):
        blocks = [each.blocks[n] for n in numbers]
        message = _assistant(blocks, running=running) if each.role == "assistant" else {"content": _values(blocks)}
        yield {"role": each.role, **message}, BlockOrigin(at, numbers)


def _user_views(at: int, each: Given, first: int) -> Iterator[Found]:
    results, said = [n for n in _results(each) if n >= first], _said(each, first)
    reminders = [n for n in range(first, len(each.blocks)) if n not in results and n not in said]
    for n in results:
        block = each.blocks[n].value
        content = block.get("content", "")
        covered: tuple[int, ...] = (n,)
        if n == results[-1] and reminders:
            content = [*texts_in(content, "text"), *(opaque(each.blocks[r].value) for r in reminders)]
            covered = (n, *reminders)
        yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}, BlockOrigin(at, covered)
    if said or not results:
        yield {"role": "user", "content": _values([each.blocks[n] for n in said])}, BlockOrigin(at, tuple(said))


def _values(blocks: Sequence[Piece]) -> list[Mapping[str, Any]]:
    """Return blocks as content parts: texts and media unchanged, anything else as a part that is never cut."""
    return [block.value if _plain(block) else opaque(block.value, stands_here=block.type in LOCAL) for block in blocks]


def _plain(block: Piece) -> bool:
    return block.type in MEDIA or (block.type == "text" and isinstance(block.value.get("text"), str))


def _assistant(blocks: Sequence[Piece], *, running: bool) -> dict[str, Any]:
    """Return an assistant message: older thinking as reasoning, which may be dropped; that of the current tool loop as
    parts, which stay."""
    message: dict[str, Any] = {}
    thoughts = [block for block in blocks if block.type in THINKING]
    if thoughts and not running:
        message["reasoning"] = "\n".join(str(block.value.get("thinking") or "[redacted]") for block in thoughts)
    parts: list[Mapping[str, Any]] = []
    calls: list[Mapping[str, Any]] = []
    for block in blocks:
        if block.type in THINKING:
            if running:
                parts.append(opaque(block.value))
        elif block.type == "tool_use":
            calls.append(_call(block.value))
        else:
            parts += _values([block])
    if parts:
        message["content"] = parts
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = dumps(block.get("input", {})).decode()
    return {"id": block.get("id"), "type": "function", "function": {"name": block.get("name"), "arguments": arguments}}


_CHOICES: Final = {"any": "required", "auto": "auto", "none": "none"}


def _shaped(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return tools, their choice and the answer's schema in chat-completions form."""
    shaped: dict[str, Any] = {}
    tools = head.get("tools")
    if isinstance(tools, list):
        shaped["tools"] = [_tool(tool) for tool in tools]
    choice = head.get("tool_choice")
    if isinstance(choice, dict):
        named = {"type": "function", "function": {"name": choice.get("name", "")}}
        shaped["tool_choice"] = _CHOICES.get(str(choice.get("type")), named)
    config = head.get("output_config")
    form = config.get("format") if isinstance(config, dict) else None
    if isinstance(form, dict) and "schema" in form:
        described = {"name": "output", "schema": form["schema"]}
        shaped["response_format"] = {"type": "json_schema", "json_schema": described}
    return shaped


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or "input_schema" not in tool:
        return tool
    described = {
        "name": tool.get("name", ""),
        "description": tool.get("description"),
        "parameters": tool["input_schema"],
    }
    return {"type": "function", "function": described}
