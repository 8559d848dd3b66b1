"""The configured key of an upstream in one of its errors: it is made unreadable before the client gets the error.

Some servers repeat a key that they do not know: ``Incorrect API key provided: sk-...``. The client may use the key, but must not have it.
"""

from contextlib import suppress
from typing import Final

from aiohttp import hdrs

from gateway.serve.answers.answer import LONGEST_ERROR, Answer, hold, readable
from gateway.serve.incoming.callers import is_credential
from gateway.upstream.client import Target
from gateway.upstream.response import AskFailed

LEAST_LENGTH: Final = 16
"""Characters of a key that is looked for, at least. Shorter ones are no secrets: ``EMPTY``, ``ollama``. They may stand in any error."""


def may_repeat_key(answer: Answer) -> bool:
    """Return whether an answer is an error of an upstream that was sent a configured key."""
    return answer.status >= 400 and bool(_keys_of(answer.target))


async def hold_error(answer: Answer) -> None:
    """Hold an error until it is complete, so that no key is cut in two. Of one longer than `LONGEST_ERROR` the beginning is held. After a failure
    the next reading fails again."""
    with suppress(AskFailed, TimeoutError):
        await hold(answer, LONGEST_ERROR)


def hide_key(answer: Answer) -> None:
    """Replace each character of the upstream's keys in the headers and the held body of an error by an asterisk."""
    keys = _keys_of(answer.target)
    headers = answer.response.headers
    for name, value in list(headers.items()):
        if any([key in value for key in keys]):
            headers[name] = _hidden(value.encode("utf-8", "surrogateescape"), keys).decode("utf-8", "surrogateescape")
    answer.held = _hidden(answer.held, keys)
    if answer.complete and hdrs.CONTENT_ENCODING in headers:
        text = readable(answer.response, answer.held)
        if (hidden := _hidden(text, keys)) != text:
            answer.held = hidden
            headers.popall(hdrs.CONTENT_LENGTH, None)
            del headers[hdrs.CONTENT_ENCODING]


def _keys_of(target: Target) -> list[str]:
    """Return the secrets that are configured for an upstream."""
    values = [target.endpoint.key, *[value for name, value in target.headers.items() if is_credential(name)]]
    secrets = [value.removeprefix("Bearer ") for value in values]
    return [secret for secret in secrets if len(secret) >= LEAST_LENGTH]


def _hidden(text: bytes, keys: list[str]) -> bytes:
    for key in keys:
        written = key.encode("utf-8", "surrogateescape")
        text = text.replace(written, b"*" * len(written))
    return text
