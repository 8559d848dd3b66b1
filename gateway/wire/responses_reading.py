"""Read a body of the OpenAI Responses format as views of its items.

The assistant's items up to the next output are one view: its reasoning, its message and its calls are kept or folded
together, so reasoning never loses the item that follows it. An item in which a tool of the provider has its result is two views:
the call is shown in the assistant's, and the result, which writes the item, after it (`gateway.wire.hosted`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from gateway.wire import hosted, piecewise
from gateway.wire.compaction import TRIGGER, opened
from gateway.wire.format import Format
from gateway.wire.memory import Memory
from gateway.wire.message import CONTINUES, LATE, Message, dumps
from gateway.wire.raw_json import members, readable
from gateway.wire.views import IMAGE_TOKENS, Opaque, Piece, ViewedRequest, opaque, pieces, texts_in, view

STORED_MEMBERS: Final = ("previous_response_id", "conversation")
"""Members that name messages which only the server has."""
REFERENCE: Final = "item_reference"
PINNED_ITEMS: Final = frozenset(
    {"compaction", "compaction_summary", REFERENCE, "mcp_list_tools", "additional_tools", "configuration_update", TRIGGER}
)  # fmt: skip
"""Items that hold for the rest of the conversation."""
SHELL_OUTPUT: Final = "shell_call_output"
SHELL_TEXTS: Final = ("stdout", "stderr")
"""The texts in each chunk of a `SHELL_OUTPUT`."""
ARGUMENT_MEMBERS: Final = ("input", "arguments", "action", "actions", "operation")
"""Members in which different kinds of calls have their arguments."""
TEXT_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "apply_patch_call_output"}
)
"""Outputs that may be a text."""


class ItemOrigin(msgspec.Struct, frozen=True):
    """The origin of a view: the items that it writes. These are none for ``instructions``, for an ``input`` that is one text, and for a
    call that is written with its result."""

    items: tuple[int, ...] = ()
    member: str = ""


class ResponsesRequest(ViewedRequest, frozen=True, kw_only=True, eq=False):
    """A Responses body: its bytes, its items, and their views."""

    items: tuple[Piece, ...]
    origins: tuple[ItemOrigin, ...]
    continues: bool

    @property
    def message_count(self) -> int:
        return len(self.items)

    @property
    def output_limits(self) -> tuple[int, ...]:
        return self.output_limits_named("max_output_tokens")

    @property
    def refers_elsewhere(self) -> bool:
        return self.continues or bool(self.head.get("prompt"))


def read(raw: bytes, memory: Memory, made_by: Format) -> ResponsesRequest | None:
    """Read a body; return None if it is no body of this format."""
    repaired, found = readable(raw)
    if (raw := opened(repaired)) is not repaired:
        found = members(raw)
    if not found or "input" not in found:
        return None
    try:
        head = {name: piecewise.loads(value) for name, value in found.items() if name != "input"}
        text = piecewise.loads(found["input"]) if found["input"][:1] == b'"' else None
    except orjson.JSONDecodeError:
        return None
    items = [] if text is not None else pieces(found["input"])
    if items is None or not all(isinstance(item_type(item.value), str) for item in items):
        return None
    views, origins = _views(head.get("instructions"), text, items)
    return ResponsesRequest(
        format=made_by,
        raw=raw,
        head=head,
        views=views,
        translated_head={
            **{name: value for name, value in head.items() if name != "instructions"},
            **_translated_tools(head),
        },
        memory=memory,
        rewritten=raw is not repaired,
        items=tuple(items),
        origins=origins,
        continues=any(map(head.get, STORED_MEMBERS)) or any(item_type(item.value) == REFERENCE for item in items),
    )


def item_type(item: Mapping[str, Any]) -> Any:
    """Return an item's type; a message and a reference may leave it out."""
    kind = item.get("type")
    if kind is None:
        return "message" if "role" in item else REFERENCE if isinstance(item.get("id"), str) else None
    return kind


OriginatedView = tuple[Mapping[str, Any], ItemOrigin]
"""A view and its origin."""


def _with_late(found: list[OriginatedView], items: Sequence[Piece]) -> list[OriginatedView]:
    """Mark the outputs of calls that the model need not wait for: `async` in
    https://platform.openai.com/docs/api-reference/responses/create."""
    asynchronous = {call_id(item.value) for item in items if item.value.get("async") is True}
    if not asynchronous:
        return found
    return [
        ({**shown, LATE: True}, origin) if shown.get("tool_call_id") in asynchronous else (shown, origin)
        for shown, origin in found
    ]


def _views(
    instructions: Any, text: str | None, items: Sequence[Piece]
) -> tuple[tuple[Message, ...], tuple[ItemOrigin, ...]]:
    found: list[OriginatedView] = []
    if isinstance(instructions, str) and instructions:
        found.append(({"role": "system", "content": instructions}, ItemOrigin(member="instructions")))
    if text is not None:
        found.append(({"role": "user", "content": texts_in(text, "input_text")}, ItemOrigin(member="input")))
    found += _views_of(items)
    found = _with_late(_with_continues(found, items), items)
    views = tuple(view(number, message) for number, (message, _) in enumerate(found))
    return views, tuple(origin for _, origin in found)


def _with_continues(found: list[OriginatedView], items: Sequence[Piece]) -> list[OriginatedView]:
    """Mark each view with a call that a program in an earlier view made, or that the user approved in one.

    https://platform.openai.com/docs/api-reference/responses/create
    """
    earlier: dict[Any, int] = {}
    marked: list[OriginatedView] = []
    for number, (shown, origin) in enumerate(found):
        needed: list[int] = []
        for item in (items[at].value for at in origin.items):
            kind, caller = item_type(item), item.get("caller")
            if kind in ("program", "mcp_approval_request"):
                earlier[call_id(item)] = number
                continue
            name = item.get("approval_request_id") if kind == "mcp_call" else None
            name = caller.get("caller_id") if isinstance(caller, dict) else name
            if isinstance(name, str):
                needed.append(earlier.get(name, number))
        before = max(number - min(needed, default=number), shown.get(CONTINUES, 0))
        marked.append(({**shown, CONTINUES: before} if before else shown, origin))
    return marked


def _views_of(items: Sequence[Piece]) -> Iterator[OriginatedView]:
    """Return the views of items in order: the assistant's items up to the next output, message or compaction are one
    view. A tool of the provider ends a view, and the next one continues it."""
    group: list[int] = []
    only_reasoning = True
    before = 0
    for at, item in enumerate(items):
        kind = str(item_type(item.value))
        part = _role_of(kind, item.value)
        # Reasoning and the item after it stay together. A message or new reasoning after other items begins a view of its own.
        if part != "assistant" or (kind in ("reasoning", "message") and not only_reasoning):
            if group:
                yield _assistant(items, group, before), ItemOrigin(tuple(group))
            group, only_reasoning, before = [], True, 0
        if part == "assistant":
            group.append(at)
            only_reasoning = only_reasoning and kind == "reasoning"
            if kind in hosted.ITEMS:
                yield _assistant(items, group, before), ItemOrigin(tuple(group[:-1]))
                yield {**hosted.result(kind, item.value, call_id(item.value)), CONTINUES: 1}, ItemOrigin((at,))
                group, before = [], before + 2
        else:
            yield _single(part, item.value), ItemOrigin((at,))
    if group:
        yield _assistant(items, group, before), ItemOrigin(tuple(group))


def _role_of(kind: str, item: Mapping[str, Any]) -> str:
    """Return the role of the message that shows an item."""
    if kind == "message":
        role = item.get("role")
        return role if isinstance(role, str) else "user"
    if kind in PINNED_ITEMS:
        return "system"
    # An output may name its tool instead of a call.
    is_output = kind.endswith(("_output", "_response")) and (call_id(item) != "" or isinstance(item.get("name"), str))
    return "tool" if is_output else "assistant"


def call_id(item: Mapping[str, Any]) -> str:
    """Return the id that connects a call and its output."""
    for name in ("call_id", "approval_request_id", "id"):
        value = item.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _single(role: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message or an output as a view."""
    if role == "tool":
        return {"role": "tool", "tool_call_id": call_id(item), "content": _output(item)}
    if item_type(item) != "message":
        return {"role": role, "content": [opaque(item, is_in_body=item_type(item) != REFERENCE)]}
    content = item.get("content")
    if role == "user" and isinstance(content, str):
        return {"role": role, "content": texts_in(content, "input_text")}
    return {"role": role, "content": content if isinstance(content, (str, list)) else ""}


def _output(item: Mapping[str, Any]) -> Any:
    output = item.get("output")
    if chunks := shell_chunks(item):
        return list(_shell_parts(chunks))
    if isinstance(output, (str, list)):
        return output
    if isinstance(output, dict) and "image_url" in output:
        return [Opaque({"type": str(output.get("type"))}, extra_tokens=IMAGE_TOKENS, is_in_body=False)]
    if isinstance(item.get("result"), str):
        return [Opaque({"type": str(item_type(item)), "content": item["result"]})]
    return [opaque(item)]


def shell_chunks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks of a shell's output; nothing for any other item."""
    chunks = item.get("output") if item_type(item) == SHELL_OUTPUT else None
    return chunks if isinstance(chunks, list) and all(isinstance(chunk, dict) for chunk in chunks) else []


def _shell_parts(chunks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Return chunks as parts: texts that may be cut and know their place, and the rest, such as an exit code."""
    for number, chunk in enumerate(chunks):
        texts = [name for name in SHELL_TEXTS if isinstance(chunk.get(name), str)]
        yield from ({"type": name, "chunk": number, "text": chunk[name]} for name in texts)
        yield opaque({name: value for name, value in chunk.items() if name not in texts})


def _assistant(items: Sequence[Piece], group: Sequence[int], before: int) -> dict[str, Any]:
    """Return reasoning, a message and calls as one assistant message, which continues the view ``before`` views earlier, if any."""
    parts: list[Any] = []
    calls: list[Mapping[str, Any]] = []
    message: dict[str, Any] = {"role": "assistant", CONTINUES: before} if before else {"role": "assistant"}
    for at in group:
        item = items[at].value
        kind = str(item_type(item))
        if kind == "message":
            content = item.get("content")
            if isinstance(content, str) and len(group) == 1:
                return {"role": "assistant", "content": content}
            parts += (
                texts_in(content, "text") if isinstance(content, str) else content if isinstance(content, list) else []
            )
        elif call := call_of(item):
            calls.append(call)
        else:
            parts.append(opaque(item))
    if parts:
        message["content"] = parts
    if calls:
        message["tool_calls"] = calls
    return message


def call_of(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a call in chat-completions form, None for any other item; only a function's arguments may be cut."""
    kind = str(item_type(item))
    name = item.get("name")
    if kind in hosted.ITEMS:
        return hosted.call(kind, item, call_id(item))
    if kind == "function_call" and isinstance(item.get("arguments"), str):
        function = {"name": name, "arguments": item["arguments"]}
        return {"id": call_id(item), "type": "function", "function": function}
    if kind == "mcp_approval_request" or (kind.endswith("_call") and isinstance(item.get("call_id"), str)):
        given = next((item[name] for name in ARGUMENT_MEMBERS if name in item), "")
        text = given if isinstance(given, str) else dumps(given).decode()
        custom = {"name": name if isinstance(name, str) else kind.removesuffix("_call"), "input": text}
        return {"id": call_id(item), "type": "custom", "custom": custom}
    if kind == "program" and isinstance(item.get("code"), str):
        return {"id": call_id(item), "type": "custom", "custom": {"name": kind, "input": item["code"]}}
    if kind == "local_shell_call":
        custom = {"name": "local_shell", "input": dumps(item.get("action")).decode()}
        return {"id": call_id(item), "type": "custom", "custom": custom}
    return None


def _translated_tools(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return tools and the answer's schema in chat-completions form."""
    shaped: dict[str, Any] = {}
    tools = head.get("tools")
    if isinstance(tools, list):
        shaped["tools"] = [_tool(tool) for tool in tools]
    text = head.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and "schema" in form:
        shaped["response_format"] = {"type": "json_schema", "json_schema": form}
    return shaped


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    described = {name: tool[name] for name in ("name", "description", "parameters") if name in tool}
    return {"type": "function", "function": described}
