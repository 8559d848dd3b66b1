"""Count a request for ``/v1/messages/count_tokens`` and ``/v1/responses/input_tokens``: the upstream's answer, else our
count.

The body is counted unchanged: the client wants to know its own size, not the size after a fold.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from aiohttp import web

from gateway.serve import errors, keys, plan
from gateway.serve import record as records
from gateway.serve.answer import Answer
from gateway.serve.body import read, understood
from gateway.serve.missing import ABSENT
from gateway.serve.passthrough import forward
from gateway.serve.relay import relay
from gateway.serve.shared import Gateway
from gateway.upstream.client import call_of
from gateway.wire.format import Conversation, Format
from gateway.wire.messages import MESSAGES
from gateway.wire.responses import RESPONSES

PATHS: Final[Mapping[str, Format]] = MappingProxyType(
    {"/v1/messages/count_tokens": MESSAGES, "/v1/responses/input_tokens": RESPONSES}
)
_FRAMES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {"messages": {}, "responses": {"object": "response.input_tokens"}}
)


async def count(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the token count of a request. Raises UpstreamUnreachable when the upstream does not answer."""
    limits, record = gateway.settings.server, records.of(request)
    raw = await read(request, limits)
    format = PATHS[request.rel_url.raw_path]
    asked = await understood(request, raw, format, limits, gateway.pool, memory=gateway.memory)
    if asked is None:
        return await forward(gateway, request, raw)
    keys.check_model(request, asked.model)
    setup, headers = gateway.setup, keys.forwarded(request)
    route = setup.settings.route(asked.model)
    target = setup.targets[route.upstream]
    record.sent_to(target, asked.model, route.name, headers)
    record.format, record.opening, record.body_bytes = asked.format.name, asked.opening, len(raw)
    call = call_of("POST", request.rel_url, route.name)
    body = raw
    if route.name != asked.model:
        headers.popall("Content-Encoding", None)
        body = await gateway.pool.run(lambda: plan.renamed(asked, route.name), size_bytes=len(raw))
    response = await gateway.client.send(target, call, target.authorised(headers), body)
    record.called(response.status)
    if response.status in ABSENT:
        response.close()
        return await _own_count(gateway, request, asked)
    relayed = await relay(request, Answer(target, response), record.marks(gateway, "none"))
    record.answered(response.status, "upstream_broke_off" if relayed.broken else "")
    return relayed.response


async def _own_count(gateway: Gateway, request: web.BaseRequest, asked: Conversation) -> web.Response:
    route = gateway.setup.settings.route(asked.model)
    target, headers = gateway.setup.targets[route.upstream], keys.forwarded(request)
    place = plan.place_of(
        gateway, gateway.setup, route, target, plan.learner_of(target, headers, records.of(request).client)
    )
    task = await plan.task_for(gateway, place, asked, plan.scope_of(place, headers))
    body = orjson.dumps({**_FRAMES[asked.format.name], "input_tokens": task.prompt})
    record = records.of(request)
    record.answered(200)
    return web.Response(body=body, headers=record.marks(gateway, "none"), content_type=errors.JSON)
