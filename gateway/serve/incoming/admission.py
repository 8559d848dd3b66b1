"""Admission: limit the requests, and the bytes of their bodies, that one process holds at a time.

Requests beyond the limit are refused at once with 503 and `retry-after`: a refused client tries again, a hanging one
does not. Health and readiness are never refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from aiohttp import hdrs, web

from gateway.config.values import Server
from gateway.serve.incoming.errors import ClientError
from gateway.state.freeing import LEAST_FREED_BYTES
from gateway.state.threads import INLINE, WorkThreads

RETRY_AFTER_S: Final = 1
"""Seconds. A large request takes about this long; SDKs wait and then lengthen the wait themselves."""


class Overloaded(ClientError):
    """There is no room for a request now; there will be soon."""

    def __init__(self, message: str) -> None:
        super().__init__(
            503,
            f"{message} Try again.",
            code="overloaded",
            type_="server_error",
            headers={"Retry-After": str(RETRY_AFTER_S)},
        )


class Held(msgspec.Struct, eq=False):
    """The place and the bytes that one request holds as long as it lasts."""

    admission: "Admission"
    most: int
    size_bytes: int = 0
    to_free: list[Any] = []
    """Values that are freed in a thread once the request has ended."""

    def add(self, size_bytes: int) -> None:
        """Count bytes that this request holds until it ends. Raises Overloaded."""
        self.admission.check_bytes(size_bytes, self.most, own=self.size_bytes)
        self.size_bytes += size_bytes
        self.admission.size_bytes += size_bytes

    def __enter__(self) -> None:
        self.admission.requests += 1
        self.admission.begun += 1

    def __exit__(self, *_: object) -> None:
        self.admission.requests -= 1
        self.admission.size_bytes -= self.size_bytes
        if self.to_free:
            self.admission.free(self.to_free)


HELD: Final = web.RequestKey("held", Held)


class Admission:
    """The bytes that all requests of one process hold."""

    def __init__(self, threads: WorkThreads) -> None:
        self.requests = 0
        """Requests under way."""
        self.begun = 0
        """All requests admitted since the start."""
        self.streams = 0
        """Answers that are being forwarded."""
        self.size_bytes = 0
        self._threads = threads

    def admitted(self, request: web.BaseRequest, limits: Server) -> Held:
        """Admit a request; the result is entered at once. Raises Overloaded when there is no room for it."""
        if self.requests >= limits.max_requests:
            raise Overloaded(f"server.max_requests ({limits.max_requests}) are under way.")
        if request.body_exists:
            self._check_body(request, limits)
        held = request[HELD] = Held(self, limits.max_in_flight)
        return held

    def free(self, values: list[Any]) -> None:
        """Free the large values of a request that has ended, in a thread. The list is emptied."""
        self._threads.free_later(*values)
        values.clear()

    def _check_body(self, request: web.BaseRequest, limits: Server) -> None:
        """Refuse by the announced size, before anything is read; the bytes that arrive are counted later. A compressed body counts as
        large."""
        announced = request.content_length
        if self._threads.full and (
            announced is None or announced >= INLINE or hdrs.CONTENT_ENCODING in request.headers
        ):
            raise Overloaded("Too many large requests wait for their turn.")
        self.check_bytes(announced or 0, limits.max_in_flight)

    def check_bytes(self, more: int, most: int, *, own: int = 0) -> None:
        """Raise Overloaded when ``more`` bytes exceed ``most``. A request that is alone is never refused; ``own`` are the bytes it holds."""
        if self.size_bytes > own and self.size_bytes + more > most:
            raise Overloaded(f"The bodies of the requests under way take server.max_in_flight ({most} bytes).")


@contextmanager
def streaming(request: web.BaseRequest) -> Iterator[None]:
    """Count a request among those whose answer is being forwarded."""
    held: Held | None = request.get(HELD)
    if held is None:
        yield
        return
    held.admission.streams += 1
    try:
        yield
    finally:
        held.admission.streams -= 1


def hold(request: web.BaseRequest, size_bytes: int) -> None:
    """Count bytes held for a request. Raises Overloaded when the process holds too many already."""
    held: Held | None = request.get(HELD)
    if held is not None:
        held.add(size_bytes)


@contextmanager
def holding(request: web.BaseRequest, size_bytes: int) -> Iterator[None]:
    """Count bytes that a request holds for a while. Raises Overloaded when the process holds too many already."""
    held: Held | None = request.get(HELD)
    if held is None:
        yield
        return
    held.add(size_bytes)
    try:
        yield
    finally:
        held.size_bytes -= size_bytes
        held.admission.size_bytes -= size_bytes


def free_later(request: web.BaseRequest, value: Any, size_bytes: int) -> None:
    """Free a value in a thread once the request has ended, if it was made of many bytes: on the event loop this would delay others."""
    held: Held | None = request.get(HELD)
    if held is not None and size_bytes >= LEAST_FREED_BYTES:
        held.to_free.append(value)
