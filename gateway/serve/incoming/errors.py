"""Our own errors in the JSON shape of the client's API, so that every SDK raises the class its users expect."""

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from gateway.upstream.client import UpstreamUnreachable
from gateway.wire.chat import CHAT
from gateway.wire.format import Format

JSON: Final = "application/json"
Failed = Callable[[str, Exception], None]
"""Counts and logs a fault of our own that was survived: the part that failed, and the error."""


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
