"""Every other path and method under /v1: streamed through with its query, headers and status."""

from typing import Final, cast

import orjson
from aiohttp import web
from multidict import CIMultiDict

from gateway.serve import headers as http
from gateway.serve.answer import Answer
from gateway.serve.body import read
from gateway.serve.limits import check_name
from gateway.serve.relay import relay
from gateway.serve.shared import Gateway, Setup
from gateway.upstream.client import Payload, call_of
from gateway.wire.chat import splice

# A JSON body up to this size is read to see which model, and so which upstream, it is for.
LONGEST_ROUTED: Final = 2**20


async def forward(gateway: Gateway, request: web.BaseRequest, body: bytes | None = None) -> web.StreamResponse:
    """Send a request on as it came and its answer back as it comes.

    Raises UpstreamUnreachable when no answer comes. ``body`` is given where the request was read already.
    """
    setup = gateway.setup
    headers = http.forwarded(request.headers)
    model, payload = "", cast("Payload", body)
    if payload is None and request.can_read_body:
        model, payload = await _payload(setup, request, headers)
    target = setup.target_of(model)
    if isinstance(payload, bytes) and model:
        payload = _renamed(setup, model, payload)
    response = await gateway.client.send(
        target,
        call_of(request.method, request.rel_url, model),
        target.authorised(headers),
        payload,
    )
    answer = Answer(target, response)
    relayed = await relay(request, answer, gateway.marks("none"))
    return relayed.response


async def _payload(setup: Setup, request: web.BaseRequest, headers: CIMultiDict[str]) -> tuple[str, Payload]:
    """The body to send: read where it decides the upstream, otherwise a stream with its length kept."""
    length = request.content_length
    routed = len(setup.targets) > 1 and request.content_type == "application/json"
    if routed and length is not None and length <= LONGEST_ROUTED:
        limits = setup.settings.server
        body = await read(request, limits)
        return check_name(_model_in(body)), body
    if length is not None:
        headers["Content-Length"] = str(length)
    return "", request.content


def _model_in(body: bytes) -> str:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    model = document.get("model") if isinstance(document, dict) else None
    return model if isinstance(model, str) else ""


def _renamed(setup: Setup, model: str, body: bytes) -> bytes:
    name = setup.settings.route(model).name
    return body if name == model else splice(body, {"model": name})
