"""A request body skimmed: all that decides whether it may pass, its texts left unread where they stand.

Reading a long conversation into values takes longer than passing it through, and a request that provably fits its window is sent
as it came. So texts are measured off, not read; whoever needs them after all gets the whole body, parsed then.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.wire.chat import ELSEWHERE, ChatRequest, Message

_ABSENT: Final = msgspec.Raw(b"null")
WORTHWHILE: Final = 2**14
"""A body shorter than this is parsed as quickly as it is skimmed."""
_QUOTE: Final = ord('"')
_TEXT_OR_NULL: Final = frozenset(b'"n')


class _Message(msgspec.Struct, gc=False):
    """What is looked at in each message."""

    role: str
    content: msgspec.Raw = _ABSENT
    audio: msgspec.Raw = _ABSENT


_HEAD: Final = ("model", "stream", "max_completion_tokens", "max_tokens", "max_output_tokens", "tools", *ELSEWHERE)
_Body: Final = msgspec.defstruct(
    "_Body", [("messages", list[_Message]), *((name, Any, msgspec.UNSET) for name in _HEAD)]
)
_read: Final = msgspec.json.Decoder(_Body).decode
_value: Final = msgspec.json.Decoder().decode


def skim(raw: bytes) -> ChatRequest | None:
    """Read a body as far as it takes; None where it is not one we could decide about.

    ``head`` holds the members in `_HEAD`, ``outline`` the messages whose content is more than one text.
    """
    try:
        body: Any = _read(raw)
        rich = [m for m in body.messages if memoryview(m.content)[0] not in _TEXT_OR_NULL or m.audio is not _ABSENT]
        outline = tuple(map(_outline, rich))
    except (msgspec.MsgspecError, RecursionError):
        return None
    head: Mapping[str, Any] = {name: value for name in _HEAD if (value := getattr(body, name)) is not msgspec.UNSET}
    model = head.get("model")
    return ChatRequest(raw, head, model if isinstance(model, str) else "", outline, skimmed=True)


def _outline(message: _Message) -> Message:
    """The message with its text left out, for whoever asks what else is in it."""
    found: dict[str, Any] = {"role": message.role}
    for name in ("content", "audio"):
        value = getattr(message, name)
        if value is not _ABSENT:
            found[name] = "" if memoryview(value)[0] == _QUOTE else _value(value)
    return found
