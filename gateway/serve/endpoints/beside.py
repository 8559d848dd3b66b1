"""Endpoints beside a conversation: ask the upstream first, and count the request for our own answer where the upstream has none."""

from aiohttp import web

from gateway.context.life.ladder import Task
from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer
from gateway.serve.answers.relay import relay
from gateway.serve.request import measure
from gateway.serve.request.places import Place, place_of
from gateway.serve.shared import Gateway
from gateway.upstream.client import Target, call_of
from gateway.wire.format import Conversation, Edits


async def sent(gateway: Gateway, request: web.BaseRequest, raw: bytes, asked: Conversation) -> Answer:
    """Send a body to its model's upstream, with the upstream's name of the model. Raises UpstreamUnreachable."""
    setup, headers = gateway.setup, keys.forwarded(request)
    route = setup.settings.route(asked.model)
    target = setup.targets[route.upstream]
    body = raw
    if route.name != asked.model:
        headers.popall("Content-Encoding", None)
        body = await gateway.pool.run(lambda: asked.format.encode(asked, Edits(model=route.name)), size_bytes=len(raw))
    call = call_of("POST", request.rel_url, route.name)
    response = await gateway.client.send(target, call, target.authorised(headers), body)
    records.of(request).called(response.status)
    return Answer(target, response, asked.format)


async def handed_on(gateway: Gateway, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Give the client the upstream's own answer."""
    record = records.of(request)
    relayed = await relay(request, answer, record.marks(gateway, "none"))
    record.answered(answer.status, "upstream_broke_off" if relayed.broken else "")
    return relayed.response


def note(gateway: Gateway, request: web.BaseRequest, raw: bytes, asked: Conversation) -> None:
    """Note in the record what is asked of which upstream."""
    setup, record = gateway.setup, records.of(request)
    route = setup.settings.route(asked.model)
    record.sent_to(setup.targets[route.upstream], asked.model, route.name, keys.forwarded(request))
    record.format, record.opening, record.body_bytes = asked.format.name, asked.opening, len(raw)


def place_at(gateway: Gateway, request: web.BaseRequest, asked: Conversation, target: Target) -> Place:
    """Return an upstream as the place of a request, with what its caller's requests taught."""
    setup = gateway.setup
    learner = records.of(request).identity_at(target, keys.forwarded(request)).learner
    return place_of(gateway, setup, setup.settings.route(asked.model), target, learner)


async def task_at(gateway: Gateway, request: web.BaseRequest, asked: Conversation, place: Place) -> Task:
    """Count a request for a place."""
    scope = records.of(request).identity_at(place.target, keys.forwarded(request)).scope
    return await measure.task_for(gateway, place, asked, scope)


async def counted(gateway: Gateway, request: web.BaseRequest, asked: Conversation) -> Task:
    """Count a request for its model's own upstream."""
    target = gateway.setup.targets[gateway.settings.route(asked.model).upstream]
    return await task_at(gateway, request, asked, place_at(gateway, request, asked, target))
