"""An upstream's answer, read just far enough to know whether it is a refusal, and not a byte further."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp

from gateway.serve.encoding import inflater
from gateway.upstream.client import Target, UpstreamUnreachable
from providers.record import Refusal
from providers.sse import Events

EVENTS: Final = "text/event-stream"
# An error body is read whole to be understood; real ones are a few KB, a page of HTML some more.
LONGEST_ERROR: Final = 2**20
# A plain JSON answer up to this size is held until complete: it may be an error with status 200.
LONGEST_HELD: Final = 2**16
# A stream is held for its first event; a server that sends more than this without one is simply handed on.
LONGEST_HEAD: Final = 2**18


@dataclass(slots=True)
class Answer:
    """What came back: the head, the bytes held so far, and what they say about size."""

    target: Target
    response: aiohttp.ClientResponse
    held: bytes = b""
    text: bytes = b""
    """What is held, decoded, where it was read."""
    complete: bool = False
    """Nothing follows what is held."""
    refusal: Refusal | None = None
    empty_stream: bool = False
    """A stream that ended without one event: how some servers refuse what is too long (case 123)."""

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def is_stream(self) -> bool:
        return self.response.headers.get("Content-Type", "").lower().startswith(EVENTS)

    def drop(self) -> None:
        """Let go of the answer. One that came whole has given its connection back by itself; any other is closed."""
        if not self.response.closed:
            self.response.close()


async def look(target: Target, response: aiohttp.ClientResponse) -> Answer:
    """Read an answer as far as it takes to recognise a refusal.

    Errors are read whole, a plain answer is held while it is short, a stream up to its first event (comments and
    keep-alives before it included). Raises UpstreamUnreachable when the upstream breaks off in the middle of that.
    """
    answer = Answer(target, response)
    try:
        if response.status >= 400:
            await _hold(answer, LONGEST_ERROR)
            answer.text = readable(response, answer.held)
            answer.refusal = target.provider.read_refusal(response.status, answer.text, "http")
        elif answer.is_stream:
            await _hold_first_event(answer)
        elif response.status == 200:
            await _hold(answer, LONGEST_HELD)
            answer.text = readable(response, answer.held)
            if answer.complete:
                answer.refusal = target.provider.read_refusal(200, answer.text, "http")
    except (aiohttp.ClientError, OSError) as error:
        response.close()
        timed_out = isinstance(error, TimeoutError)
        reason = "stopped answering" if timed_out else "broke off in the middle of its answer"
        raise UpstreamUnreachable(target.name, reason, timed_out=timed_out) from error
    except BaseException:
        response.close()
        raise
    return answer


async def _hold(answer: Answer, longest: int) -> None:
    content = answer.response.content
    first = content.read_nowait() if content.is_eof() else await content.readany()
    if content.at_eof():
        answer.held, answer.complete = first, True
        return
    pieces, size = [first], len(first)
    while size < longest:
        chunk = await content.readany()
        if not chunk:
            answer.complete = True
            break
        pieces.append(chunk)
        size += len(chunk)
    answer.held = b"".join(pieces)


async def _hold_first_event(answer: Answer) -> None:
    events, decode = Events(), decoder(answer.response)
    held = b""
    while len(held) < LONGEST_HEAD:
        chunk = await answer.response.content.readany()
        if not chunk:
            answer.complete = True
            first = events.close()
        else:
            held += chunk
            first = events.feed(decode(chunk))
        answer.held = held
        if first:
            answer.refusal = answer.target.provider.read_refusal(answer.status, first[0].data, "sse")
            return
        if answer.complete:
            answer.empty_stream = True
            return


def readable(response: aiohttp.ClientResponse, body: bytes) -> bytes:
    """A decoded copy of a compressed body; what cannot be decoded is answered as it is."""
    return decoder(response)(body) if "Content-Encoding" in response.headers else body


def decoder(response: aiohttp.ClientResponse) -> Callable[[bytes], bytes]:
    """Answer a function that decodes a body piece by piece, for reading along; the bytes handed on stay encoded."""
    inflate = inflater(response.headers)
    if inflate is None:
        return _as_is

    def decode(chunk: bytes) -> bytes:
        try:
            return inflate.decompress(chunk, LONGEST_ERROR)
        except zlib.error:
            return b""

    return decode


def _as_is(chunk: bytes) -> bytes:
    return chunk
