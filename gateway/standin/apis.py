"""The APIs of the stand-in: how each judges, counts, refuses and answers a request, one row per API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.standin import completion, message_events, messages, response_events, responses, validity, weight
from gateway.standin.answers import EVENTS, Completion, Raw
from gateway.standin.validity import Violation


@dataclass(frozen=True, slots=True)
class Api:
    """How one API judges, counts, refuses and answers a request."""

    name: str
    path: str
    member: str
    """The member that every request needs."""
    dialect: str
    """Its default wording of "too long"."""
    limits: tuple[str, ...]
    """The members that limit the output."""
    violations: Callable[[Any], list[Violation]]
    weigh: Callable[[Mapping[str, Any]], int]
    error: Callable[[int, str], Raw]
    complete: Callable[[Completion, Mapping[str, Any], int], Raw]
    refused_stream: Callable[[Mapping[str, Any], bytes], Raw]
    """(body, refusal) -> a stream that ends in the refusal before any content."""

    def asked(self, body: Mapping[str, Any]) -> int:
        """Return the requested output tokens; 0 without a limit."""
        return next((int(body[name]) for name in self.limits if isinstance(body.get(name), int)), 0)


def _refused_chat(_: Mapping[str, Any], refusal: bytes) -> Raw:
    chunks = (b'data: {"error":' + refusal + b"}\n\n", b"data: [DONE]\n\n")
    return Raw(chunks=chunks, headers={"content-type": EVENTS})


def _refused_message(body: Mapping[str, Any], refusal: bytes) -> Raw:
    return message_events.refused_stream(body, refusal)


APIS: Final[Sequence[Api]] = (
    Api(
        "chat",
        "/v1/chat/completions",
        "messages",
        "openai",
        ("max_completion_tokens", "max_tokens"),
        lambda body: validity.violations(body.get("messages")),
        weight.prompt_tokens,
        completion.error,
        completion.complete,
        _refused_chat,
    ),
    Api(
        "messages",
        "/v1/messages",
        "messages",
        "anthropic",
        ("max_tokens",),
        messages.violations,
        lambda body: weight.items_tokens(body, ("system", "messages")),
        message_events.error,
        message_events.complete,
        _refused_message,
    ),
    Api(
        "responses",
        "/v1/responses",
        "input",
        "openai-responses",
        ("max_output_tokens",),
        responses.violations,
        lambda body: weight.items_tokens(body, ("instructions", "input")),
        completion.error,
        response_events.complete,
        response_events.refused_stream,
    ),
)

RULES: Final[Mapping[str, frozenset[str]]] = {
    "chat": frozenset(validity.RULES),
    "messages": frozenset(messages.RULES),
    "responses": frozenset(responses.RULES),
}
"""The rules that a strict server of each API enforces."""
