"""The record of a request that is not folded: passed through, refused by us, or invalid HTTP.

Each request gets one when it arrives. A foldable request makes its own, longer record and marks this one as done.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from gateway.config import ClientKey
from gateway.observe.exchange import Action, Exchange, Why
from gateway.serve.shared import Gateway
from providers.record import Usage

CLIENT_GONE: Final = 499
"""The status of a request whose client left before its answer; nginx's number."""

SHARING: Final = "Access-Control-"
"""How the headers begin that let a web page read an answer."""


@dataclass(slots=True)
class Record:
    """The known facts about one request."""

    client: str = ""
    """The client's address, as trusted proxies say; "" on a Unix socket."""
    path: str = ""
    """The path of the request as the API has it; "" for one that is not served."""
    why: Why = "not_chat"
    upstream: str = ""
    model: str = ""
    attempts: int = 0
    body_bytes: int = 0
    status: int = CLIENT_GONE
    error: str = "client_gone"
    shared: Mapping[str, str] = field(default_factory=dict)
    """Headers of every answer: those that let a permitted web page read it, and those that tell of limits."""
    key: ClientKey | None = None
    """The client key that the request brought, where the gateway asks for one."""
    credential: str = field(default="", repr=False)
    """The key itself, for whose memory a request may use."""
    usage: Usage | None = None
    """What the upstream billed, where that is read."""
    done: bool = False
    """Whether the request's record was made."""
    started: float = field(default_factory=time.perf_counter)
    first_byte: float = 0.0
    request_id: str = ""

    def marks(self, gateway: Gateway, action: Action) -> dict[str, str]:
        """Return the headers that identify this request in its answer."""
        self.request_id = self.request_id or gateway.request_id()
        return {"x-turnfold-request-id": self.request_id, "x-turnfold-action": action, **self.shared}

    def share(self, headers: CIMultiDict[str]) -> None:
        """Add the headers of every answer to those of an upstream. For a page, ours about sharing replace all of its own."""
        if SHARING + "Allow-Origin" in self.shared:
            for name in [name for name in headers if name.lower().startswith(SHARING.lower())]:
                headers.popall(name, None)
        varies = [*headers.getall("Vary", ()), self.shared.get("Vary", "")]
        headers.update(self.shared)
        if "Vary" in self.shared:
            headers["Vary"] = ", ".join(dict.fromkeys(filter(None, varies)))

    def answered(self, status: int, error: str = "") -> None:
        """Note how the request ended."""
        self.status, self.error = status, error

    def left(self, response: web.StreamResponse) -> None:
        """Note the answer of a handler that makes no record itself."""
        if not response.prepared:
            for name, value in self.shared.items():
                response.headers.setdefault(name, value)
        if self.status == CLIENT_GONE:
            self.request_id = response.headers.get("x-turnfold-request-id", self.request_id)
            self.answered(response.status)

    def close(self, gateway: Gateway) -> None:
        """Give the record to every observer, unless the request has one already."""
        if not self.done:
            self.done = True
            gateway.observe(self._exchange(gateway))

    def _exchange(self, gateway: Gateway) -> Exchange:
        return Exchange.passed(
            self.request_id or gateway.request_id(),
            self.why,
            self.status,
            error=self.error,
            upstream=self.upstream,
            model=self.model[:200],
            attempts=self.attempts,
            body_bytes=self.body_bytes,
            prompt_tokens=self.usage.prompt if self.usage else None,
            completion_tokens=self.usage.completion if self.usage else None,
            key=self.key.name if self.key else "",
            first_byte_s=max(self.first_byte - self.started, 0.0),
            total_s=time.perf_counter() - self.started,
        )


RECORD: Final = web.RequestKey("record", Record)


def of(request: web.BaseRequest) -> Record:
    """Return the record of a request."""
    return request[RECORD]


def opened(request: web.BaseRequest, client: str, path: str) -> Record:
    """Open the record of an arriving request of a client at an address."""
    record = request[RECORD] = Record(client, path)
    return record
