"""Questions between the workers of one machine: their metrics, their newest records, their status."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import orjson
from aiohttp import web

from gateway.observe.shape import RecordJson
from gateway.serve.admin import health
from gateway.serve.admin.filters import query_of
from gateway.serve.admin.gauges import gauges
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.http_log import http_log
from gateway.state.records.base import Query


def runner(gateway: Gateway) -> web.AppRunner:
    """Build the HTTP server that answers the other workers."""
    app = web.Application()

    def add(path: str, answer: Callable[[web.Request], Any]) -> None:
        async def handler(request: web.Request) -> web.Response:
            return web.Response(body=orjson.dumps(answer(request)), content_type="application/json")

        app.router.add_get(path, handler)

    add("/metrics", lambda _: _families(gateway))
    add("/status", lambda _: health.status(gateway))
    add("/exchanges", lambda request: gateway.records.in_memory(query_of(request.query, 0.0)))
    add("/exchanges/{id}", lambda request: _own(gateway, request.match_info["id"]))
    log = http_log("workers", gateway.failed)
    return web.AppRunner(app, access_log=None, logger=log, shutdown_timeout=1.0)


async def metrics(gateway: Gateway) -> bytes:
    """Return the numbers of all workers for Prometheus."""
    from gateway.observe.exposition import merged  # noqa: PLC0415  # 20 ms of the start, if nobody ever scrapes

    others = await gateway.peers.ask("/metrics") if gateway.peers is not None else []
    return merged([_families(gateway), *others])


async def statuses(gateway: Gateway) -> list[Any]:
    """Return the status of the other workers."""
    return await gateway.peers.ask("/status") if gateway.peers is not None else []


async def find(gateway: Gateway, query: Query) -> list[RecordJson]:
    """Return records of all workers, newest first: from the store, else from the memories of all."""
    found = await gateway.records.find(query)
    if gateway.peers is None:
        return found
    others = await gateway.peers.ask(f"/exchanges?{_query_string(query)}")
    return query.of([*(one for records in others for one in records), *found])


async def get(gateway: Gateway, request_id: str) -> tuple[RecordJson | None, Any]:
    """Return one record of any worker, and its text where that is kept."""
    found = await gateway.records.get(request_id)
    if found is None and gateway.peers is not None:
        for record, text in await gateway.peers.ask(f"/exchanges/{quote(request_id, safe='')}"):
            if record is not None:
                return record, text
    return found, await gateway.records.text(request_id) if found is not None else None


def _own(gateway: Gateway, request_id: str) -> tuple[RecordJson | None, Any]:
    """Return one record in this worker's memory, and its text; None for each that is not there."""
    found = gateway.records.get_in_memory(request_id)
    return found, gateway.records.text_in_memory(request_id) if found is not None else None


def _families(gateway: Gateway) -> list[Any]:
    from gateway.observe.exposition import families  # noqa: PLC0415  # as above

    worker = str(gateway.peers.number) if gateway.peers is not None else ""
    return families(gateway.metrics, gauges(gateway), worker)


def _query_string(query: Query) -> str:
    fields = {"key": query.key, "model": query.model, "session": query.session, "conversation": query.conversation}
    bounds = {"since": repr(query.since), "until": repr(query.until), "limit": str(query.limit)}
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in {**fields, **bounds}.items())
