"""The limits of a socket's key: a message beyond them is refused by an event, and the socket stays open."""

import asyncio
from typing import Final

from gateway.serve import key_limits
from gateway.serve.gateway import Gateway
from gateway.serve.record import Record
from gateway.serve.sockets.events import CREATE, Event, Frame, Refused, event_of, refusal
from gateway.serve.sockets.pending import PendingResponses

KNOWN_S: Final = 1.0
"""Seconds for which it is taken as known whether a key has tokens left: audio arrives in fifty frames a second."""
STOPS: Final = frozenset({"response.cancel", "input_audio_buffer.clear", "output_audio_buffer.clear"})
"""Types of messages that pass also if no tokens are left, because they only save some."""


class Limits:
    """The limits of the key of one socket, with its record, ``socket_record``."""

    def __init__(
        self, gateway: Gateway, socket_record: Record, pending: PendingResponses, *, speaks_responses: bool
    ) -> None:
        self._gateway, self._socket_record, self._pending = gateway, socket_record, pending
        self._speaks_responses = speaks_responses
        self._known_until = 0.0
        self._used_up: key_limits.RateLimited | None = None

    async def check(self, frame: Frame) -> None:
        """Raise Refused for a client's frame if the key has no tokens left, unless its message only saves some."""
        used_up = await self._when_used_up()
        if used_up is None:
            return
        event = await event_of(self._gateway, frame.text or "")
        if not (isinstance(event.type, str) and event.type in STOPS):
            raise self._refused(frame, event, used_up)

    async def refused(self, frame: Frame, error: key_limits.RateLimited) -> Refused:
        """Return the refusal of a client's frame that asks for more than the key has left, and record it."""
        return self._refused(frame, await event_of(self._gateway, frame.text or ""), error)

    async def _when_used_up(self) -> key_limits.RateLimited | None:
        """Return the error for any message of a key that has used up its tokens; None while some are left."""
        now = asyncio.get_running_loop().time()
        if now >= self._known_until:
            self._used_up = await key_limits.used_up(self._gateway, self._socket_record.arrival)
            self._known_until = now + KNOWN_S
        return self._used_up

    def _refused(self, frame: Frame, event: Event, error: key_limits.RateLimited) -> Refused:
        """Return the refusal of a message, and record it if it asks for a response."""
        if event.type == CREATE:
            self._pending.refuse(len(frame.content), error.code)
        text = refusal(error, self._gateway.request_id(), event, speaks_responses=self._speaks_responses)
        self._socket_record.count_sent(len(text))
        return Refused(text)
