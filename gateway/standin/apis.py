"""The APIs of the stand-in: how each judges, counts, refuses and answers a request, one row per API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.standin import completion, message_events, messages, ollama, response_events, responses, validity, weight
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
    output_limit_in: Callable[[Mapping[str, Any]], int]
    """Returns the requested output tokens; 0 without a limit."""
    violations: Callable[[Any], list[Violation]]
    weigh: Callable[[Mapping[str, Any]], int]
    error: Callable[[int, str], Raw]
    complete: Callable[[Completion, Mapping[str, Any], int], Raw]
    refused_stream: Callable[[Mapping[str, Any], bytes], Raw]
    """(body, refusal) -> a stream that ends in the refusal before any content."""
    streams: Callable[[Mapping[str, Any]], bool] = lambda body: body.get("stream") is True
    """Returns whether a request asks for a stream."""
    asked_window: Callable[[Mapping[str, Any]], int] = lambda _: 0
    """Returns the window that a request asks for; 0 without one."""


def _limit_in(*names: str) -> Callable[[Mapping[str, Any]], int]:
    """Return a reader of the output limit in the first of these members that a request has."""
    return lambda body: next((int(body[name]) for name in names if isinstance(body.get(name), int)), 0)


def _refused_chat(_: Mapping[str, Any], refusal: bytes) -> Raw:
    """Return a stream whose first event is the refusal."""
    chunks = (b'data: {"error":' + refusal + b"}\n\n", b"data: [DONE]\n\n")
    return Raw(chunks=chunks, headers={"content-type": EVENTS})


CHAT: Final = Api(
    name="chat",
    path="/v1/chat/completions",
    member="messages",
    dialect="openai",
    output_limit_in=_limit_in("max_completion_tokens", "max_tokens"),
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
    output_limit_in=_limit_in("max_tokens"),
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
    output_limit_in=_limit_in("max_output_tokens"),
    violations=responses.violations,
    weigh=lambda body: weight.items_tokens(body, ("instructions", "input")),
    error=completion.error,
    complete=response_events.complete,
    refused_stream=response_events.refused_stream,
)
OLLAMA: Final = Api(
    name="ollama",
    path="/api/chat",
    member="messages",
    dialect="ollama-own",
    output_limit_in=lambda body: ollama.option(body, "num_predict"),
    violations=ollama.violations,
    weigh=ollama.weigh,
    error=ollama.error,
    complete=ollama.complete,
    refused_stream=ollama.refused_stream,
    streams=ollama.streams,
    asked_window=lambda body: ollama.option(body, "num_ctx"),
)
APIS: Final[Sequence[Api]] = (CHAT, MESSAGES, RESPONSES, OLLAMA)

RULES: Final[Mapping[str, frozenset[str]]] = {
    "chat": frozenset(validity.RULES),
    "messages": frozenset(messages.RULES),
    "responses": frozenset(responses.RULES),
    "ollama": frozenset(ollama.RULES),
}
"""The rules that a strict server of each API enforces."""
