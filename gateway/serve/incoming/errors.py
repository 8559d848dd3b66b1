"""Our own errors in the JSON shape of the client's API, so that every SDK raises the class its users expect."""

from collections.abc import Mapping
from typing import Final

import orjson
from aiohttp import web

from gateway.upstream.client import UpstreamUnreachable
from gateway.wire.chat import CHAT
from gateway.wire.format import Format

JSON: Final = "application/json"


class ClientError(Exception):
    """The client's request is wrong, and the client can correct it. Answered, never logged as a fault."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        type_: str = "invalid_request_error",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.code = code
        self.type = type_


OUR_FAULT: Final = ClientError(
    500, "The gateway failed; this is its own fault.", code="internal_error", type_="server_error"
)
"""The answer to a bug of our own."""


def body_of(message: str, *, code: str, type_: str, param: str | None = None) -> bytes:
    """Return the bytes of an error in the shape that OpenAI documents:
    https://platform.openai.com/docs/guides/error-codes."""
    return orjson.dumps({"error": {"message": message, "type": type_, "param": param, "code": code}})


def response(
    error: ClientError | UpstreamUnreachable,
    headers: Mapping[str, str] | None = None,
    *,
    close: bool = False,
    format: Format = CHAT,
) -> web.Response:
    """Return the response for one of our own errors, in the shape of the client's API."""
    answer = web.Response(
        status=error.status,
        body=format.error(str(error), error.code, error.type, None),
        headers=headers,
        content_type=JSON,
    )
    if isinstance(error, ClientError):
        answer.headers.update(error.headers)
    if close:
        answer.force_close()
    return answer


def too_long(window: int, needed: int, reserve: int, largest: str) -> bytes:
    """Return the honest refusal, recognisable by its code and by its message.

    langchain-openai and LiteLLM look for ``context_length_exceeded`` or "maximum context length" in the message text.
    """
    message = (
        f"context_length_exceeded: This model's maximum context length is {window} tokens. However, the smallest form of "
        f"this request that keeps its meaning still needs about {needed} tokens, with {reserve} more reserved for the answer. "
        f"Largest parts: {largest}. Shorten these, or configure a model with a larger window."
    )
    return body_of(message, code="context_length_exceeded", type_="invalid_request_error", param="messages")
