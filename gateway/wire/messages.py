"""The Anthropic Messages format: read a request body as views of its messages, and write edits into it.

One user message with tool results becomes several views: one per result, and one for the user's words. Encoding joins
them again. An unchanged message keeps its bytes; in a changed one, each unchanged block keeps its own. Blocks that the
core must not touch (server tools with their results, compactions, the thinking of the current tool loop) are `Opaque`
parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gateway.wire import cache_marks
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

PATH: Final = "/v1/messages"
THINKING: Final = frozenset({"thinking", "redacted_thinking"})
MEDIA: Final = frozenset({"image", "document"})
LOCAL: Final = frozenset({"compaction", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"})
"""Blocks besides texts, calls and thinking whose whole content is in the body."""
REMINDER: Final = "<system-reminder>"
"""Claude Code puts such blocks behind tool results (https://code.claude.com/docs): they are not a question."""
LEAST_THINKING: Final = 1024
"""Tokens; the smallest ``thinking.budget_tokens``: https://platform.claude.com/docs/en/build-with-claude/extended-thinking"""
THINKING_SHARE: Final = 0.75
"""Share of a lowered ``max_tokens`` for thinking: the API requires its budget below the limit, and an answer needs
room."""


@dataclass(frozen=True, slots=True)
class Source:
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


@dataclass(frozen=True)
class MessagesRequest:
    """A Messages body: its bytes, its messages, and their views."""

    raw: bytes
    given: tuple[Given, ...]
    head: Mapping[str, Any]
    """The members besides the messages."""
    views: tuple[Message, ...]
    sources: tuple[Source, ...]
    compacted: tuple[int, int]
    """The message and the block of the newest compaction; (-1, -1) where there is none."""
    shaped: Mapping[str, Any] = field(repr=False)
    """The members with their chat-completions names."""
    memory: Memory = field(repr=False, compare=False)

    @property
    def format(self) -> Format:
        return MESSAGES

    @property
    def model(self) -> str:
        model = self.head.get("model")
        return model if isinstance(model, str) else ""

    @property
    def message_count(self) -> int:
        return len(self.given)

    @property
    def rewritten(self) -> bool:
        return False

    @property
    def stream(self) -> bool:
        return self.head.get("stream") is True

    @property
    def output_limits(self) -> tuple[int, ...]:
        limit = self.head.get("max_tokens")
        return (limit,) if isinstance(limit, int) and not isinstance(limit, bool) else ()

    @property
    def refers_elsewhere(self) -> bool:
        return any(self.head.get(name) for name in ("container", "mcp_servers"))

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


def parse(raw: bytes, memory: Memory | None = None) -> MessagesRequest | None:
    """Parse a body; return None when it cannot be decided about."""
    found = members(raw)
    rows = pieces(found["messages"]) if found and "messages" in found else None
    if not found or not rows:
        return None
    given = [_given(row) for row in rows]
    try:
        head = {name: orjson.loads(value) for name, value in found.items() if name != "messages"}
    except orjson.JSONDecodeError:
        return None
    if None in given:
        return None
    whole = tuple(each for each in given if each is not None)
    compacted = _newest_compaction(whole)
    views, sources = _views(head.get("system"), whole, compacted)
    shaped = {**{name: value for name, value in head.items() if name != "system"}, **_shaped(head)}
    everything = {**shaped, "messages": list(views)}
    return MessagesRequest(raw, whole, head, views, sources, compacted, everything, memory or Memory())


def _given(row: Piece) -> Given | None:
    role, content = row.value.get("role"), row.value.get("content")
    if not isinstance(role, str):
        return None
    if isinstance(content, str):
        return Given(row.raw, role, content)
    inside = members(row.raw)
    blocks = pieces(inside["content"]) if inside and "content" in inside else None
    return None if blocks is None else Given(row.raw, role, None, tuple(blocks))


def _views(
    system: Any, given: Sequence[Given], compacted: tuple[int, int]
) -> tuple[tuple[Message, ...], tuple[Source, ...]]:
    """Return all views in order with their origins. Messages before the newest compaction are not read, so they have
    none."""
    found: list[tuple[Mapping[str, Any], Source]] = []
    if system:
        found.append(({"role": "system", "content": system}, Source(-1, None)))
    start, block = compacted
    running = max((at for at, each in enumerate(given) if _asks(each)), default=-1)
    for at, each in enumerate(given):
        if at < start:
            continue
        if at == start:
            found.append(_compaction(at, block, each))
        found += _views_of(at, each, block + 1 if at == start else 0, running=at > running)
    views = tuple(view(number, message) for number, (message, _) in enumerate(found))
    return views, tuple(source for _, source in found)


def _newest_compaction(given: Sequence[Given]) -> tuple[int, int]:
    """Return the message and the block of the newest compaction; (-1, -1) without one."""
    places = (
        (at, n) for at, each in enumerate(given) for n, block in enumerate(each.blocks) if block.type == "compaction"
    )
    return max(places, default=(-1, -1))


def _compaction(at: int, block: int, each: Given) -> tuple[Mapping[str, Any], Source]:
    return {"role": "system", "content": [opaque(each.blocks[block].value)]}, Source(at, (block,))


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


def _views_of(at: int, each: Given, first: int, *, running: bool) -> Iterator[tuple[Mapping[str, Any], Source]]:
    """Return the views of one message, from a block on."""
    if each.content is not None:
        # As a part, so that text placed before it is a separate block, which can carry a cache mark.
        content = texts_in(each.content, "text") if each.role == "user" else each.content
        yield {"role": each.role, "content": content}, Source(at, None)
    elif each.role == "user":
        yield from _user_views(at, each, first)
    elif numbers := tuple(range(first, len(each.blocks))):
        blocks = [each.blocks[n] for n in numbers]
        message = _assistant(blocks, running=running) if each.role == "assistant" else {"content": _values(blocks)}
        yield {"role": each.role, **message}, Source(at, numbers)


def _user_views(at: int, each: Given, first: int) -> Iterator[tuple[Mapping[str, Any], Source]]:
    results, said = [n for n in _results(each) if n >= first], _said(each, first)
    reminders = [n for n in range(first, len(each.blocks)) if n not in results and n not in said]
    for n in results:
        block = each.blocks[n].value
        content = block.get("content", "")
        covered: tuple[int, ...] = (n,)
        if n == results[-1] and reminders:
            content = [*texts_in(content, "text"), *(opaque(each.blocks[r].value) for r in reminders)]
            covered = (n, *reminders)
        yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}, Source(at, covered)
    if said or not results:
        yield {"role": "user", "content": _values([each.blocks[n] for n in said])}, Source(at, tuple(said))


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
        message["reasoning_content"] = "\n".join(str(block.value.get("thinking") or "[redacted]") for block in thoughts)
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


@dataclass(slots=True)
class _Written:
    """One message to send; ``blocks`` are numbers of blocks in the body, or new ones as bytes."""

    at: int | None
    role: str
    blocks: list[cache_marks.Block]
    raw: bytes | None = None
    """The message's own bytes, if it has some."""
    changed: bool = True


def encode(request: MessagesRequest, edits: Edits) -> bytes:
    """Write edits into a body; unchanged parts keep their bytes."""
    changes: dict[str, Any] = {}
    if edits.model is not None and edits.model != request.model:
        changes["model"] = edits.model
    if edits.output is not None:
        changes |= _lowered(request, edits.output)
    messages = edits.messages or request.views
    if not _same(messages, request.views) or not edits.thinks:
        changes |= _rewritten(request, messages, thinks=edits.thinks)
        if edits.unbound and edits.thinks:
            changes |= _unbound(request, changes)
    return splice(request.raw, changes) if changes else request.raw


def _same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _lowered(request: MessagesRequest, output: int) -> dict[str, Any]:
    """Return a lower output limit, with the thinking budget below it; nothing when impossible."""
    if not request.output_limits or request.output_limits[0] <= output:
        return {}
    thinking = request.head.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or budget < output:
        return {"max_tokens": output}
    lower = max(int(output * THINKING_SHARE), LEAST_THINKING)
    return {"max_tokens": output, "thinking": {**thinking, "budget_tokens": lower}} if lower < output else {}


PREFIX_BINDING: Final = {"prefix_mismatch_behavior": "drop_block"}
BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
"""Lets the API drop thinking that it cannot verify behind a folded conversation:
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation
"""


def _unbound(request: MessagesRequest, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Request that unverifiable thinking is dropped, unless the client chose another behaviour."""
    given = changes.get("thinking", request.head.get("thinking"))
    thinking = given if isinstance(given, dict) else {"type": "adaptive"}
    if thinking.get("type") == "disabled" or "block_binding" in thinking:
        return {}
    return {"thinking": {**thinking, "block_binding": PREFIX_BINDING}}


def _rewritten(request: MessagesRequest, messages: Sequence[Message], *, thinks: bool) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    written = [_unread(request, at) for at in range(max(request.compacted[0], 0))]
    for message in messages:
        number = origin_of(message)
        source = request.sources[number] if number is not None and number < len(request.sources) else None
        if number is None or source is None:
            blocks = [cache_marks.Block(dumps(part), new=True) for part in texts_in(message.get("content"), "text")]
            written.append(_Written(None, _role(message), blocks))
        elif source.at < 0:
            if message is not request.views[number]:
                changes["system"] = message["content"]
        else:
            _join(request, written, source, _blocks(request, number, message), kept=message is request.views[number])
    for each in written:
        if not thinks and any(block.kind in THINKING for block in each.blocks):
            each.blocks = [block for block in each.blocks if block.kind not in THINKING] or [_EMPTY]
            each.changed = True
    _settle(request, written)
    written = _user_first(request, written)
    marks = cache_marks.moved(
        [block for each in written for block in each.blocks],
        [(at, n, block.value) for at, each in enumerate(request.given) for n, block in enumerate(each.blocks)],
        free=cache_marks.MOST_MARKS - cache_marks.count(request.head),
    )
    rows = [_bytes_of(each, marks) for each in written]
    return {**changes, "messages": array([row for row in rows if row])}


def _user_first(request: MessagesRequest, written: list[_Written]) -> list[_Written]:
    """Move the first user message before system messages whose neighbours were folded."""
    if not written or written[0].role == "user" or request.given[0].role != "user":
        return written
    first = next((n for n, each in enumerate(written) if each.role == "user"), 0)
    pinned = all(each.role == "system" for each in written[:first])
    return [written[first], *written[:first], *written[first + 1 :]] if pinned else written


def _role(message: Message) -> str:
    return "assistant" if message.get("role") == "assistant" else "user"


_EMPTY: Final = cache_marks.Block(b'{"type":"text","text":"[thinking removed]"}')
"""Replaces a message that was nothing but thinking."""


def _unread(request: MessagesRequest, at: int) -> _Written:
    """Return a message before the newest compaction, unchanged."""
    each = request.given[at]
    return _Written(at, each.role, _originals(request, at, range(len(each.blocks))), each.raw, changed=False)


def _originals(request: MessagesRequest, at: int, numbers: Sequence[int]) -> list[cache_marks.Block]:
    blocks = request.given[at].blocks
    return [cache_marks.Block(blocks[n].raw, (at, n)) for n in numbers]


def _join(
    request: MessagesRequest, written: list[_Written], source: Source, blocks: list[cache_marks.Block], *, kept: bool
) -> None:
    """Add the edited form of a view to its message."""
    if written and written[-1].at == source.at:
        written[-1].blocks += blocks
        written[-1].changed |= not kept
        return
    given = request.given[source.at]
    start = [n for n in range(len(given.blocks)) if (source.at, n) < request.compacted]
    if start and source.at == request.compacted[0]:
        blocks = [*_originals(request, source.at, start), *blocks]
    written.append(_Written(source.at, given.role, blocks, given.raw, changed=not kept))


def _settle(request: MessagesRequest, written: Sequence[_Written]) -> None:
    """Note for each message whether it is unchanged, with its blocks in their order."""
    for each in written:
        if each.at is None:
            continue
        given = request.given[each.at]
        if given.content is not None:
            continue
        whole = [block.origin for block in each.blocks] == [(each.at, n) for n in range(len(given.blocks))]
        if each.role == "user" and not each.changed and not whole:
            each.blocks.sort(key=lambda block: block.origin or (-1, -1))
            whole = [block.origin for block in each.blocks] == [(each.at, n) for n in range(len(given.blocks))]
        each.changed = each.changed or not whole


def _blocks(request: MessagesRequest, number: int, message: Message) -> list[cache_marks.Block]:
    """Return the edited form of a view as blocks; blocks that it still has keep their bytes."""
    source, before = request.sources[number], request.views[number]
    if source.blocks is None:
        if message is before:
            return []
        return [cache_marks.Block(dumps(part), new=True) for part in texts_in(message.get("content"), "text")]
    if message is before:
        return _originals(request, source.at, source.blocks)
    if message.get("role") == "tool":
        return _result(request, source, message)
    return list(_spoken(request, source, before, message))


def _result(request: MessagesRequest, source: Source, message: Message) -> list[cache_marks.Block]:
    """Return a tool result with another content; its other members, and the blocks behind it, stay."""
    assert source.blocks is not None
    block = request.given[source.at].blocks[source.blocks[0]]
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if type(part) is not Opaque]
        if isinstance(block.value.get("content"), str) and all("text" in part for part in content):
            content = "\n".join(part["text"] for part in content)
    result = splice(block.raw, {"content": content})
    return [
        cache_marks.Block(result, (source.at, source.blocks[0])),
        *_originals(request, source.at, source.blocks[1:]),
    ]


def _spoken(request: MessagesRequest, source: Source, before: Message, message: Message) -> Iterator[cache_marks.Block]:
    """Return changed words: parts that still exist keep their bytes, calls keep their places."""
    assert source.blocks is not None
    given = request.given[source.at].blocks
    arguments = dict(changed_arguments(before, message))
    thinks = "reasoning_content" in message or "reasoning_content" not in before
    numbers = _part_numbers(source, given, before)
    waiting = [n for n in source.blocks if given[n].type == "tool_use" or (given[n].type in THINKING and thinks)]
    waiting = [n for n in waiting if n not in numbers]
    parts = texts_in(message.get("content"), "text")
    for part, n in zip(parts, _places(parts, before.get("content") or (), numbers), strict=True):
        while waiting and n is not None and waiting[0] < n:
            yield _called(source, given, waiting.pop(0), arguments)
        same = n is not None and any(part is each for each in before["content"])
        raw = given[n].raw if same and n is not None else dumps(part)
        yield cache_marks.Block(raw, None if n is None else (source.at, n), new=not same)
    for n in waiting:
        yield _called(source, given, n, arguments)


def _places(
    parts: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], numbers: Sequence[int]
) -> list[int | None]:
    """Return for each part the number of its original block; None for a new part, which comes first."""
    known = {id(part): n for part, n in zip(before, numbers, strict=True)}
    kept = {id(part) for part in parts}
    free = [(part.get("type"), n) for part, n in zip(before, numbers, strict=True) if id(part) not in kept]
    places: list[int | None] = []
    for part in reversed(parts):
        n = known.get(id(part))
        if n is None and free and free[-1][0] == part.get("type"):
            n = free.pop()[1]
        places.append(n)
    return places[::-1]


def _part_numbers(source: Source, given: Sequence[Piece], before: Message) -> list[int]:
    """Return for each content part of a view the number of its block."""
    assert source.blocks is not None
    hidden = {"tool_use"} | (THINKING if "reasoning_content" in before else frozenset())
    return [n for n in source.blocks if before.get("role") != "assistant" or given[n].type not in hidden]


def _called(source: Source, given: Sequence[Piece], n: int, arguments: Mapping[str, str]) -> cache_marks.Block:
    shorter = arguments.get(str(given[n].value.get("id")))
    raw = given[n].raw if shorter is None else splice(given[n].raw, {"input": orjson.Fragment(shorter.encode())})
    return cache_marks.Block(raw, (source.at, n))


def _bytes_of(each: _Written, marks: Mapping[int, bytes]) -> bytes:
    """Return the bytes to send for a message: its own bytes when nothing changed."""
    marked = any(id(block) in marks for block in each.blocks)
    if each.raw is not None and not each.changed and not marked:
        return each.raw
    blocks = [marks.get(id(block), block.raw) for block in each.blocks]
    if not blocks:
        return b""
    if each.raw is None:
        return dumps({"role": each.role, "content": array(blocks)})
    return splice(each.raw, {"content": array(blocks)})


ERROR_TYPES: Final = {
    "not_found": "not_found_error",
    "request_too_large": "request_too_large",
    "overloaded": "overloaded_error",
    "invalid_api_key": "authentication_error",
    "expired_api_key": "authentication_error",
    "model_not_allowed": "permission_error",
    "mode_not_allowed": "permission_error",
    "rate_limit_exceeded": "rate_limit_error",
    "unauthorized": "authentication_error",
    "upstream_timeout": "timeout_error",
}
"""Anthropic's error types by our own codes; its libraries choose the exception by them:
https://platform.claude.com/docs/en/api/errors"""


def refusal(window: int, prompt: int, reserve: int, largest: str) -> bytes:
    """Return our own 400 in the API's words, which make Claude Code compact; the large parts are listed besides."""
    if prompt > window:
        message = f"prompt is too long: {prompt} tokens > {window} maximum"
    else:
        message = (
            f"input length and `max_tokens` exceed context limit: {prompt} + {reserve} > {window}, decrease input length or "
            "`max_tokens` and try again"
        )
    inner = {"type": "invalid_request_error", "message": message, "largest_parts": largest}
    return dumps({"type": "error", "error": inner})


def error(message: str, code: str, kind: str, param: str | None) -> bytes:
    """Return any other error of our own, in the shape that Anthropic's SDKs read."""
    known = ERROR_TYPES.get(code) or ("invalid_request_error" if kind == "invalid_request_error" else "api_error")
    return dumps({"type": "error", "error": {"type": known, "message": message, "code": code}})


def rejects_thinking(said: bytes) -> bool:
    """Return whether an error says that thinking blocks of earlier answers are not accepted."""
    return b"thinking" in said and (
        b"signature" in said or b"cannot be modified" in said or b"different conversation" in said
    )


def is_preamble(data: bytes) -> bool:
    """Return whether an event comes before any content of the answer."""
    kind = event_type(data)
    return kind in ("message_start", "ping")


MESSAGES: Final = Format(
    name="messages",
    path=PATH,
    parse=parse,
    skim=parse,
    encode=encode,
    refusal=refusal,
    error=error,
    is_preamble=is_preamble,
    rejects_thinking=rejects_thinking,
    unbound_headers={"anthropic-beta": BINDING_BETA},
    usage_in_first_event=True,
)
