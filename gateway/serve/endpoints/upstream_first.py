"""Endpoints that ask the upstream first, and answer themselves only if the upstream does not have the endpoint."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from aiohttp import web

from gateway.context.life.task import Task
from gateway.serve import arrival as arrivals
from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer, hold_until, readable
from gateway.serve.answers.relay import relay
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import read
from gateway.serve.request import measure
from gateway.serve.request.conversation import conversation_in
from gateway.serve.request.known_ids import upstream_of_conversation
from gateway.serve.request.missing_endpoint import MISSING_STATUSES, says_endpoint_missing
from gateway.serve.request.place import Place, place_of
from gateway.upstream.client import Target, UpstreamUnreachable
from gateway.upstream.response import read_body
from gateway.wire.format import Conversation, Edits, Format

LONGEST_REFUSAL: Final = 2**16
"""Bytes of a refusal that are read; real ones are a few KB."""


async def read_conversation(
    gateway: Gateway, request: web.BaseRequest, format: Format
) -> tuple[bytes, Conversation | None]:
    """Read and parse a request's body; the conversation is None when the body is not valid in this format. Raises
    ClientError."""
    setup = gateway.setup
    raw = await read(request, setup.settings.server)
    return raw, await conversation_in(gateway, setup, request, raw, format)


async def send(gateway: Gateway, request: web.BaseRequest, raw: bytes, conversation: Conversation) -> Answer:
    """Send a body to its model's upstream, with the upstream's name of the model; return the answer. If one of several has what the body
    names, it goes to that one. Raises UpstreamUnreachable."""
    setup, headers, arrival = gateway.setup, keys.forwarded(request), arrivals.of(request)
    route = setup.settings.route(conversation.model)
    own = [setup.targets[name] for name, _ in route.choices]
    target = (
        await upstream_of_conversation(gateway, partial(arrival.identity_at, headers=headers), own, conversation)
        or own[0]
    )
    records.of(request).set_upstream(target, conversation.model, route.name, headers)
    body = raw
    if route.name != conversation.model:
        headers.popall("Content-Encoding", None)
        renamed = Edits(model=route.name)
        body = await gateway.threads.run(
            lambda: conversation.format.encode(conversation, renamed), size_bytes=len(conversation.raw)
        )
    call = arrival.call(request, route.name)
    response = await gateway.client.send(target, call, target.authorised(headers), body)
    records.of(request).add_call(response.status)
    return Answer(target, response, conversation.format)


async def lacks_endpoint(answer: Answer, conversation: Conversation) -> bool:
    """Return whether an answer says that the upstream does not have the endpoint, and we may answer in its place. Raises
    UpstreamUnreachable.

    We may not if text outside the body enters the prompt, such as an earlier response: our answer would leave that text out.
    """
    if answer.status not in MISSING_STATUSES or conversation.refers_elsewhere:
        return False
    return says_endpoint_missing(conversation.format, answer.status, await read_refusal(answer))


async def read_refusal(answer: Answer) -> bytes:
    """Return the decoded beginning of a refusal; the answer holds it, to be forwarded. Raises UpstreamUnreachable."""
    with _breaking_off(answer):
        answer.held = await read_body(answer.response, LONGEST_REFUSAL)
    return readable(answer.response, answer.held)


async def has_sign(answer: Answer, sign: re.Pattern[bytes], longest: int) -> bool:
    """Return whether the first ``longest`` bytes of an answer have a sign; the answer holds what was read, to be forwarded. Raises
    UpstreamUnreachable."""
    with _breaking_off(answer):
        return await hold_until(answer, sign, longest)


@contextmanager
def _breaking_off(answer: Answer) -> Iterator[None]:
    """Raise UpstreamUnreachable if the answer breaks off."""
    try:
        yield
    except OSError as error:
        raise UpstreamUnreachable(answer.target.name, "broke off in the middle of its answer") from error


async def forward_answer(gateway: Gateway, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Forward the upstream's own answer to the client."""
    record = records.of(request)
    relayed = await relay(request, answer, record.own_headers(gateway, "none"))
    record.set_outcome(answer.status, relayed.error)
    return relayed.response


def set_record(gateway: Gateway, request: web.BaseRequest, raw: bytes, conversation: Conversation) -> None:
    """Set the upstream, the model and the conversation in the record of a request."""
    setup, record = gateway.setup, records.of(request)
    route = setup.settings.route(conversation.model)
    record.set_upstream(setup.targets[route.upstream], conversation.model, route.name, keys.forwarded(request))
    record.format, record.opening, record.body_bytes = conversation.format.name, conversation.opening, len(raw)


async def place_for(gateway: Gateway, request: web.BaseRequest, conversation: Conversation, target: Target) -> Place:
    """Return an upstream as the place of a request, with the facts learned from this caller's requests."""
    setup = gateway.setup
    route = setup.settings.route(conversation.model)
    caller = arrivals.of(request).identity_at(target, keys.forwarded(request))
    await gateway.learning.owners.fetch_if_due((target.name, route.name, caller.learner))
    return place_of(gateway, setup, route, target, caller)


async def count(gateway: Gateway, request: web.BaseRequest, conversation: Conversation) -> Task:
    """Count a request at its model's own upstream."""
    target = gateway.setup.targets[gateway.settings.route(conversation.model).upstream]
    return await measure.task_for(gateway, await place_for(gateway, request, conversation, target), conversation)
