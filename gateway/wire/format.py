"""Wire formats: how a body is read as a conversation, and how the core's decisions are written into its bytes.

Each format has one `Format` record, listed in `gateway.wire.formats`. The core reads chat-completions mappings
(`gateway.wire.message`). A format that differs presents its items as views in that shape, each of which remembers the item it
came from. What the core returns is matched by identity:

- a message that is the same object as one in ``Conversation.messages`` keeps its bytes;
- a message that replaces one of these is written again, as an item of its format;
- a new message (a note) is inserted as an item.

This file does not know what any field is called on the wire, what a window is, or which upstream is asked.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from gateway.wire.memory import Memory
from gateway.wire.message import Message

FormatName = Literal["chat", "responses", "messages", "ollama"]


class Conversation(Protocol):
    """One request body: its bytes and its contents.

    ``head`` and ``outline`` are cheap: they may be skimmed. ``body`` and ``messages`` parse everything at first use.
    """

    @property
    def raw(self) -> bytes:
        """The body's bytes, without content encoding."""

    @property
    def memory(self) -> Memory:
        """The cache of everything that is computed from the messages."""

    @property
    def format(self) -> "Format":
        """The wire format of the body."""

    @property
    def model(self) -> str:
        """The client's name of the model; empty when missing or not a string."""

    @property
    def message_count(self) -> int:
        """The number of messages; cheap."""

    @property
    def rewritten(self) -> bool:
        """Whether ``raw`` is not the client's body, because that contained an item that only we can read."""

    @property
    def stream(self) -> bool:
        """Whether the client wants a stream."""

    @property
    def output_limits(self) -> tuple[int, ...]:
        """The output limits in the body, in tokens, in the order of their precedence; includes 0 and negative ones."""

    @property
    def asked_window(self) -> int | None:
        """The window that the request asks its server to have, in tokens; None where the format has no such option, or it is not used."""

    @property
    def refers_elsewhere(self) -> bool:
        """Whether text outside the body enters the prompt: an earlier response, a stored prompt, a search."""

    @property
    def continues(self) -> bool:
        """Whether only the server has the messages before these: an earlier response, a stored conversation, a thread."""

    @property
    def head(self) -> Mapping[str, Any]:
        """The members besides the messages, with chat-completions names, as far as a skim reads them."""

    @property
    def outline(self) -> tuple[Message, ...]:
        """The messages whose content is more than one text; other messages may be left out."""

    @property
    def may_call_in_parallel(self) -> bool:
        """Whether a message may make several calls at once; cheap, so it is True when this is not known."""

    @property
    def opening(self) -> str:
        """The text of the first user message; cheap."""

    @property
    def body(self) -> Mapping[str, Any]:
        """All members with chat-completions names and shapes, including ``messages``: tools and schemas are counted
        from it."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages in chat-completions shape, in order. Leading instructions are a system message."""


def output_limit_of(conversation: Conversation) -> int | None:
    """Return the output limit that holds, in tokens: the first positive one; None without one."""
    for limit in conversation.output_limits:
        if limit > 0:
            return limit
    return None


class Edits(msgspec.Struct, frozen=True):
    """The core's decisions about a body. A field that is None changes nothing."""

    model: str | None = None
    messages: tuple[Message, ...] | None = None
    """All messages to send. Objects from the conversation's ``messages`` keep their bytes."""
    output: int | None = None
    """The output limit in tokens; only larger limits in the body are lowered to it."""
    keeps_thinking: bool = True
    """False removes the signed thinking of earlier answers, if the format has it."""
    added: Mapping[str, Any] = {}
    """Members to add to the body, each where the client has none of that name."""
    may_drop_thinking: bool = False
    """Whether the upstream may drop signed thinking that follows another conversation than the one it was made in, if the
    format can say so."""


class Parse(Protocol):
    """Reads a body, with the memory of its messages. Without a memory the body gets one of its own."""

    def __call__(self, raw: bytes, memory: Memory | None = None, /) -> Conversation | None: ...


def _never(_: bytes) -> bool:
    return False


class ServerIds(msgspec.Struct, frozen=True):
    """How the ids of what only one server has are found; see `gateway.wire.server_ids`."""

    named: Callable[[Any], tuple[str, ...]]
    """Returns those that a conversation names."""
    may_make: Callable[[Any], bool]
    """Returns whether the answer to a conversation may make one; cheap."""
    made: Callable[[bytes], tuple[str, ...]]
    """Returns those in an answer, or in an event of one."""


class Format(msgspec.Struct, frozen=True):
    """How one API writes requests, errors and stream events."""

    name: FormatName
    path: str
    """The path on the client port, for example ``/v1/chat/completions``. One that is not below ``/v1`` is an own endpoint of some servers,
    and only their requests are read (`providers.native`)."""
    parse: "Parse"
    """Parses a body; None if it is no body of this format. Such a body is forwarded unchanged."""
    encode: Callable[[Any, Edits], bytes]
    """(conversation, edits) -> the body's bytes with the edits; ``conversation.raw`` itself when nothing changes."""
    refusal: Callable[[int, int, int, str], bytes]
    """(window, prompt, reserve, largest parts) -> the body of our own 400, in the shape this format's clients expect."""
    error: Callable[[str, str, str, str | None], bytes]
    """(message, code, type, param) -> the body of any other error of our own."""
    is_preamble: Callable[[bytes], bool]
    """Returns whether the data of a stream event has no content yet (a role, a ping, ``response.created``).

    Unknown events are content: after content nothing is retried.
    """
    is_end: Callable[[bytes], bool]
    """Returns whether the data of a stream event is the last of an answer."""
    ids: ServerIds
    long_last_event: re.Pattern[bytes] | None = None
    """Matches the name of the last event of an answer where it may be long: that of Responses repeats the request and the
    whole answer."""
    skim: "Parse | None" = None
    """Reads enough of a long body to prove that it fits; None when it must be parsed."""
    rejects_thinking: Callable[[bytes], bool] = _never
    """Returns whether an error says that signed thinking is not accepted."""
    drop_thinking_headers: Mapping[str, str] = {}
    """Headers that a body with `Edits.may_drop_thinking` needs; each value is added to existing ones."""
    usage_in_first_event: bool = False
    """Whether a stream states the prompt's usage in its first events and the output's in its last."""
    usage_sign: bytes = b'"usage"'
    """Occurs in each event that states a usage."""
    in_lines: bool = False
    """Whether a stream has one JSON value in a line (`providers.ndjson`), instead of events."""
    skim_from_bytes: int = 2**14
    """Bytes from which a body is skimmed; a shorter body is parsed as quickly as it is skimmed."""
    skim_to_bytes: int = 2**23
    """Bytes up to which a body is skimmed. The size of a longer one proves nothing, because no window has so many tokens."""

    def read(self, raw: bytes, memory: Memory | None = None) -> Conversation | None:
        """Read a body in the cheaper way: skim a long one, parse any other."""
        skim = self.skim if self.skim_from_bytes < len(raw) <= self.skim_to_bytes else None
        return (skim(raw, memory) if skim is not None else None) or self.parse(raw, memory)
