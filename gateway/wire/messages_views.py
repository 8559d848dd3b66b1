"""The views of a Messages body: its messages in the shape of chat completions, each with its origin.

A user message with tool results becomes several views: one for each result, and one for the user's words. An answer with results of the
server's tools (`gateway.wire.hosted`) becomes several views, too: one for each result, and one for the blocks before it. Blocks that the core must not touch
(compactions, the thinking of the current tool loop) are `Opaque` parts.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from gateway.wire import exact_json, hosted
from gateway.wire.message import CONTINUES, Message, dumps
from gateway.wire.messages_request import SERVER_CALLS, THINKING, BlockOrigin, BodyMessage
from gateway.wire.raw_json import members
from gateway.wire.views import Piece, opaque, texts_in, view

MEDIA: Final = frozenset({"image", "document"})
IN_BODY: Final = frozenset(
    {"compaction", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"}
)
"""Blocks besides texts, calls and thinking whose whole content is in the body."""
REMINDER: Final = "<system-reminder>"
"""Claude Code puts such blocks after tool results (https://code.claude.com/docs). They are no question of the user."""


OriginatedView = tuple[Mapping[str, Any], BlockOrigin]
"""A view and its origin."""


def views(
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
