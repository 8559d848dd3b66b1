"""The OpenAI chat-completions format: read a request body, and write edits into it.

This module knows the wire format, and nothing about windows, folding or upstreams. The core's message is this format's
message, so nothing is translated. Long bodies are skimmed first (`gateway.wire.skim`): parsing a long conversation takes
longer than passing it through, and a request that provably fits its window is sent unchanged. The whole body is parsed
when it is needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from gateway.wire import interned, raw_json, surrogates
from gateway.wire.derived import Interned
from gateway.wire.format import Edits, Format, ServerIds
from gateway.wire.memory import Memory
from gateway.wire.message import Message, dumps, opening_of
from gateway.wire.openai_error import error
from gateway.wire.server_ids import made_by_chat, named_by_chat, stores_chat
from gateway.wire.skim import OUTPUT_FIELDS, OUTSIDE_MEMBERS, skimmed
from gateway.wire.splice import splice
from gateway.wire.views import event_type

_OUTSIDE_MEMBERS: Final = frozenset(OUTSIDE_MEMBERS)


class ChatRequest:
    """A chat-completions body: its bytes and its values.

    ``messages`` is empty when the body has none; ``model`` is empty when it is missing or not a string. Of a skimmed
    body only ``head`` and ``outline`` are known at first: members besides the messages, and the messages whose content
    is more than one text. ``body`` and ``messages`` are parsed at first use.
    """

    __slots__ = (
        "_opening", "_skimmed", "_whole", "format", "head", "may_call_in_parallel", "memory", "message_count", "model", "outline", "raw",
    )  # fmt: skip

    def __init__(
        self,
        raw: bytes,
        body: Mapping[str, Any],
        model: str,
        messages: tuple[Message, ...],
        *,
        memory: Memory,
        skimmed: bool = False,
        message_count: int | None = None,
        opening: str | None = None,
        may_call_in_parallel: bool = True,
    ) -> None:
        self.format: Format = CHAT
        self.raw = raw
        self.memory = memory
        self.message_count = len(messages) if message_count is None else message_count
        self.head = body
        self.model = model
        self.outline = messages
        self._skimmed = skimmed
        self._opening = opening
        self.may_call_in_parallel = may_call_in_parallel
        self._whole: ChatRequest | None = None

    @property
    def body(self) -> Mapping[str, Any]:
        return self._read().head

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._read().outline

    @property
    def opening(self) -> str:
        if not self._skimmed:
            return opening_of(self.outline)
        if self._whole is not None:
            return opening_of(self._whole.outline)
        return self._opening or ""

    @property
    def rewritten(self) -> bool:
        return False

    @property
    def stream(self) -> bool:
        return self.head.get("stream") is True

    @property
    def output_limits(self) -> tuple[int, ...]:
        head = self.head
        return tuple(
            [head[name] for name in OUTPUT_FIELDS if name in head and type(head[name]) is int]
        )  # a bool is none

    @property
    def asked_window(self) -> int | None:
        return None

    @property
    def refers_elsewhere(self) -> bool:
        return not _OUTSIDE_MEMBERS.isdisjoint(self.head) and any(self.head.get(name) for name in OUTSIDE_MEMBERS)

    @property
    def continues(self) -> bool:
        return False

    def _read(self) -> "ChatRequest":
        if not self._skimmed:
            return self
        if self._whole is None:
            self._whole = parse(self.raw, self.memory) or ChatRequest(
                self.raw, self.head, self.model, (), memory=self.memory
            )
        return self._whole


def parse(raw: bytes, memory: Memory | None = None) -> ChatRequest | None:
    """Parse a body; return None if it is no body of this format.

    None means: not JSON, not an object, or ``messages`` that is not a list of objects with a role. Such a body is
    forwarded unchanged; the upstream's own error is better than ours (cases 1, 118).
    """
    memory = memory or Memory()
    body = interned.read(raw, memory) if len(raw) > interned.LEAST_BYTES else None
    if body is None:
        try:
            body = surrogates.loads(raw)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(body, dict):
        return None
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(
        isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages
    ):
        return None
    model = body.get("model")
    return ChatRequest(raw, body, model if isinstance(model, str) else "", tuple(messages), memory=memory)


def skim(raw: bytes, memory: Memory | None = None) -> ChatRequest | None:
    """Read as little of a body as possible; return None if it is no body of this format.

    ``head`` has the members in `gateway.wire.skim.READ_MEMBERS`, ``outline`` the messages whose content is more than one text.
    """
    memory = memory or Memory()
    found = skimmed(raw, memory)
    if found is None:
        return None
    model = found.head.get("model")
    name = model if isinstance(model, str) else ""
    return ChatRequest(
        raw, found.head, name, found.outline, memory=memory, skimmed=True, message_count=found.message_count,
        opening=found.opening, may_call_in_parallel=found.may_call_in_parallel,
    )  # fmt: skip


def encode(request: ChatRequest, edits: Edits) -> bytes:
    """Write the edits into the body. Unchanged messages, and all other members, keep their bytes."""
    changes: dict[str, Any] = {}
    if edits.model is not None and request.model and edits.model != request.model:
        changes["model"] = edits.model
    raw = request.raw
    if edits.messages is not None and edits.messages != request.messages:
        original_bytes = _bytes_of(request)
        changes["messages"] = _messages_array(request, edits.messages, original_bytes)
        raw = raw_json.without_rows(raw, "messages", original_bytes)
    if edits.output is not None:
        for name in OUTPUT_FIELDS:
            value = request.head.get(name)
            if isinstance(value, int) and value > edits.output:
                changes[name] = edits.output
    if edits.added:
        changes |= {name: value for name, value in edits.added.items() if name not in request.body}
    return splice(raw, changes) if changes else raw


def _bytes_of(request: ChatRequest) -> Sequence[bytes]:
    """Return the bytes of each message; empty if they cannot be found."""
    interned_bytes = [message.raw for message in request.messages if type(message) is Interned]
    if len(interned_bytes) == len(request.messages) and all(interned_bytes):
        return interned_bytes
    return raw_json.rows((raw_json.members(request.raw) or {}).get("messages", b"")) or ()


def _messages_array(
    request: ChatRequest, messages: Sequence[Message], original_bytes: Sequence[bytes]
) -> orjson.Fragment:
    """Return the array of messages. A message that is the very object of the request keeps its bytes."""
    bytes_by_id = {id(message): row for message, row in zip(request.messages, original_bytes, strict=False)}
    return raw_json.array(bytes_by_id.get(id(message)) or dumps(message) for message in messages)


def refusal(window: int, prompt: int, reserve: int, largest: str) -> bytes:
    """Return our own refusal, which clients recognise by its code or by its message.

    langchain-openai and LiteLLM look for ``context_length_exceeded`` or "maximum context length" in the message text.
    """
    message = (
        f"context_length_exceeded: This model's maximum context length is {window} tokens. However, the smallest form of "
        f"this request that keeps its meaning still needs about {prompt} tokens, with {reserve} more reserved for the answer. "
        f"Largest parts: {largest}. Shorten these, or configure a model with a larger window."
    )
    return error(message, "context_length_exceeded", "invalid_request_error", "messages")


class _Choice(msgspec.Struct, gc=False):
    """One choice of a stream event."""

    delta: dict[str, Any]
    finish_reason: Any = None


PING: Final = "ping"
"""Type of an event that keeps a stream alive. Relays of Anthropic's models send it in chat completions, too."""


class _Chunk(msgspec.Struct, gc=False):
    """A stream event; only chunks of a completion have ``choices``."""

    choices: list[_Choice]
    usage: Any = None
    error: Any = None


_chunk: Final = msgspec.json.Decoder(_Chunk).decode


def is_preamble(data: bytes) -> bool:
    """Return whether a stream event only says that an answer begins: a role, empty content, no choices yet (Azure's
    filter results)."""
    if not data.strip():
        return True
    try:
        chunk = _chunk(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return event_type(data) == PING
    return (
        chunk.error is None
        and chunk.usage is None
        and all(
            choice.finish_reason is None and not any(value for name, value in choice.delta.items() if name != "role")
            for choice in chunk.choices
        )
    )


def is_end(data: bytes) -> bool:
    """Return whether a stream event is the last of an answer."""
    return data.strip() == b"[DONE]"


CHAT: Final = Format(
    name="chat",
    path="/v1/chat/completions",
    parse=parse,
    skim=skim,
    encode=encode,
    refusal=refusal,
    error=error,
    is_preamble=is_preamble,
    is_end=is_end,
    ids=ServerIds(named_by_chat, stores_chat, made_by_chat),
)
