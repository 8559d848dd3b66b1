"""A client whose calls are spans, and carry the trace's context to the upstream."""

from collections.abc import Sequence

import aiohttp
from multidict import CIMultiDict

from gateway.observe.trace import Tracing, answered
from gateway.upstream.client import Client, Target, UpstreamCall
from gateway.upstream.response import Response
from gateway.upstream.sending import Body


class TracedClient(Client):
    """The client of a gateway that traces."""

    def __init__(self, tracing: Tracing) -> None:
        super().__init__()
        self._tracing = tracing

    async def send(self, target: Target, call: UpstreamCall, headers: CIMultiDict[str], body: Body) -> Response:
        with self._tracing.call(target.name, call.model, headers) as span:
            response = await super().send(target, call, headers, body)
            answered(span, response.status)
            return response

    async def connect(
        self, target: Target, call: UpstreamCall, headers: CIMultiDict[str], protocols: Sequence[str], largest: int
    ) -> aiohttp.ClientWebSocketResponse:
        with self._tracing.call(target.name, call.model, headers):
            return await super().connect(target, call, headers, protocols, largest)
