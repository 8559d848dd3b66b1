"""The OpenAI Responses format: how its requests are read and edited, its refusal, and its stream events."""

import re
from typing import Final

from gateway.wire.format import Format, ServerIds
from gateway.wire.memory import Memory
from gateway.wire.openai_error import error
from gateway.wire.responses_edits import encode
from gateway.wire.responses_reading import ResponsesRequest, read
from gateway.wire.server_ids import made_by_responses, named_by_responses, stores_response
from gateway.wire.views import event_type

PATH: Final = "/v1/responses"


def parse(raw: bytes, memory: Memory | None = None) -> ResponsesRequest | None:
    """Parse a body; return None if it is no body of this format."""
    return read(raw, memory or Memory(), RESPONSES)


def refusal(window: int, prompt: int, reserve: int, largest: str) -> bytes:
    """Return our own 400 with the code that OpenAI's SDKs, Codex and langchain recognise."""
    message = (
        f"context_length_exceeded: Your input exceeds the context window of this model, which is {window} tokens. The smallest "
        f"form of this request that keeps its meaning still needs about {prompt} tokens, with {reserve} more reserved for the "
        f"answer. Largest parts: {largest}. Shorten these, or configure a model with a larger window."
    )
    return error(message, "context_length_exceeded", "invalid_request_error", "input")


PREAMBLES: Final = frozenset({"response.created", "response.in_progress", "response.queued", "keepalive", "ping"})


def is_preamble(data: bytes) -> bool:
    """Return whether an event comes before any content of the answer."""
    return event_type(data) in PREAMBLES


ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


def is_end(data: bytes) -> bool:
    """Return whether an event is the last of an answer."""
    return event_type(data) in ENDS


RESPONSES: Final = Format(
    name="responses",
    path=PATH,
    parse=parse,
    encode=encode,
    refusal=refusal,
    error=error,
    is_preamble=is_preamble,
    is_end=is_end,
    ids=ServerIds(named_by_responses, stores_response, made_by_responses),
    long_last_event=re.compile(b"|".join(name.encode() for name in sorted(ENDS)).replace(b".", rb"\.")),
)
