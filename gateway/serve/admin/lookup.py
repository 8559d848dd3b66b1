"""Questions about past requests at the admin port: which ones, one of them, one conversation."""

import time
from typing import Any

from aiohttp import web

from gateway.observe import shape
from gateway.observe.sums import Sums
from gateway.serve.admin import workers
from gateway.serve.admin.filters import LONGEST_FILTER, query_of
from gateway.serve.admin.prices import price_of
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.errors import ClientError
from gateway.serve.sums import pages
from gateway.state.records.base import MOST_FOUND, Query


async def exchanges(gateway: Gateway, request: web.Request) -> list[shape.RecordJson]:
    """Return the asked records, newest first."""
    return await workers.find(gateway, query_of(request.query, time.time()))


async def sums(gateway: Gateway, request: web.Request) -> dict[str, Any]:
    """Return the sums of the asked records."""
    query = query_of(request.query, time.time())

    async def first(wanted: Query) -> list[shape.RecordJson]:
        return await workers.find(gateway, wanted)

    later = gateway.records.find if gateway.records.keeps else first
    found = pages(first, later, query)
    return await gateway.summing.sums(
        str(sorted(request.query.items())), query, found, Sums(lambda model: price_of(gateway, model))
    )


async def exchange(gateway: Gateway, request: web.Request) -> dict[str, Any]:
    """Return one record, with its text where that is kept. Raises ClientError when it is not known."""
    found, text = await workers.get(gateway, request.match_info["id"])
    if found is None:
        raise _unknown("request")
    return {**found, "text": text}


async def conversation(gateway: Gateway, request: web.Request) -> dict[str, Any]:
    """Return one conversation: its requests in time, and their sums. Raises ClientError when it is not known."""
    query = Query(conversation=request.match_info["id"][:LONGEST_FILTER], limit=MOST_FOUND)
    found = await workers.find(gateway, query) if query.conversation else []
    if not found:
        raise _unknown("conversation")
    return shape.conversation(found[::-1])


def _unknown(kind: str) -> ClientError:
    return ClientError(404, f"No such {kind} is recorded here; records are kept for observe.keep.", code="not_found")
