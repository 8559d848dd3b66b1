"""A client's request while it is served: what belongs to it, and what is closed at its end."""

import msgspec
from aiohttp import hdrs, web
from multidict import CIMultiDict

from gateway.config import Route
from gateway.context.life.states import State, replies_in
from gateway.observe.exchange import CLIENT_GONE, CLIENT_GONE_STATUS, Call
from gateway.serve import arrival as arrivals
from gateway.serve import keys
from gateway.serve.answers.answer import Answer
from gateway.serve.arrival import Arrival
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.callers import Identity
from gateway.serve.incoming.encoding import readable_encodings
from gateway.serve.request.contents import AttemptContents
from gateway.serve.request.outcome import Delivery, Outcome
from gateway.serve.request.sessions import session_of
from gateway.upstream.client import Target
from gateway.wire.format import Conversation


class ServedRequest(msgspec.Struct, eq=False):
    """A client's request while it is served: its bytes, the configuration at its start, and everything that was opened for it.

    What decides about the request is in its state (`gateway.context.life.states`). What changes here is only closed at the end, or recorded.
    """

    gateway: Gateway
    setup: Setup
    request: web.BaseRequest
    arrival: Arrival
    raw: bytes
    """The body in its original content encoding."""
    route: Route
    headers: CIMultiDict[str]
    """The client's headers as an upstream may get them (`keys.forwarded`). Each attempt adds its upstream's key (`sending`)."""
    request_id: str
    session: str
    """The client's own name of the conversation; empty when it sends none."""
    opened: list[Answer] = []
    """Answers whose connections we still have to close."""
    calls: list[Call] = []
    """The calls to upstreams so far, for the record."""
    used: list[str] = []
    """Upstreams that count this request as running."""
    contents: AttemptContents | None = None
    """What the last attempt sends and leaves out, for the record."""
    outcome: Outcome | None = None
    """The outcome from which the headers were made. The record uses it again, so that it is not computed twice."""
    delivery: Delivery = Delivery(CLIENT_GONE_STATUS, CLIENT_GONE)
    """What the client got. Until its answer is complete: what it got if it leaves now."""

    def identity_at(self, target: Target) -> Identity:
        """Return the client's hashes at an upstream."""
        return self.arrival.identity_at(target, self.headers)


def served_request(
    gateway: Gateway, setup: Setup, request: web.BaseRequest, raw: bytes, conversation: Conversation
) -> ServedRequest:
    """Return a request at the beginning of its life."""
    headers = keys.forwarded(request)
    if hdrs.ACCEPT_ENCODING in headers:
        headers[hdrs.ACCEPT_ENCODING] = readable_encodings(headers[hdrs.ACCEPT_ENCODING])
    arrival = arrivals.of(request)
    return ServedRequest(
        gateway,
        setup,
        request,
        arrival,
        raw,
        setup.settings.route(conversation.model),
        headers,
        arrival.ensure_id(gateway),
        session_of(headers, conversation.head),
    )


def close_others(served: ServedRequest, state: State) -> None:
    """Close the connections of all answers except those that a state may still forward."""
    if not served.opened:
        return
    kept = [reply.handle for reply in replies_in(state)]
    for answer in tuple(served.opened):
        if answer not in kept:
            answer.drop()
            served.opened.remove(answer)


def close_all(served: ServedRequest) -> None:
    """Close the connections of all answers, and count the request as ended at every upstream it used."""
    for name in served.used:
        served.gateway.balance.ended(name)
    served.used.clear()
    for answer in served.opened:
        answer.drop()
    served.opened.clear()
