"""The OpenAI Responses format: read a request body as views of its items, and write edits into it.

The assistant's items up to the next output are one view: its reasoning, its message and its calls stand or are folded
together, so reasoning never loses the item that follows it. An unchanged item keeps its bytes, its id and its status.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gateway.wire.compaction import TRIGGER, opened
from gateway.wire.format import Edits, Format
from gateway.wire.memory import Memory
from gateway.wire.message import Message, dumps, opening_of
from gateway.wire.splice import splice
from gateway.wire.views import (
    Opaque,
    Piece,
    array,
    changed_arguments,
    event_type,
    members,
    opaque,
    origin_of,
    pieces,
    texts_in,
    view,
)

PATH: Final = "/v1/responses"
ELSEWHERE: Final = ("previous_response_id", "conversation", "prompt")
"""Members that add text to the prompt from outside the body."""
PINNED: Final = frozenset({"system", "developer"})
UNSEEN: Final = frozenset({"item_reference", "web_search_call", "code_interpreter_call", "image_generation_call"})
"""Items that represent text outside the body."""
SCREENSHOT: Final = 1600
"""Tokens of a computer tool's screenshot, at most: https://platform.openai.com/docs/guides/images-vision"""
TEXT_OF: Final = {"mcp_call": "output"}
"""Assistant items that contain their result as one text."""


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a view: its items; none for ``instructions`` and for an ``input`` that is one text."""

    items: tuple[int, ...] = ()
    member: str = ""


@dataclass(frozen=True)
class ResponsesRequest:
    """A Responses body: its bytes, its items, and their views."""

    raw: bytes
    items: tuple[Piece, ...]
    head: Mapping[str, Any]
    """The members besides the input."""
    views: tuple[Message, ...]
    sources: tuple[Source, ...]
    shaped: Mapping[str, Any] = field(repr=False)
    """The members with their chat-completions names."""
    memory: Memory = field(repr=False, compare=False)
    rewritten: bool = False
    """Whether the body came otherwise: with compactions of ours, which no upstream knows."""

    @property
    def format(self) -> Format:
        return RESPONSES

    @property
    def model(self) -> str:
        model = self.head.get("model")
        return model if isinstance(model, str) else ""

    @property
    def message_count(self) -> int:
        return len(self.items)

    @property
    def stream(self) -> bool:
        return self.head.get("stream") is True

    @property
    def output_limits(self) -> tuple[int, ...]:
        limit = self.head.get("max_output_tokens")
        return (limit,) if isinstance(limit, int) and not isinstance(limit, bool) else ()

    @property
    def refers_elsewhere(self) -> bool:
        return any(self.head.get(name) for name in ELSEWHERE) or any(
            item.type == "item_reference" for item in self.items
        )

    @property
    def outline(self) -> tuple[Message, ...]:
        return self.views

    @property
    def opening(self) -> str:
        return opening_of(self.messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.views

    @property
    def body(self) -> Mapping[str, Any]:
        return self.shaped


def parse(raw: bytes, memory: Memory | None = None) -> ResponsesRequest | None:
    """Parse a body; return None when it cannot be decided about."""
    given, raw = raw, opened(raw)
    found = members(raw)
    if not found or "input" not in found:
        return None
    try:
        head = {name: orjson.loads(value) for name, value in found.items() if name != "input"}
        text = orjson.loads(found["input"]) if found["input"][:1] == b'"' else None
    except orjson.JSONDecodeError:
        return None
    items = [] if text is not None else pieces(found["input"])
    if items is None or not all(isinstance(_kind(item.value), str) for item in items):
        return None
    views, sources = _views(head.get("instructions"), text, items)
    shaped = {**{name: value for name, value in head.items() if name != "instructions"}, **_shaped(head)}
    return ResponsesRequest(
        raw,
        tuple(items),
        head,
        views,
        sources,
        {**shaped, "messages": list(views)},
        memory or Memory(),
        raw is not given,
    )


def _kind(item: Mapping[str, Any]) -> Any:
    """Return an item's type; a message may leave it out."""
    return item.get("type", "message" if "role" in item else None)


Found = tuple[Mapping[str, Any], Source]


def _views(
    instructions: Any, text: str | None, items: Sequence[Piece]
) -> tuple[tuple[Message, ...], tuple[Source, ...]]:
    found: list[Found] = []
    if isinstance(instructions, str) and instructions:
        found.append(({"role": "system", "content": instructions}, Source(member="instructions")))
    if text is not None:
        found.append(({"role": "user", "content": texts_in(text, "input_text")}, Source(member="input")))
    found += _views_of(items)
    views = tuple(view(number, message) for number, (message, _) in enumerate(found))
    return views, tuple(source for _, source in found)


def _views_of(items: Sequence[Piece]) -> Iterator[Found]:
    """Return the views of items in order: the assistant's items up to the next output, message or compaction are one
    view."""
    group: list[int] = []
    only_reasoning = True
    for at, item in enumerate(items):
        kind = str(_kind(item.value))
        part = _part_of(kind, item.value)
        # An item that follows reasoning stays with it; other messages and new reasoning may go without what is in front of them.
        if group and (part != "assistant" or (kind in ("reasoning", "message") and not only_reasoning)):
            yield _grouped(items, group)
            group, only_reasoning = [], True
        if part == "assistant":
            group.append(at)
            only_reasoning = only_reasoning and kind == "reasoning"
        else:
            yield _single(part, item.value), Source((at,))
    if group:
        yield _grouped(items, group)


def _part_of(kind: str, item: Mapping[str, Any]) -> str:
    """Return the role of an item in the conversation."""
    if kind == "message":
        role = item.get("role")
        return role if isinstance(role, str) else "user"
    if kind in ("compaction", "compaction_summary", "item_reference", "mcp_list_tools", "additional_tools", TRIGGER):
        return "system"
    answers = kind.endswith(("_output", "_response")) and _call_id(item) != ""
    return "tool" if answers else "assistant"


def _call_id(item: Mapping[str, Any]) -> str:
    """Return the id that connects a call and its output."""
    for name in ("call_id", "approval_request_id", "id"):
        value = item.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _single(role: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message or an output as a view."""
    if role == "tool":
        return {"role": "tool", "tool_call_id": _call_id(item), "content": _output(item)}
    if _kind(item) != "message":
        return {"role": role, "content": [opaque(item, stands_here=str(_kind(item)) not in UNSEEN)]}
    content = item.get("content")
    if role == "user" and isinstance(content, str):
        return {"role": role, "content": texts_in(content, "input_text")}
    return {"role": role, "content": content if isinstance(content, (str, list)) else ""}


def _output(item: Mapping[str, Any]) -> Any:
    output = item.get("output")
    if isinstance(output, (str, list)):
        return output
    if isinstance(output, dict) and "image_url" in output:
        return [Opaque({"type": str(output.get("type"))}, extra=SCREENSHOT, stands_here=False)]
    return [opaque(item)]


def _grouped(items: Sequence[Piece], group: Sequence[int]) -> Found:
    """Return reasoning, a message and calls as one assistant message."""
    parts: list[Any] = []
    calls: list[Mapping[str, Any]] = []
    message: dict[str, Any] = {"role": "assistant"}
    for at in group:
        item = items[at].value
        kind = str(_kind(item))
        if kind == "message":
            content = item.get("content")
            if isinstance(content, str) and len(group) == 1:
                return {"role": "assistant", "content": content}, Source(tuple(group))
            parts += texts_in(content, "text") if isinstance(content, str) else content or []
        elif call := _call(kind, item):
            calls.append(call)
        elif isinstance(item.get(TEXT_OF.get(kind, "")), str):
            parts += [opaque({k: v for k, v in item.items() if k != TEXT_OF[kind]}), _text_part(kind, item)]
        else:
            parts.append(opaque(item, stands_here=kind not in UNSEEN))
    if parts:
        message["content"] = parts
    if calls:
        message["tool_calls"] = calls
    return message, Source(tuple(group))


def _text_part(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in an item as a text that may be cut; it knows its item."""
    return {"type": kind, "id": item.get("id"), "text": item[TEXT_OF[kind]]}


def _call(kind: str, item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a call to the client in chat-completions form; only a function's arguments may be cut."""
    name = item.get("name")
    if kind == "function_call" and isinstance(item.get("arguments"), str):
        function = {"name": name, "arguments": item["arguments"]}
        return {"id": _call_id(item), "type": "function", "function": function}
    if kind == "mcp_approval_request" or (kind.endswith("_call") and isinstance(item.get("call_id"), str)):
        given = item.get("input", item.get("arguments", item.get("action", item.get("operation", ""))))
        text = given if isinstance(given, str) else dumps(given).decode()
        custom = {"name": name if isinstance(name, str) else kind.removesuffix("_call"), "input": text}
        return {"id": _call_id(item), "type": "custom", "custom": custom}
    if kind == "local_shell_call":
        custom = {"name": "local_shell", "input": dumps(item.get("action")).decode()}
        return {"id": _call_id(item), "type": "custom", "custom": custom}
    return None


def _shaped(head: Mapping[str, Any]) -> dict[str, Any]:
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


def encode(request: ResponsesRequest, edits: Edits) -> bytes:
    """Write edits into a body; unchanged parts keep their bytes."""
    changes: dict[str, Any] = {}
    if edits.model is not None and edits.model != request.model:
        changes["model"] = edits.model
    if edits.output is not None and any(limit > edits.output for limit in request.output_limits):
        changes["max_output_tokens"] = edits.output
    if edits.messages is not None and not _same(edits.messages, request.views):
        changes |= _rewritten(request, edits.messages)
    return splice(request.raw, changes) if changes else request.raw


def _same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _rewritten(request: ResponsesRequest, messages: Sequence[Message]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    rows: list[bytes] = []
    for message in messages:
        number = origin_of(message)
        if number is None or number >= len(request.views):
            rows.append(_new(message))
            continue
        source, before = request.sources[number], request.views[number]
        if source.member == "instructions":
            if message is not before:
                changes["instructions"] = "\n\n".join(part["text"] for part in texts_in(message["content"], "text"))
        elif source.member:
            rows.append(_new(message))
        elif message is before:
            rows += [request.items[at].raw for at in source.items]
        else:
            rows += _changed(request, source, before, message)
    return {**changes, "input": array(rows)}


def _new(message: Message) -> bytes:
    """Return the item of a new message."""
    role = str(message.get("role"))
    kind = "output_text" if role == "assistant" else "input_text"
    return dumps({"type": "message", "role": role, "content": texts_in(message.get("content"), kind)})


def _changed(request: ResponsesRequest, source: Source, before: Message, message: Message) -> Iterator[bytes]:
    """Return the items of a changed view; unchanged parts keep their bytes."""
    arguments = dict(changed_arguments(before, message))
    for at in source.items:
        item = request.items[at]
        kind = str(_kind(item.value))
        if kind == "message":
            yield _message(item, message)
        elif message.get("role") == "tool":
            yield splice(item.raw, {"output": _content(message, "input_text")})
        elif kind == "function_call" and _call_id(item.value) in arguments:
            yield splice(item.raw, {"arguments": arguments[_call_id(item.value)]})
        elif kind in TEXT_OF:
            yield _with_result(item, kind, message)
        else:
            yield item.raw


def _message(item: Piece, message: Message) -> bytes:
    content = _content(message, "output_text" if item.value.get("role") == "assistant" else "input_text")
    return splice(item.raw, {"content": content}) if content and content != item.value.get("content") else item.raw


def _content(message: Message, kind: str) -> Any:
    """Return the content of a changed view, without the parts that belong to other items."""
    content = message.get("content")
    if not isinstance(content, list):
        return content
    own = [part for part in content if type(part) is not Opaque and part.get("type") not in TEXT_OF]
    return texts_in(own, kind)


def _with_result(item: Piece, kind: str, message: Message) -> bytes:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    mine = [part for part in parts if part.get("type") == kind and part.get("id") == item.value.get("id")]
    text = mine[0].get("text") if mine else None
    if isinstance(text, str) and text != item.value[TEXT_OF[kind]]:
        return splice(item.raw, {TEXT_OF[kind]: text})
    return item.raw


def refusal(window: int, prompt: int, reserve: int, largest: str) -> bytes:
    """Return our own 400 with the code that OpenAI's SDKs, Codex and langchain recognise."""
    message = (
        f"context_length_exceeded: Your input exceeds the context window of this model, which is {window} tokens. The smallest "
        f"form of this request that keeps its meaning still needs about {prompt} tokens, with {reserve} more reserved for the "
        f"answer. Largest parts: {largest}. Shorten these, or configure a model with a larger window."
    )
    return error(message, "context_length_exceeded", "invalid_request_error", "input")


def error(message: str, code: str, kind: str, param: str | None) -> bytes:
    """Return an error in the shape that OpenAI documents: https://platform.openai.com/docs/guides/error-codes."""
    return dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


PREAMBLES: Final = frozenset({"response.created", "response.in_progress", "response.queued", "keepalive"})


def is_preamble(data: bytes) -> bool:
    """Return whether an event comes before any content of the answer."""
    return event_type(data) in PREAMBLES


RESPONSES: Final = Format(
    name="responses",
    path=PATH,
    parse=parse,
    skim=parse,
    encode=encode,
    refusal=refusal,
    error=error,
    is_preamble=is_preamble,
)
