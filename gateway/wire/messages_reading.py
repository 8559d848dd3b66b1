"""Read a body of the Anthropic Messages format as views of its messages.

A user message with tool results becomes several views: one for each result, and one for the user's words. An answer with results of the
server's tools (`gateway.wire.hosted`) becomes several views, too: one for each result, and one for the blocks before it. Blocks that the core must not touch
(compactions, the thinking of the current tool loop) are `Opaque` parts.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
import orjson

from gateway.wire import exact_json, hosted, piecewise
from gateway.wire.format import Format
from gateway.wire.memory import Memory
from gateway.wire.message import CONTINUES, Message, dumps
from gateway.wire.raw_json import members, readable
from gateway.wire.views import Piece, ViewedRequest, opaque, pieces, texts_in, view

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
MEDIA: Final = frozenset({"image", "document"})
IN_BODY: Final = frozenset(
    {"compaction", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"}
)
"""Blocks besides texts, calls and thinking whose whole content is in the body."""
SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls of tools that the server runs. The result is in the same message or in a later one."""
CALLS: Final = SERVER_CALLS | {"tool_use"}
REMINDER: Final = "<system-reminder>"
"""Claude Code puts such blocks after tool results (https://code.claude.com/docs). They are no question of the user."""


class BlockOrigin(msgspec.Struct, frozen=True):
    """The origin of a view: the message in the body and its blocks, None when its content is one text."""

    at: int
    """Index of the message; -1 for ``system``."""
    blocks: tuple[int, ...] | None


class BodyMessage(msgspec.Struct, frozen=True):
    """One message of the body."""

    raw: bytes
    role: str
    content: str | None
    """The content if it is one text."""
    blocks: tuple[Piece, ...] = ()


class MessagesRequest(ViewedRequest, frozen=True, kw_only=True, eq=False):
    """A Messages body: its bytes, its messages, and their views."""

    body_messages: tuple[BodyMessage, ...]
    origins: tuple[BlockOrigin, ...]
    compacted: tuple[int, int]
    """The message and the block of the newest compaction; (-1, -1) where there is none."""
    cleared: frozenset[int]
    """Messages that the model no longer sees: see `_cleared`."""

    @property
    def message_count(self) -> int:
        return len(self.body_messages)

    @property
    def output_limits(self) -> tuple[int, ...]:
        return self.output_limits_named("max_tokens")

    @property
    def refers_elsewhere(self) -> bool:
        return self.continues or any(self.head.get(name) for name in ("container", "mcp_servers"))

    @property
    def continues(self) -> bool:
        """Whether the server has the messages before these, as in `thread: {"type": "continue"}`."""
        thread = self.head.get("thread")
        return isinstance(thread, dict) and thread.get("type") == "continue"


def read(raw: bytes, memory: Memory, made_by: Format) -> MessagesRequest | None:
    """Read a body; return None if it is no body of this format."""
    raw, found = readable(raw)
    rows = pieces(found["messages"]) if found and "messages" in found else None
    if not found or not rows:
        return None
    parsed = [_body_message(row) for row in rows]
    try:
        head = {name: piecewise.loads(value) for name, value in found.items() if name != "messages"}
    except orjson.JSONDecodeError:
        return None
    body_messages = tuple(message for message in parsed if message is not None)
    if len(body_messages) < len(parsed):
        return None
    compacted = _newest_compaction(body_messages)
    cleared = _cleared(rows, compacted[0])
    views, origins = _views(head.get("system"), body_messages, compacted, cleared)
    return MessagesRequest(
        format=made_by,
        raw=raw,
        head=head,
        views=views,
        translated_head={
            **{name: value for name, value in head.items() if name != "system"},
            **_translated_tools(head),
        },
        memory=memory,
        body_messages=body_messages,
        origins=origins,
        compacted=compacted,
        cleared=cleared,
    )


def _body_message(row: Piece) -> BodyMessage | None:
    role, content = row.value.get("role"), row.value.get("content")
    if not isinstance(role, str):
        return None
    if isinstance(content, str):
        return BodyMessage(row.raw, role, content)
    inside = members(row.raw)
    blocks = pieces(inside["content"]) if inside and "content" in inside else None
    return None if blocks is None else BodyMessage(row.raw, role, None, tuple(blocks))


OriginatedView = tuple[Mapping[str, Any], BlockOrigin]
"""A view and its origin."""


def _cleared(rows: Sequence[Piece], compacted: int) -> frozenset[int]:
    """Return the system messages that were for one user turn only: the model sees them until the next user message.

    Those before the newest compaction, in message ``compacted``, are left out: nothing there has a view.
    https://platform.claude.com/docs/en/api/beta/messages/create
    """
    last_user = max((at for at, row in enumerate(rows) if row.value.get("role") == "user"), default=-1)
    return frozenset(
        at
        for at, row in enumerate(rows[:last_user])
        if at > compacted
        and row.value.get("role") == "system"
        and row.value.get("clear_at") == "next_user_message"
        and not row.value.get("output_config")
        and _has_only_texts(row.value.get("content"))
    )


def _has_only_texts(content: Any) -> bool:
    return isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content)
    )


def _views(
    system: Any, body_messages: Sequence[BodyMessage], compacted: tuple[int, int], cleared: Container[int]
) -> tuple[tuple[Message, ...], tuple[BlockOrigin, ...]]:
    """Return all views in order with their origins. Cleared messages, and those before the newest compaction, have none."""
    found: list[OriginatedView] = []
    if system:
        found.append(({"role": "system", "content": system}, BlockOrigin(-1, None)))
    start, block = compacted
    last_question = max((at for at, message in enumerate(body_messages) if _is_question(message)), default=-1)
    server_calls: set[str] = set()
    for at, message in enumerate(body_messages):
        if at < start or at in cleared:
            continue
        if at == start:
            found.append(_compaction(at, block, message))
        first_block = block + 1 if at == start else 0
        found += _views_of(at, message, first_block, server_calls, in_current_turn=at > last_question)
    found = _with_continues(found, body_messages)
    views = tuple(view(number, shown) for number, (shown, _) in enumerate(found))
    return views, tuple(origin for _, origin in found)


def _with_continues(found: list[OriginatedView], body_messages: Sequence[BodyMessage]) -> list[OriginatedView]:
    """Mark each view of an answer that cannot stand without an earlier one: one of the same message, or one with the call of a server's
    tool, if the marked one has the tool's result, or a call that the tool itself made.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling
    """
    callers: dict[str, int] = {}
    first_views: dict[int, int] = {}
    marked: list[OriginatedView] = []
    for number, (shown, origin) in enumerate(found):
        needed: list[int] = []
        if is_answer := shown["role"] != "system" and body_messages[origin.at].role == "assistant":
            needed.append(first_views.setdefault(origin.at, number))
        for n in origin.blocks or () if is_answer else ():
            block = body_messages[origin.at].blocks[n]
            if block.type in SERVER_CALLS:
                callers[str(block.value.get("id"))] = number
            elif callers.get(_server_call_id(block), number) < number:
                needed.append(callers[_server_call_id(block)])
        before = number - min(needed, default=number)
        marked.append(({**shown, CONTINUES: before} if before else shown, origin))
    return marked


def _server_call_id(block: Piece) -> str:
    """Return the id of the server's call whose result a block is, or whose tool made the block's call. Empty for any other
    block."""
    caller = block.value.get("caller")
    call_id = block.value.get("tool_use_id", caller.get("tool_id") if isinstance(caller, dict) else None)
    return call_id if isinstance(call_id, str) else ""


def _newest_compaction(body_messages: Sequence[BodyMessage]) -> tuple[int, int]:
    """Return the message and the block of the newest compaction; (-1, -1) without one."""
    positions = (
        (at, n)
        for at, message in enumerate(body_messages)
        for n, block in enumerate(message.blocks)
        if block.type == "compaction" and not _has_failed(block)
    )
    return max(positions, default=(-1, -1))


def _has_failed(compaction: Piece) -> bool:
    """Return whether a compaction has failed: the API takes it for nothing.

    https://platform.claude.com/docs/en/build-with-claude/compaction
    """
    return not compaction.value.get("content") and not compaction.value.get("encrypted_content")


def _compaction(at: int, block: int, message: BodyMessage) -> OriginatedView:
    return {"role": "system", "content": [opaque(message.blocks[block].value)]}, BlockOrigin(at, (block,))


def _is_question(message: BodyMessage) -> bool:
    """Return whether a message is a question of the user, and not only results of a tool loop."""
    return message.role == "user" and (
        message.content is not None or not _results(message) or bool(_user_blocks(message, 0))
    )


def _results(message: BodyMessage) -> list[int]:
    return [n for n, block in enumerate(message.blocks) if block.type == "tool_result"]


def _user_blocks(message: BodyMessage, first: int) -> list[int]:
    """Return the blocks of the user's words, without blocks that a program put after tool results."""
    rest = [n for n, block in enumerate(message.blocks) if n >= first and block.type != "tool_result"]
    texts = [message.blocks[n].value.get("text") for n in rest]
    reminders = all(isinstance(text, str) and text.lstrip().startswith(REMINDER) for text in texts)
    return [] if _results(message) and reminders else rest


def _views_of(
    at: int, message: BodyMessage, first: int, server_calls: set[str], *, in_current_turn: bool
) -> Iterator[OriginatedView]:
    """Return the views of one message, from a block on. ``server_calls`` are the ids of the server's calls so far; those of this message
    are added."""
    if message.content is not None:
        # As a part, so that text placed before it is a separate block, which can carry a cache mark.
        content = texts_in(message.content, "text") if message.role == "user" else message.content
        yield {"role": message.role, "content": content}, BlockOrigin(at, None)
    elif message.role == "user":
        yield from _user_views(at, message, first)
    elif message.role == "assistant":
        yield from _answer_views(at, message, first, server_calls, in_current_turn=in_current_turn)
    elif numbers := tuple(range(first, len(message.blocks))):
        blocks = [message.blocks[n] for n in numbers]
        yield {"role": message.role, "content": _values(blocks)}, BlockOrigin(at, numbers)


def _answer_views(
    at: int, message: BodyMessage, first: int, server_calls: set[str], *, in_current_turn: bool
) -> Iterator[OriginatedView]:
    """Return the views of an answer: one for each result of a server's tool, and one for the blocks up to it."""
    group: list[int] = []
    for n, block in enumerate(message.blocks[first:], first):
        if block.type in hosted.BLOCKS and _server_call_id(block) in server_calls:
            if group:
                yield _assistant(at, message, group, in_current_turn=in_current_turn)
                group = []
            yield _server_result(block), BlockOrigin(at, (n,))
            continue
        group.append(n)
        if block.type in SERVER_CALLS:
            server_calls.add(str(block.value.get("id")))
    if group:
        yield _assistant(at, message, group, in_current_turn=in_current_turn)


def _server_result(block: Piece) -> dict[str, Any]:
    """Return the result of a server's tool as a message."""
    content = hosted.parts(block.value, hosted.BLOCKS[block.type], is_in_body=block.type in IN_BODY)
    return {"role": "tool", "tool_call_id": _server_call_id(block), "content": content}


def _user_views(at: int, message: BodyMessage, first: int) -> Iterator[OriginatedView]:
    results, words = [n for n in _results(message) if n >= first], _user_blocks(message, first)
    reminders = [n for n in range(first, len(message.blocks)) if n not in results and n not in words]
    for n in results:
        block = message.blocks[n].value
        content = block.get("content", "")
        covered: tuple[int, ...] = (n,)
        if n == results[-1] and reminders:
            content = [*texts_in(content, "text"), *(opaque(message.blocks[r].value) for r in reminders)]
            covered = (n, *reminders)
        yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}, BlockOrigin(at, covered)
    if words or not results:
        yield {"role": "user", "content": _values([message.blocks[n] for n in words])}, BlockOrigin(at, tuple(words))


def _values(blocks: Sequence[Piece]) -> list[Mapping[str, Any]]:
    """Return blocks as content parts: texts and media unchanged, anything else as a part that is never cut."""
    return [
        block.value if _is_plain(block) else opaque(block.value, is_in_body=block.type in IN_BODY) for block in blocks
    ]


def _is_plain(block: Piece) -> bool:
    return block.type in MEDIA or (block.type == "text" and isinstance(block.value.get("text"), str))


def _assistant(at: int, given: BodyMessage, numbers: Sequence[int], *, in_current_turn: bool) -> OriginatedView:
    """Return blocks of an answer as a message: older thinking as reasoning, which may be dropped; that of the current tool loop as
    parts, which stay."""
    message: dict[str, Any] = {"role": "assistant"}
    blocks = [given.blocks[n] for n in numbers]
    thinking = [block for block in blocks if block.type in THINKING]
    if thinking and not in_current_turn:
        message["reasoning"] = "\n".join(str(block.value.get("thinking") or "[redacted]") for block in thinking)
    parts: list[Mapping[str, Any]] = []
    calls: list[Mapping[str, Any]] = []
    for block in blocks:
        if block.type in THINKING:
            if in_current_turn:
                parts.append(opaque(block.value))
        elif block.type == "tool_use":
            calls.append(_call(block))
        elif block.type in SERVER_CALLS:
            calls.append(hosted.custom_call(block.value.get("id"), block.value.get("name"), block.value.get("input")))
        else:
            parts += _values([block])
    if parts:
        message["content"] = parts
    if calls:
        message["tool_calls"] = calls
    return message, BlockOrigin(at, tuple(numbers))


_LONG_NUMBER: Final = re.compile(rb"[0-9.]{17}")
"""Digits that may be a number of more precision than a float has."""


def _call(block: Piece) -> dict[str, Any]:
    value = block.value
    arguments = dumps(value.get("input", {})).decode()
    if _LONG_NUMBER.search(block.raw) and (inside := members(block.raw)) and "input" in inside:
        with suppress(orjson.JSONDecodeError, UnicodeDecodeError, TypeError):
            arguments = exact_json.dumps(exact_json.loads(bytes(inside["input"]).decode()))
    return {"id": value.get("id"), "type": "function", "function": {"name": value.get("name"), "arguments": arguments}}


_CHOICES: Final = {"any": "required", "auto": "auto", "none": "none"}


def _translated_tools(head: Mapping[str, Any]) -> dict[str, Any]:
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
