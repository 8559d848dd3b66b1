"""Retries on a Responses socket: events before the content of an answer are held, and a message refused as too long is sent again, smaller.

Of a message that continues an earlier response we have only the newest part. Then the client is asked for the whole conversation, which is folded.

Only one unanswered message is watched at a time: with two, it is unknown which one a refusal is about.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

import structlog

from gateway.context.life.events import ReplyCame
from gateway.context.life.replies import Reply
from gateway.context.life.states import Ready
from gateway.context.life.transitions import advance
from gateway.serve.answers.answer import LONGEST_HEAD, LONGEST_HOLD_S
from gateway.serve.gateway import Gateway
from gateway.serve.request.decisions import run_decisions
from gateway.serve.request.sending import call_of
from gateway.serve.sockets.asking import SOCKET_DECISIONS, Asking
from gateway.serve.sockets.events import ERROR, Frame, not_found, read_event
from gateway.serve.sockets.pending import PendingResponses
from gateway.upstream.client import Target
from gateway.upstream.refusals import refusal_from
from gateway.wire.responses import RESPONSES
from gateway.wire.views import event_type

log = structlog.get_logger(__name__)

FAILURES: Final = frozenset({ERROR, "response.failed", ""})
"""Types of events that may refuse a message; some relays send an error without a type."""
REFUSED: Final = 400
"""The status of a refusal over HTTP. An event on a socket has no status of its own."""


class Retries:
    """The unanswered message of one socket, and the events held for it. ``send`` sends a message to the upstream."""

    def __init__(
        self, gateway: Gateway, target: Target, pending: PendingResponses, send: Callable[[str], Awaitable[None]]
    ) -> None:
        self._gateway, self._target, self._pending, self._send = gateway, target, pending, send
        self._asking: Asking | None = None
        self._continued = ""
        """The id of the response that the unanswered message continues, if its client can send the whole conversation."""
        self._hold = ExitStack()
        self._held: list[Frame] = []
        self._deadline: float | None = None

    def watch(self, asking: Asking, hold: ExitStack) -> None:
        """Watch a message that is sent, unless an earlier one is unanswered. ``hold`` counts its bytes until its answer begins."""
        if self._pending.count > 1:
            self._forget()
            hold.close()
            return
        self._asking, self._hold = asking, hold

    def watch_continued(self, earlier: str) -> None:
        """Watch a message that is sent and continues a response which only this socket has, unless an earlier message is unanswered."""
        self._forget()
        if self._pending.count == 1:
            self._continued = earlier

    @property
    def patience_s(self) -> float | None:
        """Seconds for which the held events may still be held; None when there are none."""
        return None if self._deadline is None else max(self._deadline - asyncio.get_running_loop().time(), 0.0)

    def release(self) -> list[Frame]:
        """Stop holding events, and return those that were held."""
        self._forget()
        held, self._held, self._deadline = self._held, [], None
        return held

    def _forget(self) -> None:
        self._asking = None
        self._continued = ""
        self._hold.close()

    @property
    def _is_watching(self) -> bool:
        return self._asking is not None or bool(self._continued)

    async def receive(self, frame: Frame) -> list[Frame]:
        """Take the upstream's next frame; return those that now go to the client."""
        if not self._is_watching or frame.text is None:
            return [*self.release(), frame]
        raw = frame.text.encode("utf-8", "surrogatepass")
        begun = not RESPONSES.is_preamble(raw)
        if begun and event_type(raw) in FAILURES:
            if self._asking is not None and await self._retry(self._asking, raw):
                self._held, self._deadline = [], None
                return []
            if self._continued and (instead := self._ask_for_whole(self._continued, raw)):
                self._held = []
                self.release()
                return [Frame(instead, instead)]
        self._held.append(frame)
        if begun or not self._is_watching or sum(len(held.content) for held in self._held) > LONGEST_HEAD:
            return self.release()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + LONGEST_HOLD_S
        return []

    def _ask_for_whole(self, earlier: str, raw: bytes) -> str:
        """Return the event with which the client is asked for the whole conversation, if an event refuses its newest part as too long; else an
        empty text."""
        try:
            if refusal_from(self._target.provider, RESPONSES, 200, raw) is None:
                return ""
            log.info("whole_asked_for", upstream=self._target.name)
            return not_found(earlier, read_event(raw))
        except Exception as error:  # noqa: BLE001  # promise 6: the client gets the refusal
            self._gateway.failed("ladder", error)
            return ""

    async def _retry(self, asking: Asking, raw: bytes) -> bool:
        """Send a smaller message if the event refuses the last one as too long; return whether one was sent."""
        try:
            refusal = refusal_from(self._target.provider, RESPONSES, 200, raw)
            if refusal is None:
                return False
            refused = advance(asking.state, ReplyCame(Reply(REFUSED, refusal, raw)))
            following = await run_decisions(asking, refused, SOCKET_DECISIONS)
            if not isinstance(following, Ready) or self._asking is not asking:
                return False
            call = call_of(asking.ready, REFUSED, refusal)
            asking.state = following
            self._pending.add_retry(call, asking.fields())
        except Exception as error:  # noqa: BLE001  # promise 6: the client gets the refusal
            self._gateway.failed("ladder", error)
            return False
        await self._send(following.attempt.body.decode())
        return True
