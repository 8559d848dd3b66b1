"""One request as it arrived: who sent it, with which key, and what it asks for.

Each request gets an `Arrival` at the entrance, and every handler finds it there (`of`). What becomes of the request is in its record
(`gateway.serve.record`).
"""

import time
from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from gateway.config import ClientKey
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.callers import Identity, identity_of
from gateway.serve.incoming.paths import Address
from gateway.upstream.client import Target, UpstreamCall

SHARING: Final = "Access-Control-"
"""Prefix of the headers that let a web page read an answer."""


class Arrival(msgspec.Struct, eq=False):
    """Who sent a request, and what it asks for. The entrance and the checks of keys fill it in."""

    client: str = ""
    """The client's address, as trusted proxies say; "" on a Unix socket."""
    path: str = ""
    """The path of the request in the API, with ``/v1``; "" for a path that is not served."""
    deployment: str = ""
    """The model that the client's path named, and `path` does not; see `gateway.serve.incoming.paths`."""
    translated: bool = False
    """Whether the client wrote the path of another API."""
    started: float = msgspec.field(default_factory=time.perf_counter)
    key: ClientKey | None = None
    """The client key of the request, where the gateway asks for one."""
    credential: str = ""
    """The key as the client sent it. It decides whose stored summaries and facts the request may use."""
    shared: Mapping[str, str] = {}
    """Headers that every answer to this request gets: those that let a permitted web page read it, and those about limits."""
    request_id: str = ""
    """The request's name in headers, logs and records; "" until `ensure_id` makes one."""
    identities: dict[str, Identity] = {}
    """The client's hashes by upstream, filled by `identity_at`."""

    def __repr__(self) -> str:
        return f"Arrival({self.path!r})"  # without the key

    def ensure_id(self, gateway: Gateway) -> str:
        """Return the id of the request. The first call makes it."""
        self.request_id = self.request_id or gateway.request_id()
        return self.request_id

    def identity_at(self, target: Target, headers: CIMultiDict[str]) -> Identity:
        """Return the client's hashes at an upstream, computed once. ``headers`` are the client's as an upstream may get them
        (`gateway.serve.keys.forwarded`)."""
        found = self.identities.get(target.name)
        if found is None:
            found = self.identities[target.name] = identity_of(target, headers, self.client)
        return found

    def call(self, request: web.BaseRequest, model: str) -> UpstreamCall:
        """Return the call to an upstream that the request asks for; ``model`` is the upstream's name of the model."""
        url = request.rel_url
        path = url.raw_path
        if path.startswith("/v1/"):
            return UpstreamCall(request.method, path[3:], url.raw_query_string, model, self.translated)
        return UpstreamCall(request.method, path, url.raw_query_string, model, self.translated, native=True)

    def add_shared(self, headers: CIMultiDict[str]) -> None:
        """Add `shared` to the headers of an upstream's answer. Where a web page may read it, our access-control headers replace the upstream's."""
        if not self.shared:
            return
        if SHARING + "Allow-Origin" in self.shared:
            for name in [name for name in headers if name.lower().startswith(SHARING.lower())]:
                headers.popall(name, None)
        varies = [*headers.getall("Vary", ()), self.shared.get("Vary", "")]
        headers.update(self.shared)
        if "Vary" in self.shared:
            headers["Vary"] = ", ".join(dict.fromkeys(filter(None, varies)))


ARRIVAL: Final = web.RequestKey("arrival", Arrival)


def of(request: web.BaseRequest) -> Arrival:
    """Return what is known of a request since its arrival."""
    return request[ARRIVAL]


def arrive(request: web.BaseRequest, client: str, address: Address) -> Arrival:
    """Return the arrival of a request. ``client`` is the client's network address, ``address`` what it asks for."""
    arrival = request[ARRIVAL] = Arrival(client, *address)
    return arrival
