"""The records of a socket's turns: each response on a WebSocket leaves one record, as a request over HTTP would.

On a Responses socket a turn begins with the client's ``response.create``. On others, such as ``/v1/realtime``, it begins
with the upstream's ``response.created``, because the upstream also answers speech by itself. Turns end in their order.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.observe.exchange import Call, Exchange
from gateway.serve import keys
from gateway.serve.gateway import Gateway
from gateway.serve.record import CLIENT_GONE, LONGEST_NAME, Record
from gateway.wire.views import event_type
from providers.usage import read_usage

MOST_OPEN: Final = 100
"""Open turns on one socket; beyond this number the oldest is recorded as unfinished. Chosen: APIs allow one or two at a time."""
CREATED: Final = "response.created"
FAILED: Final = "response.failed"
ERROR: Final = "error"
DONE: Final = frozenset({"response.completed", "response.incomplete", "response.done", FAILED})
"""Types of the last event of a response."""


class _Refusal(msgspec.Struct):
    """The status of an ``error`` event; Responses sockets have one."""

    status: Any = None


_refusal: Final = msgspec.json.Decoder(_Refusal).decode


class PendingResponse(msgspec.Struct):
    """One response that was asked for and has not ended."""

    request_id: str
    body_bytes: int
    facts: Mapping[str, Any]
    """Fields of its record that were decided when it was sent."""
    started: float = msgspec.field(default_factory=time.perf_counter)
    first_byte: float = 0.0
    answer_bytes: int = 0
    refused: tuple[Call, ...] = ()
    """Refused calls that the client did not see, because a smaller message followed."""


class Turns:
    """The open turns of one socket, whose own record is ``socket``."""

    def __init__(self, gateway: Gateway, socket: Record, method: str, path: str, *, opened_by_client: bool) -> None:
        self._gateway = gateway
        self._socket = socket
        self._method, self._path = method, path
        self._opened_by_client = opened_by_client
        self._open: deque[PendingResponse] = deque()
        self._conversation = ""

    async def open(self, body_bytes: int, facts: Mapping[str, Any]) -> None:
        """Open a turn: the client asks for a response. Raises RateLimited when its key has not enough left."""
        request_id = self._gateway.request_id()
        window = facts.get("window") or self._gateway.settings.default_window
        await keys.admit_turn(self._gateway, self._socket, request_id, body_bytes, window)
        self._add(request_id, body_bytes, facts)

    def _add(self, request_id: str, body_bytes: int, facts: Mapping[str, Any]) -> None:
        """Add an open turn. One that continues an earlier response belongs to the socket's conversation."""
        self._conversation = facts.get("conversation") or self._conversation
        self._open.append(PendingResponse(request_id, body_bytes, {**facts, "conversation": self._conversation}))
        if len(self._open) > MOST_OPEN:
            self._record(self._open.popleft(), CLIENT_GONE, "unfinished")

    @property
    def count(self) -> int:
        """How many turns are open."""
        return len(self._open)

    def add_retry(self, call: Call, facts: Mapping[str, Any]) -> None:
        """Add a refused call to the newest turn, with the fields of the smaller message that was sent instead."""
        turn = self._open[-1]
        turn.refused += (call,)
        turn.facts = {**turn.facts, **facts}

    def read(self, text: str) -> None:
        """Read an event that was forwarded to the client; the last one of a response ends its turn."""
        try:
            self._read(text)
        except Exception as error:  # noqa: BLE001  # promise 6: the socket goes on without the record
            self._gateway.failed("record", error)

    def _read(self, text: str) -> None:
        raw = text.encode("utf-8", "surrogatepass")
        kind = event_type(raw)
        if kind == CREATED and not self._opened_by_client:
            self._add(self._gateway.request_id(), 0, {})
        if not self._open:
            return
        turn = self._open[0]
        turn.first_byte = turn.first_byte or time.perf_counter()
        turn.answer_bytes += len(raw)
        if kind in DONE or (kind == ERROR and self._opened_by_client):
            status = 200 if kind in DONE and kind != FAILED else _status(raw)
            self._record(self._open.popleft(), status, "response_failed" if kind == FAILED else "", raw)

    def close(self) -> None:
        """Record the turns that the end of the socket interrupted."""
        while self._open:
            self._record(self._open.popleft(), CLIENT_GONE, "unfinished")

    def _record(self, turn: PendingResponse, status: int, error: str, last_event: bytes = b"") -> None:
        socket, total_s = self._socket, time.perf_counter() - turn.started
        usage = read_usage(last_event)
        model = turn.facts.get("model_used") or socket.model_used
        found = Exchange.passed(
            turn.request_id,
            "websocket",
            status,
            upstream=socket.upstream,
            model=socket.model[:LONGEST_NAME],
            model_used=model[:LONGEST_NAME],
            attempts=1 + len(turn.refused),
            body_bytes=turn.body_bytes,
            answer_bytes=turn.answer_bytes,
            prompt_tokens=usage.prompt if usage else None,
            completion_tokens=usage.completion if usage else None,
            cached_tokens=usage.cached if usage else None,
            written_tokens=usage.written if usage else None,
            first_byte_s=max(turn.first_byte - turn.started, 0.0),
            total_s=total_s,
            at=time.time() - total_s,
            client=socket.client,
            key=socket.key.name if socket.key else "",
            caller=socket.caller,
            method=self._method,
            path=self._path,
            stream=True,
            calls=(*turn.refused, Call(socket.upstream, model[:LONGEST_NAME], status, seconds=total_s)),
        )
        ended = {"error": error, "action": "error"} if error else {}
        self._gateway.observe(replace(found, **{**turn.facts, **ended}))


def _status(raw: bytes) -> int:
    """Return the status that an error event states; 500 without one."""
    try:
        status = _refusal(raw).status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 500
    return status if isinstance(status, int) and 400 <= status <= 599 else 500
