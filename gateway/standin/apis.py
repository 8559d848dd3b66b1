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

    def output_limit_in(self, body: Mapping[str, Any]) -> int:
        """Return the requested output tokens; 0 without a limit."""
        return next((int(body[name]) for name in self.limits if isinstance(body.get(name), int)), 0)


def _refused_chat(_: Mapping[str, Any], refusal: bytes) -> Raw:
    """Return a stream whose first event is the refusal."""
    chunks = (b'data: {"error":' + refusal + b"}\n\n", b"data: [DONE]\n\n")
    return Raw(chunks=chunks, headers={"content-type": EVENTS})


CHAT: Final = Api(
    name="chat",
    path="/v1/chat/completions",
    member="messages",
    dialect="openai",
    limits=("max_completion_tokens", "max_tokens"),
    violations=lambda body: validity.violations(body.get("messages")),
    weigh=weight.prompt_tokens,
    error=completion.error,
    complete=completion.complete,
    refused_stream=_refused_chat,
)
MESSAGES: Final = Api(
    name="messages",
    path="/v1/messages",
    member="messages",
    dialect="anthropic",
    limits=("max_tokens",),
    violations=messages.violations,
    weigh=lambda body: weight.items_tokens(body, ("system", "messages")),
    error=message_events.error,
    complete=message_events.complete,
    refused_stream=message_events.refused_stream,
)
RESPONSES: Final = Api(
    name="responses",
    path="/v1/responses",
    member="input",
    dialect="openai-responses",
    limits=("max_output_tokens",),
    violations=responses.violations,
    weigh=lambda body: weight.items_tokens(body, ("instructions", "input")),
    error=completion.error,
    complete=response_events.complete,
    refused_stream=response_events.refused_stream,
)
APIS: Final[Sequence[Api]] = (CHAT, MESSAGES, RESPONSES)

RULES: Final[Mapping[str, frozenset[str]]] = {
    "chat": frozenset(validity.RULES),
    "messages": frozenset(messages.RULES),
    "responses": frozenset(responses.RULES),
}
"""The rules that a strict server of each API enforces."""
