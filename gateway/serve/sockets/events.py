"""The events of a socket: how they are read from frames, and how a message is refused by one."""

from typing import Any, Final, NamedTuple

import msgspec
import orjson
from msgspec.structs import replace

from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.incoming.errors import ClientError
from gateway.wire.binary import message_in
from gateway.wire.model_name import may_differ, values_in_any_case
from gateway.wire.surrogates import repaired

CREATE: Final = "response.create"
"""The type of a client's message that asks for a response."""
_QUOTED_CREATE: Final = b'"response.create"'
ERROR: Final = "error"


class Frame(NamedTuple):
    """The content of a frame."""

    content: str | bytes
    text: str | None
    """The message in it; None in a binary frame without one, such as audio."""


async def frame_of(gateway: Gateway, content: str | bytes) -> Frame:
    """Read the message in a frame. Many servers and clients read one in a binary frame as they read a text."""
    if isinstance(content, str):
        return Frame(content, content)
    text = await gateway.threads.run(lambda: message_in(content), size_bytes=len(content) // READS_FASTER)
    return Frame(content, text)


class Event(msgspec.Struct):
    """The members of an event that are read. The decoder skips the others, such as audio."""

    type: Any = None
    event_id: Any = None
    """The sender's name for the event. In Realtime, an error states that of the message which it is about."""
    stream_id: Any = None
    """The client's name for one of several responses at once on a Responses socket."""
    status: Any = None
    """The status of an error; on Responses sockets alone."""
    error: Any = None

    @property
    def fault(self) -> dict[str, Any]:
        """Return the members of the error."""
        return self.error if isinstance(self.error, dict) else {}


_event: Final = msgspec.json.Decoder(Event).decode


def read_event(raw: bytes) -> Event:
    """Return what is read of an event, also of one that strict parsers refuse. One that cannot be read, because it is nested too deep, asks
    for a response if it may: some servers read it."""
    try:
        return _event(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        whole = repaired(raw)
        if whole is not raw:
            return read_event(whole)
        return Event(CREATE) if _QUOTED_CREATE in raw else Event()


def read_message(raw: bytes) -> Event:
    """Return what is read of a client's message. Servers differ in which type they read if it stands twice, or in other letters. Such a message
    asks for a response if one of its types does; else its type is unknown."""
    event = read_event(raw)
    if event.type == CREATE or not may_differ(raw, "type"):
        return event
    kinds = values_in_any_case(raw, "type")
    if CREATE in kinds:
        return replace(event, type=CREATE)
    return event if kinds == [event.type] else replace(event, type=None)


async def event_of(gateway: Gateway, text: str) -> Event:
    """Return what is read of a client's message; a long one is read in a thread."""
    raw = text.encode("utf-8", "surrogatepass")
    return await gateway.threads.run(lambda: read_message(raw), size_bytes=len(raw) // READS_FASTER)


class NotServed(Exception):
    """A message must not reach the upstream of its socket, which is closed. The text is the code that the client gets."""


class Refused(Exception):
    """A message is not sent on, and its socket stays open. The text is the event that the client gets."""


def refusal(error: ClientError, request_id: str, message: Event, *, speaks_responses: bool) -> str:
    """Return the event that refuses a client's message.

    Responses: https://developers.openai.com/api/docs/guides/websocket-mode. Realtime:
    https://platform.openai.com/docs/api-reference/realtime-server-events/error.
    """
    fault = {"type": error.type, "code": error.code, "message": str(error), "param": None}
    if speaks_responses:
        event: dict[str, Any] = {"status": error.status, "error": {**fault, "headers": dict(error.headers)}}
        if message.stream_id is not None:
            event["stream_id"] = message.stream_id
    else:
        event = {"event_id": f"event_{request_id}", "error": {**fault, "event_id": message.event_id}}
    return orjson.dumps({"type": ERROR, **event}).decode()


def not_found(earlier: str, refused: Event) -> str:
    """Return the event that says that an earlier response is not there, instead of the event that ``refused`` the message: the client then
    sends the whole conversation (https://developers.openai.com/api/docs/guides/websocket-mode)."""
    fault = {
        "type": "invalid_request_error",
        "code": "previous_response_not_found",
        "message": f"Previous response with id '{earlier}' not found.",
        "param": "previous_response_id",
    }
    event: dict[str, Any] = {"type": ERROR, "status": 400, "error": fault}
    if refused.stream_id is not None:
        event["stream_id"] = refused.stream_id
    return orjson.dumps(event).decode()
