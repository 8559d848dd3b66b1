"""Count a request for ``/v1/messages/count_tokens`` and ``/v1/responses/input_tokens``: the upstream's answer, else our
count of a request that has its whole prompt in its body.

The body is counted unchanged: the client wants to know its own size, not the size after a fold.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from aiohttp import web

from gateway.serve import key_models
from gateway.serve import record as records
from gateway.serve.endpoints import upstream_first
from gateway.serve.endpoints.passthrough import forward
from gateway.serve.gateway import Gateway
from gateway.serve.incoming import errors
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
    raw, conversation = await upstream_first.read_conversation(gateway, request, PATHS[request.rel_url.raw_path])
    if conversation is None:
        return await forward(gateway, request, raw)
    await key_models.check_conversation(gateway, request, conversation)
    upstream_first.set_record(gateway, request, raw, conversation)
    with await upstream_first.send(gateway, request, raw, conversation) as answer:
        if not await upstream_first.lacks_endpoint(answer, conversation):
            return await upstream_first.forward_answer(gateway, request, answer)
    return await _own_count(gateway, request, conversation)


async def _own_count(gateway: Gateway, request: web.BaseRequest, conversation: Conversation) -> web.Response:
    task = await upstream_first.count(gateway, request, conversation)
    body = orjson.dumps({**_FRAMES[conversation.format.name], "input_tokens": task.prompt})
    record = records.of(request)
    record.set_outcome(200)
    return web.Response(body=body, headers=record.own_headers(gateway, "none"), content_type=errors.JSON)
