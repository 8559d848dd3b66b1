"""What the SDKs are put through, and what each must come back with: one table for every client library.

The upstream tells by the model's name what to play, so that a driver in any language needs no other script.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.standin import Answer, Completion, Raw, Seen, StandIn
from tests import fakes

WINDOW: Final = 2000
"""Of the model ``small``; all others have room enough."""

KEY: Final = "sk-right"

LOOKUP: Final = {
    "type": "function",
    "function": {"name": "lookup", "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}}},
}

LONG: Final[Mapping[str, Any]] = {
    "model": "small",
    "messages": fakes.tool_turns(12),
    "tools": [LOOKUP],
    "max_tokens": 100,
}
"""A tool conversation of more than two windows."""

TOO_LONG: Final[Mapping[str, Any]] = {
    "model": "small",
    "messages": [fakes.system(fakes.words(4000)), fakes.user("Hello?")],
    "max_tokens": 100,
}
"""System messages alone over the window: nothing can be cut."""

ERRORS: Final[Mapping[str, Raw]] = {
    "bad": fakes.error(400, "Invalid value for 'temperature'", code="invalid_value"),
    "denied": fakes.error(403, "You are not allowed to sample from this model", code="permission_denied"),
    "gone": fakes.error(404, "The model `gone` does not exist", code="model_not_found"),
    "conflict": fakes.error(409, "Conflict", code="conflict"),
    "unprocessable": fakes.error(422, "Unprocessable", code="unprocessable"),
    "limited": fakes.RATE_LIMITED,
    "broken": fakes.error(500, "The server had an error", code="server_error", kind="server_error"),
    "overloaded": fakes.error(503, "Overloaded", code="overloaded", kind="server_error"),
}

EXPECTED: Final[Mapping[str, Any]] = {
    "plain": {"text": "Understood.", "prompt_tokens": 8},
    "stream": {"text": "Understood.", "prompt_tokens": 8},
    "tools": {"name": "lookup", "arguments": '{"order":7}', "finish": "tool_calls", "then": "Understood."},
    "tools_stream": {"name": "lookup", "arguments": '{"order":7}', "finish": "tool_calls"},
    "long": {"text": "Understood.", "action": "fold"},
    "long_stream": {"text": "Understood.", "action": "fold"},
    "embeddings": {"rows": 2},
    "models": {"ids": ["gpt-4o", "small", "unreachable"]},
    "too_long": {"class": "BadRequestError", "status": 400, "code": "context_length_exceeded"},
    "wrong_key": {"class": "AuthenticationError", "status": 401, "code": "invalid_api_key"},
    "bad": {"class": "BadRequestError", "status": 400, "code": "invalid_value"},
    "denied": {"class": "PermissionDeniedError", "status": 403, "code": "permission_denied"},
    "gone": {"class": "NotFoundError", "status": 404, "code": "model_not_found"},
    "conflict": {"class": "ConflictError", "status": 409, "code": "conflict"},
    "unprocessable": {"class": "UnprocessableEntityError", "status": 422, "code": "unprocessable"},
    "limited": {"class": "RateLimitError", "status": 429, "code": "rate_limit_exceeded"},
    "broken": {"class": "InternalServerError", "status": 500, "code": "server_error"},
    "overloaded": {"class": "InternalServerError", "status": 503, "code": "overloaded"},
    "reset": {"class": "InternalServerError", "status": 502, "code": "upstream_unreachable"},
    "unreachable": {"class": "InternalServerError", "status": 502, "code": "upstream_unreachable"},
}
"""Scene by scene, what a driver prints. ``reset`` and ``unreachable`` are the gateway's own errors."""


def play(seen: Seen) -> Answer | None:
    """Answer by the name of the model; None lets the strict server judge."""
    body = seen.json if isinstance(seen.json, dict) else {}
    model = body.get("model")
    if model == "reset":
        return fakes.RESET
    if model == "caller" and body["messages"][-1]["role"] == "user":
        return Completion("", (fakes.call("lookup", {"order": 7}),))
    return ERRORS.get(model) if isinstance(model, str) else None


def upstream() -> StandIn:
    """The stand-in all SDK tests run against."""
    return StandIn(window=lambda model: WINDOW if model == "small" else 128_000, otherwise=play, key=KEY)


CONFIG: Final = {
    "upstreams": {"nowhere": {"provider": "openai", "base_url": "http://127.0.0.1:9/v1"}},
    "models": {"small": {"context_window": WINDOW, "tokenizer": "o200k"}, "unreachable": {"upstream": "nowhere"}},
}
"""The gateway's configuration for all of it. Port 9 is the discard port: nobody listens on it."""
