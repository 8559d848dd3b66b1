"""The errors of requests that could not be parsed: their HTTP is invalid, or their head is too long, too late or one of too many.

No text here quotes what the client sent, because a broken header may hold a key.
"""

from typing import Final

from aiohttp import http_exceptions, web

from gateway.serve.incoming.errors import ClientError

BAD_BODY: Final = "The request's body is not framed as HTTP demands: a bad chunk, a bad length, or it ended too soon."
_LONG_LINE: Final = "The request line or a header is longer than server.max_header."
_BAD_LINE: Final = "The request line is not valid HTTP."
_BAD_HEADER: Final = "A header of the request is not valid HTTP."
_BAD_REQUEST: Final = "The request is not valid HTTP."
_PARSER_ERRORS: Final[tuple[tuple[type[BaseException], int, str], ...]] = (
    (http_exceptions.LineTooLong, 431, _LONG_LINE),
    (http_exceptions.PayloadEncodingError, 400, BAD_BODY),
    (web.RequestPayloadError, 400, BAD_BODY),
    (http_exceptions.BadStatusLine, 400, _BAD_LINE),
    (http_exceptions.BadHttpMethod, 400, _BAD_LINE),
    (http_exceptions.InvalidURLError, 400, _BAD_LINE),
    (http_exceptions.InvalidHeader, 400, _BAD_HEADER),
)
"""The errors of aiohttp's parser, each with our status and message; the first matching row is used."""
_REASONS: Final = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}
"""The words behind the status of an unfinished head, in the first line of the answer."""


def malformed(error: BaseException | None) -> ClientError:
    """Return our error for an error of aiohttp's parser."""
    for kind, status, message in _PARSER_ERRORS:
        if isinstance(error, kind):
            return ClientError(status, message, code="malformed_request")
    return ClientError(400, _BAD_REQUEST, code="malformed_request")


def long_head(most_lines: int) -> ClientError:
    """Return the error for a head that is longer than ``most_lines`` lines of the greatest length."""
    message = f"The head of the request is longer than {most_lines} times server.max_header."
    return ClientError(431, message, code="headers_too_large")


def late_head(timeout_s: float) -> ClientError:
    """Return the error for a head that did not arrive within its time limit."""
    message = f"The head of the request did not arrive within server.header_timeout ({timeout_s:g} seconds)."
    return ClientError(408, message, code="request_timeout")


def too_many_heads() -> ClientError:
    """Return the error for the head that waits longest, when too many heads are unfinished."""
    message = "Too many requests have sent only a part of their head. Send yours again, whole."
    return ClientError(503, message, code="overloaded")


def encode_answer(answer: web.Response) -> bytes:
    """Return the answer to an unfinished head as the bytes of HTTP. aiohttp can write an answer only to a request that it has parsed."""
    body = answer.body if isinstance(answer.body, bytes) else b""
    headers = {**answer.headers, "Content-Length": str(len(body)), "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n{lines}\r\n".encode() + body
