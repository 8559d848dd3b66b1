"""The pending responses of a socket, and their records: each response leaves one record, as a request over HTTP would.

A response is pending from the client's ``response.create`` to its last event. On sockets that do not speak Responses, such as
``/v1/realtime``, its events begin with the upstream's ``response.created``. If no ``response.create`` came before it, it makes a response
pending, too: the upstream also answers speech by itself. Responses end in their order.
"""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.observe.exchange import CLIENT_GONE_STATUS, Call, Exchange
from gateway.serve import key_limits
from gateway.serve.gateway import Gateway
from gateway.serve.record import LONGEST_NAME, Record
from gateway.serve.sockets.events import ERROR, Event, Frame, read_event
from gateway.state.rates import BYTES_PER_TOKEN
from gateway.wire.responses import RESPONSES
from providers.usage import read_usage

MOST_PENDING: Final = 100
"""Pending responses of one socket. Beyond this number the oldest is recorded as unfinished. Chosen: APIs allow one or two at a time."""
CREATED: Final = "response.created"
FAILED: Final = "response.failed"
TRANSCRIBED: Final = "conversation.item.input_audio_transcription.completed"
"""The type of the event that states the bill of a transcription: its model is another one than that of the responses."""
DONE: Final = frozenset({"response.completed", "response.incomplete", "response.done", FAILED})
"""Types of the last event of a response."""
TOO_MANY: Final = 429
"""The status of a message that is refused for a limit of its key."""


class PendingResponse(msgspec.Struct):
    """One response that was asked for and has not ended."""

    request_id: str
    body_bytes: int
    fields: Mapping[str, Any]
    """Fields of its record that were decided when it was sent."""
    event_id: Any = None
    """The client's name for the message that asks for it."""
    begun: bool = False
    """Whether the events that come may be its own."""
    started: float = msgspec.field(default_factory=time.perf_counter)
    first_byte: float = 0.0
    answer_bytes: int = 0
    refused: tuple[Call, ...] = ()
    """Refused calls that the client did not see, because a smaller message followed."""


class PendingResponses:
    """The pending responses of one socket, in their order. ``socket_record`` is the record of the socket itself."""

    def __init__(
        self, gateway: Gateway, socket_record: Record, method: str, path: str, *, speaks_responses: bool
    ) -> None:
        self._gateway = gateway
        self._socket_record = socket_record
        self._method, self._path = method, path
        self._speaks_responses = speaks_responses
        self._pending: deque[PendingResponse] = deque()
        self._conversation = ""
        self._context_bytes = 0
        """The size of what the upstream keeps of a Realtime conversation, as its last bill states it: the next response reads it."""

    async def add(self, body_bytes: int, fields: Mapping[str, Any], event_id: Any) -> None:
        """Add a response that the client asks for. Raises RateLimited when its key has not enough left."""
        response = self._new(body_bytes, fields, event_id)
        window = fields.get("window") or self._gateway.settings.default_window
        read_bytes = body_bytes + self._context_bytes
        await key_limits.admit_response(
            self._gateway, self._socket_record.arrival, response.request_id, read_bytes, window
        )
        response.begun = self._speaks_responses
        self._append(response)

    def refuse(self, body_bytes: int, code: str) -> None:
        """Record a message that asked for a response and was not sent."""
        self._record(self._new(body_bytes, {}), TOO_MANY, code, calls=())

    def _new(self, body_bytes: int, fields: Mapping[str, Any], event_id: Any = None) -> PendingResponse:
        """Return a new response. One that continues an earlier response belongs to the socket's conversation."""
        conversation = fields.get("conversation") or self._conversation
        fields = {**fields, "conversation": conversation}
        return PendingResponse(self._gateway.request_id(), body_bytes, fields, event_id)

    def _append(self, response: PendingResponse) -> None:
        self._conversation = response.fields["conversation"]
        self._pending.append(response)
        if len(self._pending) > MOST_PENDING:
            self._record(self._pending.popleft(), CLIENT_GONE_STATUS, "unfinished")

    @property
    def count(self) -> int:
        """How many responses are pending."""
        return len(self._pending)

    def add_retry(self, call: Call, fields: Mapping[str, Any]) -> None:
        """Add a refused call to the newest response, with the fields of the smaller message that was sent instead."""
        response = self._pending[-1]
        response.refused += (call,)
        response.fields = {**response.fields, **fields}

    async def read(self, frame: Frame) -> None:
        """Read what was forwarded to the client; the last event of a response ends it."""
        self._socket_record.count_sent(len(frame.content))
        if frame.text is None:
            return
        try:
            await self._read(frame.text.encode("utf-8", "surrogatepass"))
        except Exception as error:  # noqa: BLE001  # promise 6: the socket goes on without the record
            self._gateway.failed("record", error)

    async def _read(self, raw: bytes) -> None:
        event = read_event(raw)
        if not self._speaks_responses:
            await self._read_realtime(event, raw)
        elif event.type == CREATED:
            self._remember(raw)
        if not self._pending or not self._pending[0].begun:
            return
        response = self._pending[0]
        response.first_byte = response.first_byte or time.perf_counter()
        response.answer_bytes += len(raw)
        if event.type in DONE or (event.type == ERROR and self._speaks_responses):
            failed = event.type == FAILED
            status = 200 if event.type in DONE and not failed else _status(event)
            self._record(self._pending.popleft(), status, "response_failed" if failed else "", raw)

    async def _read_realtime(self, event: Event, raw: bytes) -> None:
        """Read an event that begins a response, refuses one, or bills a transcription."""
        if event.type == CREATED:
            await self._begin()
        elif event.type == ERROR:
            self._end_refused(event)
        elif event.type == TRANSCRIBED and read_usage(raw) is not None:
            fields = {"model": "", "model_used": ""}
            self._record(PendingResponse(self._gateway.request_id(), 0, fields), 200, "", raw, calls=())

    def _remember(self, raw: bytes) -> None:
        """Remember which upstream made a response, if there is another one."""
        identity = self._socket_record.arrival.identities.get(self._socket_record.upstream)
        if identity is not None and len(self._gateway.setup.targets) > 1:
            self._gateway.known_ids.add(RESPONSES.ids.made(raw), identity.scope)

    async def _begin(self) -> None:
        """Begin the first response that the client asked for. If there is none, the upstream answers speech by itself: add a new response. It
        cannot be refused, but its tokens are reserved, so that the key has less left for others."""
        response = next((response for response in self._pending if not response.begun), None)
        if response is not None:
            response.begun = True
            return
        response = self._new(0, {})
        response.begun = True
        self._append(response)
        with suppress(key_limits.RateLimited):
            window = self._gateway.settings.default_window
            await key_limits.reserve(
                self._gateway,
                self._socket_record.arrival,
                self._context_bytes,
                window,
                None,
                response_id=response.request_id,
            )

    def _end_refused(self, event: Event) -> None:
        """End the response that an error is about: one that the upstream has not begun, of the message that the error names."""
        about = event.fault.get("event_id")
        response = next(
            (response for response in self._pending if not response.begun and response.event_id == about), None
        )
        if response is not None:
            self._pending.remove(response)
            self._record(response, _status(event), "")

    def close(self) -> None:
        """Record the responses that the end of the socket interrupted."""
        while self._pending:
            self._record(self._pending.popleft(), CLIENT_GONE_STATUS, "unfinished")

    def _record(
        self,
        response: PendingResponse,
        status: int,
        error: str,
        last_event: bytes = b"",
        *,
        calls: tuple[Call, ...] | None = None,
    ) -> None:
        """Make the record of a response. ``calls`` is given for one without a call of its own."""
        socket, total_s = self._socket_record, time.perf_counter() - response.started
        usage = read_usage(last_event)
        model = response.fields.get("model_used") or socket.model_used
        if calls is None:
            calls = (*response.refused, Call(socket.upstream, model[:LONGEST_NAME], status, seconds=total_s))
            if usage is not None and not self._speaks_responses:
                self._context_bytes = (usage.prompt + (usage.completion or 0)) * BYTES_PER_TOKEN
        found = Exchange.passed(
            response.request_id,
            "websocket",
            status,
            upstream=socket.upstream,
            model=socket.model[:LONGEST_NAME],
            model_used=model[:LONGEST_NAME],
            attempts=len(calls),
            body_bytes=response.body_bytes,
            answer_bytes=response.answer_bytes,
            usage=usage,
            first_byte_s=max(response.first_byte - response.started, 0.0),
            total_s=total_s,
            at=time.time() - total_s,
            client=socket.arrival.client,
            key=socket.arrival.key.name if socket.arrival.key else "",
            caller=socket.caller,
            method=self._method,
            path=self._path,
            stream=True,
            calls=calls,
        )
        ended = {"error": error, "action": "error"} if error else {}
        self._gateway.observe(replace(found, **{**response.fields, **ended}))


def _status(event: Event) -> int:
    """Return the status of an error; 500 if it states none, and no fault of the client."""
    if isinstance(event.status, int) and 400 <= event.status <= 599:
        return event.status
    return 400 if event.fault.get("type") == "invalid_request_error" else 500
