"""The time limit for a client that does not read its answer."""

import asyncio


class WriteTimeout:
    """Cuts a connection off if its client takes none of the bytes that wait for it, for ``timeout_s`` seconds.

    Closing the connection would not do: that waits until all bytes are sent.
    """

    __slots__ = ("_loop", "_timeout_s", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._timer: asyncio.TimerHandle | None = None

    def start(self, transport: asyncio.WriteTransport | None) -> None:
        """Start the time, if bytes wait for the client and it is not running."""
        if transport is None or self._timer is not None:
            return
        if unsent := transport.get_write_buffer_size():
            self._timer = self._loop.call_later(self._timeout_s, self._check, transport, unsent)

    def stop(self) -> None:
        """Stop the time: the client has taken enough, or has left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, transport: asyncio.WriteTransport, unsent: int) -> None:
        """Cut the client off if it has taken nothing since ``unsent`` bytes waited for it; else start again."""
        self._timer = None
        if transport.get_write_buffer_size() >= unsent:
            transport.abort()
        else:
            self.start(transport)
