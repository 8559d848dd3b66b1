"""Request model lists of upstreams for their windows, with the credentials of the current request."""

import asyncio
from contextlib import closing
from typing import Final

from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.context.life import identity
from gateway.serve.gateway import Gateway
from gateway.upstream.client import Target, UpstreamCall, UpstreamUnreachable
from gateway.upstream.response import AskFailed, read_body
from providers.model_list import LONGEST_LIST_BYTES
from providers.openai import join
from providers.origins import read_origins
from providers.windows import running_list, running_windows

LIST_PATIENCE_S: Final = 1.0
"""Seconds that a request waits for the model list of its upstream. Chosen: a list that comes later serves the next request."""


async def ask_windows(gateway: Gateway, target: Target, headers: CIMultiDict[str]) -> None:
    """Request an upstream's model list if it is due, with the credentials of the current request.

    Wait `LIST_PATIENCE_S` at most; a list that comes later is stored too. A failure is logged and changes nothing.
    """
    credentials = _credentials(target, headers)
    key = identity.key_hash(credentials.values())
    if not gateway.learning.lists.begin_request(target.name, key):
        return
    task = gateway.tasks.start(_read_list(gateway, target, credentials, key), "model_list")
    if task is not None:
        await asyncio.wait([task], timeout=LIST_PATIENCE_S)


def _credentials(target: Target, headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Return the credentials for an upstream: the configured key, or the client's own."""
    wanted = {"authorization", *target.provider.credential_headers}
    return target.authorised(CIMultiDict((name, value) for name, value in headers.items() if name.lower() in wanted))


async def _read_list(gateway: Gateway, target: Target, headers: CIMultiDict[str], key: str) -> None:
    """Read the model list, and the list of running models where the server has another one, and store both."""
    lists = gateway.learning.lists
    try:
        status, body = await _get(gateway, target, "/models", headers)
        if status in (401, 403):
            lists.note_refused_key(target.name, key)
            return
        if status != 200:
            lists.note_failure(target.name, f"status {status}")
            return
        running, origins, other_list = running_windows(body), read_origins(body), running_list(body)
        if other_list is not None:
            endpoint = replace(target.endpoint, base_url=target.endpoint.base_url.rstrip("/").removesuffix("/v1"))
            target_of_other_list = replace(target, endpoint=endpoint, provider=replace(target.provider, locate=join))
            status, stated = await _get(gateway, target_of_other_list, other_list.path, headers)
            if status == 200:
                running |= other_list.read(stated)
                origins |= read_origins(stated)
        on_demand = other_list is not None and other_list.on_demand
        lists.store(target.name, target.provider.read_windows(body), running, origins, on_demand=on_demand)
    except (UpstreamUnreachable, AskFailed) as error:
        lists.note_failure(target.name, error.reason)
    except OSError as error:
        lists.note_failure(target.name, type(error).__name__)


async def _get(gateway: Gateway, target: Target, path: str, headers: CIMultiDict[str]) -> tuple[int, bytes]:
    """Read an answer completely, in any number of packets; a huge one is truncated, and then is not JSON."""
    response = await gateway.client.send(target, UpstreamCall("GET", path, "", ""), CIMultiDict(headers), None)
    with closing(response):
        return response.status, await read_body(response, LONGEST_LIST_BYTES)
