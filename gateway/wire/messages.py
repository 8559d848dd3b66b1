"""The Anthropic Messages format: how its requests are read and edited, its errors, and its stream events."""

from typing import Final

from gateway.wire.format import Format, ServerIds
from gateway.wire.memory import Memory
from gateway.wire.message import dumps
from gateway.wire.messages_edits import BINDING_BETA, encode
from gateway.wire.messages_reading import read
from gateway.wire.messages_request import MessagesRequest
from gateway.wire.server_ids import made_by_messages, may_make, named_by_messages
from gateway.wire.views import event_type

PATH: Final = "/v1/messages"


def parse(raw: bytes, memory: Memory | None = None) -> MessagesRequest | None:
    """Parse a body; return None if it is no body of this format."""
    return read(raw, memory or Memory(), MESSAGES)


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
    error_type = ERROR_TYPES.get(code) or ("invalid_request_error" if kind == "invalid_request_error" else "api_error")
    return dumps({"type": "error", "error": {"type": error_type, "message": message, "code": code}})


def rejects_thinking(body: bytes) -> bool:
    """Return whether an error says that thinking blocks of earlier answers are not accepted."""
    return b"thinking" in body and (
        b"signature" in body or b"cannot be modified" in body or b"different conversation" in body
    )


def is_preamble(data: bytes) -> bool:
    """Return whether an event comes before any content of the answer."""
    return event_type(data) in ("message_start", "ping")


def is_end(data: bytes) -> bool:
    """Return whether an event is the last of an answer."""
    return event_type(data) == "message_stop"


MESSAGES: Final = Format(
    name="messages",
    path=PATH,
    parse=parse,
    encode=encode,
    refusal=refusal,
    error=error,
    is_preamble=is_preamble,
    is_end=is_end,
    ids=ServerIds(named_by_messages, may_make, made_by_messages),
    rejects_thinking=rejects_thinking,
    drop_thinking_headers={"anthropic-beta": BINDING_BETA},
    usage_in_first_event=True,
)
