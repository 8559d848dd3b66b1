"""GET /v1/models: the lists of all upstreams and the configured names as one list.

A gateway with one upstream and without configured names forwards the upstream's list unchanged. Otherwise every
upstream is requested with its configured key. The client's own key goes only to the default upstream, which also gets
it for unknown models. A failing upstream is left out.
"""

import asyncio
from contextlib import closing
from typing import Final
from urllib.parse import unquote

import orjson
from aiohttp import web
from multidict import CIMultiDict

from gateway.config import is_pattern
from gateway.serve import key_models, keys
from gateway.serve import record as records
from gateway.serve.answers.answer import readable
from gateway.serve.endpoints.passthrough import forward
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming import errors
from gateway.serve.request.place import place_of
from gateway.upstream.client import Target, UpstreamCall, UpstreamUnreachable
from gateway.upstream.response import read_body
from providers.model_list import LONGEST_LIST_BYTES, Entry, read_named_entries

PATH: Final = "/v1/models"
LIST_TIMEOUT_S: Final = 10.0
"""Users of official SDKs wait about this long for a list; a local server answers in milliseconds."""


def wanted(request: web.BaseRequest) -> bool:
    """Return whether a request is for the list of models, or for one of them."""
    path = request.rel_url.raw_path
    return request.method == "GET" and (path == PATH or path.startswith(f"{PATH}/"))


async def models(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    """Serve the list of models, or one alias of it. Raises UpstreamUnreachable when no upstream returns a list."""
    setup = gateway.setup
    alias = unquote(request.rel_url.raw_path.removeprefix(PATH).removeprefix("/"))
    if alias:
        key_models.check_model(request, alias)
        known = alias in setup.settings.models and setup.settings.route(alias).name != alias
        return _json(gateway, request, own_entry(gateway, setup, alias)) if known else await forward(gateway, request)
    names = [name for name in setup.settings.models if not is_pattern(name)]
    if len(setup.targets) == 1 and not names and not key_models.is_restricted(request):
        return await forward(gateway, request)
    order = sorted(setup.targets.values(), key=lambda target: target.name != setup.settings.default_upstream)
    lists = await asyncio.gather(*(_listed(gateway, target, _headers(setup, target, request)) for target in order))
    if all(found is None for found in lists):
        return await forward(gateway, request)  # the default upstream's own error explains why there is no list
    entries: dict[str, Entry] = {}
    for target, found in zip(order, lists, strict=True):
        for entry in found or ():
            entries.setdefault(entry["id"], _described(gateway, setup, target, entry))
    for name in names:
        entries.setdefault(name, own_entry(gateway, setup, name))
    return _json(
        gateway,
        request,
        {"object": "list", "data": [each for name, each in entries.items() if key_models.allows_model(request, name)]},
    )


def _json(gateway: Gateway, request: web.BaseRequest, value: object) -> web.Response:
    headers = records.of(request).own_headers(gateway, "none")
    return web.Response(body=orjson.dumps(value), headers=headers, content_type=errors.JSON)


def own_entry(gateway: Gateway, setup: Setup, name: str) -> Entry:
    """Build the entry of a configured name."""
    return _described(gateway, setup, setup.targets[setup.settings.route(name).upstream], {"id": name})


def _described(gateway: Gateway, setup: Setup, target: Target, entry: Entry) -> Entry:
    """Add the fields that OpenAI's SDKs read, and our facts about the model."""
    route = setup.settings.route(entry["id"])
    place = place_of(gateway, setup, route, target)
    own = {"upstream": route.upstream, "name": route.name, "context_window": place.window}
    filled = {"object": "model", "created": 0, "owned_by": target.name, "context_window": place.window}
    return {**filled, **entry, "turnfold": own}


def _headers(setup: Setup, target: Target, request: web.BaseRequest) -> CIMultiDict[str]:
    """Return the headers for one upstream: the client's own only for the default one."""
    client_s = target.name == setup.settings.default_upstream
    headers = keys.forwarded(request) if client_s else CIMultiDict(Accept=errors.JSON)
    headers["Accept-Encoding"] = "identity"
    return target.authorised(headers)


async def _listed(gateway: Gateway, target: Target, headers: CIMultiDict[str]) -> list[Entry] | None:
    """Request one upstream's list; None when it returns none."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            response = await gateway.client.send(target, UpstreamCall("GET", "/models", "", ""), headers, None)
            with closing(response):
                body = await read_body(response, LONGEST_LIST_BYTES)
                return read_named_entries(readable(response, body)) if response.status == 200 else None
    except (UpstreamUnreachable, OSError):
        return None
