"""The websocket mode of Responses: each stateless ``response.create`` message is folded like a request.

A message that continues an earlier response by its id passes unchanged, and so does everything else.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog
from aiohttp import web

from gateway.config import Mode, Route
from gateway.context.life.states import Ready
from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.endpoints import upstream_first
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.limits import check_request, check_text
from gateway.serve.request.mode import mode_of
from gateway.serve.request.place import Place
from gateway.serve.request.sessions import session_of
from gateway.serve.sockets.asking import Asking, ask
from gateway.serve.sockets.events import CREATE, event_of
from gateway.state.freeing import LEAST_FREED_BYTES
from gateway.upstream.client import Target
from gateway.wire.format import Conversation
from gateway.wire.responses import PATH, RESPONSES

log = structlog.get_logger(__name__)


class Message(NamedTuple):
    """A message for the upstream, and the fields of its record."""

    text: str
    asks: bool = False
    """Whether it asks for a response."""
    fields: Mapping[str, Any] = {}
    """Fields of the response's record."""
    asking: Asking | None = None
    """Its life; None when it cannot be retried in a smaller form."""
    event_id: Any = None
    """The client's name for it, where errors state it."""
    continues: str = ""
    """The id of the earlier response that it continues, if only the socket has that response: the client can send the whole conversation."""


def speaks_responses(request: web.BaseRequest) -> bool:
    """Return whether the socket speaks Responses."""
    return request.rel_url.raw_path == PATH


async def fold_message(gateway: Gateway, request: web.BaseRequest, target: Target, message: str) -> Message:
    """Return the message for the upstream. After a failure of our own it is the client's message, unchanged."""
    raw = message.encode()
    try:
        if (await event_of(gateway, message)).type == CREATE:
            return await _fold_create(gateway, request, target, message, raw)
        return Message(message)
    except Exception as error:  # noqa: BLE001  # promise 6
        gateway.failed("fold", error)
        return Message(message, True, {"why": "failed"})


async def _fold_create(gateway: Gateway, request: web.BaseRequest, target: Target, message: str, raw: bytes) -> Message:
    """Return a ``response.create`` message for the upstream: folded if it does not fit."""
    conversation = await gateway.threads.run(lambda: _read(gateway, raw), size_bytes=len(raw) // READS_FASTER)
    if len(raw) >= LEAST_FREED_BYTES:
        gateway.threads.free_later(conversation)  # it is freed once this message is sent
    if conversation is None:
        return Message(message, True, {"why": "not_understood"})
    place = await upstream_first.place_for(gateway, request, conversation, target)
    mode = _mode(request, place.route)
    fields = _fields_before_counting(request, conversation, place, mode)
    if conversation.refers_elsewhere:
        # Its beginning is known to the upstream alone, so it names no conversation.
        continues = _continued_here(conversation.head) if mode == "enforce" else ""
        return Message(message, True, fields | {"why": "stateful", "conversation": ""}, continues=continues)
    if mode == "off":
        return Message(message, True, fields | {"why": "off", "action": "off"})
    asking = await ask(gateway, conversation, mode, place)
    return Message(_text_to_send(message, asking.ready), True, fields | asking.fields(), asking)


def _continued_here(head: Mapping[str, Any]) -> str:
    """Return the id of the earlier response that a message continues, if no server stores it; else an empty text. What is stored, the client
    may have no more."""
    earlier = head.get("previous_response_id")
    return earlier if isinstance(earlier, str) and head.get("store") is False else ""


def _fields_before_counting(
    request: web.BaseRequest, conversation: Conversation, place: Place, mode: Mode
) -> dict[str, Any]:
    """Return the fields of a response's record that are known before its tokens are."""
    return {
        "model": conversation.model[: records.LONGEST_NAME],
        "model_used": place.model[: records.LONGEST_NAME],
        "upstream": place.target.name,
        "entry": place.window_source,
        "window": place.window,
        "format": RESPONSES.name,
        "mode": mode,
        "session": session_of(keys.forwarded(request), conversation.head),
        "conversation": records.name_of(records.of(request).caller, conversation.opening),
    }


def _text_to_send(message: str, ready: Ready) -> str:
    """Return the client's message if nothing is changed in it, else the message of the attempt."""
    attempt, visit, conversation = ready.attempt, ready.visit, ready.life.conversation
    if attempt.body is conversation.raw and not conversation.rewritten:
        return message
    if attempt.altered:
        log.info("message_folded", upstream=visit.place.upstream, tokens_before=visit.counted.prompt,
                 tokens_after=attempt.prompt, turns_folded=attempt.turns_folded)  # fmt: skip
    return attempt.body.decode()


def _read(gateway: Gateway, raw: bytes) -> Conversation | None:
    """Parse a message; None for one that is no conversation, too long, or too complex to inspect: the upstream judges it."""
    limits = gateway.settings.server
    if len(raw) > limits.max_folded:
        return None
    try:
        check_text(raw, limits)
        conversation = RESPONSES.parse(raw, gateway.memory)
        if conversation is not None:
            check_request(conversation, limits)
    except ClientError:
        return None
    return conversation


def _mode(request: web.BaseRequest, route: Route) -> Mode:
    """Return the mode of a message: the configured mode if the operator forbids the requested one."""
    try:
        return mode_of(request, route)
    except ClientError:
        return route.mode
