"""The seam for wire formats: a body is read into a conversation, and what the core decided is written back into its bytes.

Each format is one module with one `Format` record, listed in `gateway.wire.formats`. The core reads chat-completions mappings
(`gateway.wire.message`). A format that differs presents its items as views in that shape, each of which remembers the item it
came from. What the core returns is matched by identity:

- a message that is the very object of ``Conversation.messages`` keeps its bytes;
- a message that replaces one is written anew, as an item of its format;
- a message that was not there before (a note, quotes) is inserted as an item.

This file does not know what any field is called on the wire, what a window is, or which upstream is asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gateway.wire.memory import Memory
from gateway.wire.message import Message

FormatName = Literal["chat", "responses", "messages"]


class Conversation(Protocol):
    """One request body: its bytes, and what they say in the core's words.

    ``head`` and ``outline`` are cheap: they may be skimmed. ``body`` and ``messages`` read everything when they are first used.
    """

    @property
    def raw(self) -> bytes:
        """The body's bytes, decoded from any content encoding."""

    @property
    def memory(self) -> Memory:
        """Where what is found out about the messages is remembered."""

    @property
    def format(self) -> "Format":
        """The format in which the body is written."""

    @property
    def model(self) -> str:
        """The model as the client names it; empty where it is missing or not a string."""

    @property
    def message_count(self) -> int:
        """How many messages the body has; cheap."""

    @property
    def rewritten(self) -> bool:
        """Whether ``raw`` is not what the client sent, because that held something only we can read."""

    @property
    def stream(self) -> bool:
        """Whether the client wants the answer as a stream."""

    @property
    def output_limits(self) -> tuple[int, ...]:
        """The output limits that stand in the body, in tokens, in the order in which they are believed; 0 and below included."""

    @property
    def refers_elsewhere(self) -> bool:
        """Whether text enters the prompt that does not stand in the body: an earlier response, a stored prompt, a search."""

    @property
    def head(self) -> Mapping[str, Any]:
        """The members beside the messages, named as chat completions names them, as far as a skim reads them."""

    @property
    def outline(self) -> tuple[Message, ...]:
        """The messages whose content is more than one text; other messages may be left out."""

    @property
    def body(self) -> Mapping[str, Any]:
        """All members, named and shaped as chat completions does, ``messages`` included: tools and schemas are counted from it."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages in chat-completions shape, in order. Leading instructions come as a system message."""


@dataclass(frozen=True, slots=True)
class Edits:
    """What the core decided about a body. A field that is None changes nothing."""

    model: str | None = None
    messages: tuple[Message, ...] | None = None
    """All messages to be sent. Those that are objects of the conversation's ``messages`` keep their bytes."""
    output: int | None = None
    """The output limit in tokens; only limits that stand in the body and are larger are lowered to it."""
    thinks: bool = True
    """False: signed thinking of earlier answers is taken out, where the format has such."""
    unbound: bool = False
    """Ask the upstream to drop signed thinking that it finds behind another conversation than it was made in, where the format can."""


class Parse(Protocol):
    """Reads a body with what is remembered of its messages. Without a memory the body gets one of its own."""

    def __call__(self, raw: bytes, memory: Memory | None = None, /) -> Conversation | None: ...


def _never(_: bytes) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Format:
    """How one API writes requests, errors and stream events."""

    name: FormatName
    path: str
    """The path on the client port, ``/v1/chat/completions`` for example."""
    parse: "Parse"
    """Reads a body; None where it is not one that we could decide about. Such a body is forwarded as it came."""
    skim: "Parse"
    """Reads as much of a long body as proves that it fits; None where it must be parsed. May be ``parse`` itself."""
    encode: Callable[[Any, Edits], bytes]
    """(conversation, edits) -> the body's bytes with the edits; ``conversation.raw`` itself where nothing changes."""
    output_fields: tuple[str, ...]
    """The members that limit the output, in the order in which they are believed."""
    refusal: Callable[[int, int, int, str], bytes]
    """(window, prompt, reserve, largest parts) -> the body of our own 400, in the shape this format's clients expect."""
    error: Callable[[str, str, str, str | None], bytes]
    """(message, code, type, param) -> the body of any other error of our own."""
    is_preamble: Callable[[bytes], bool]
    """Whether the data of one stream event carries nothing for the reader yet (a role, a ping, ``response.created``).

    Anything unknown is content: after content nothing is retried.
    """
    rejects_thinking: Callable[[bytes], bool] = _never
    """Whether an error says that signed thinking is not accepted."""
    unbound_headers: Mapping[str, str] = field(default_factory=dict)
    """What a body with `Edits.unbound` needs in its headers; each value is added to those that are there."""
    usage_in_first_event: bool = False
    """Whether a stream states the prompt's usage in its first events and the output's in its last."""
    skim_from_bytes: int = 2**14
    """A body shorter than this is parsed as quickly as it is skimmed."""

    def read(self, raw: bytes, memory: Memory | None = None) -> Conversation | None:
        """Read a body by the cheaper way: skim a long one, parse any other."""
        return (self.skim(raw, memory) if len(raw) > self.skim_from_bytes else None) or self.parse(raw, memory)
