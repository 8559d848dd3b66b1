"""The record of one request while it is served: the draft of its exchange.

Each request gets a `Record` when it arrives, and its handlers fill it in. When the request ends, it becomes an `Exchange`. Only a foldable
request makes its own, longer exchange from its last state (`gateway.serve.request.outcome`), and marks this record as done. Who sent the
request is in its arrival (`gateway.serve.arrival`). What the gateway stores of ended requests is in `gateway.state.records`.
"""

import time
from functools import lru_cache
from typing import Final

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from gateway.context.life import identity
from gateway.observe.exchange import CLIENT_GONE, CLIENT_GONE_STATUS, Action, Call, Exchange, Why
from gateway.serve.arrival import Arrival
from gateway.serve.gateway import Gateway
from gateway.upstream.client import Target
from gateway.wire.message import OPENING_CHARACTERS
from providers.record import Usage

LONGEST_NAME: Final = 200
"""Characters of a model's name that are kept. Chosen: longer than any real one."""
LONGEST_PATH: Final = 300
"""Characters of a path that are kept. Chosen: longer than any documented one."""
CONVERSATIONS_KEPT: Final = 128
"""Number of conversations whose names are cached; all requests of one begin alike. At most 5 MB, when every opening is a pasted book."""
LONGEST_METHOD: Final = 20
"""Characters of a method that are kept: CONNECT has seven."""


class Record(msgspec.Struct, eq=False):
    """What became of one request so far. Filled in by its handlers."""

    arrival: Arrival
    why: Why = "not_chat"
    upstream: str = ""
    model: str = ""
    attempts: int = 0
    body_bytes: int = 0
    status: int = CLIENT_GONE_STATUS
    error: str = CLIENT_GONE
    usage: Usage | None = None
    """The tokens that the upstream billed, where the bill is read."""
    done: bool = False
    """Whether the observers already have this request's record."""
    first_byte: float = 0.0
    answer_bytes: int = 0
    """Bytes of the answer's body, or of a socket's frames to the client."""
    stream: bool = False
    """Whether the answer of a request that is passed through is a stream of events."""
    model_used: str = ""
    calls: tuple[Call, ...] = ()
    caller: str = ""
    """The hash of the caller's credentials, once it is known."""
    format: str = ""
    opening: str = ""
    """The conversation's first user message, where the body is a conversation."""

    def __repr__(self) -> str:
        return f"Record({self.arrival.path!r})"  # without texts

    def own_headers(self, gateway: Gateway, action: Action) -> dict[str, str]:
        """Return our own headers of the answer: the request's id, what was done and why, and those that every answer gets."""
        return {
            "x-turnfold-request-id": self.arrival.ensure_id(gateway),
            "x-turnfold-action": action,
            "x-turnfold-why": self.why,
            **self.arrival.shared,
        }

    def count_received(self, size: int) -> None:
        """Count bytes that came from the client."""
        self.body_bytes += size

    def count_sent(self, size: int) -> None:
        """Count bytes that went to the client."""
        self.answer_bytes += size

    def set_outcome(self, status: int, error: str = "") -> None:
        """Set the status and the error with which the request ended."""
        self.status, self.error = status, error

    def set_upstream(self, target: Target, model: str, model_used: str, headers: CIMultiDict[str]) -> None:
        """Set the upstream and the model of a request, and its caller. ``headers`` are the client's as an upstream may get them."""
        self.upstream, self.model, self.model_used, self.attempts = target.name, model, model_used or model, 1
        self.caller = self.arrival.identity_at(target, headers).key

    def add_call(self, status: int) -> None:
        """Add the call to the upstream with the status of its answer; 0 means no answer."""
        seconds = time.perf_counter() - self.arrival.started
        self.calls = (*self.calls, Call(self.upstream, self.model_used[:LONGEST_NAME], status, seconds=seconds))

    def complete(self, response: web.StreamResponse) -> None:
        """Add the headers that every answer gets. Take status and size from it if its handler did not set them."""
        if self.arrival.shared and not response.prepared:
            for name, value in self.arrival.shared.items():
                response.headers.setdefault(name, value)
        if self.done:
            return
        if self.status == CLIENT_GONE_STATUS:
            self.arrival.request_id = response.headers.get("x-turnfold-request-id", self.arrival.request_id)
            self.set_outcome(response.status)
        self.answer_bytes = size_of(response) or self.answer_bytes

    def close(self, gateway: Gateway, request: web.BaseRequest | None = None) -> None:
        """Give the record to every observer, unless they already have one of this request."""
        if not self.done:
            self.done = True
            gateway.observe(self._exchange(gateway, request))

    def _exchange(self, gateway: Gateway, request: web.BaseRequest | None) -> Exchange:
        arrival = self.arrival
        total_s = time.perf_counter() - arrival.started
        left = self.error == CLIENT_GONE and not self.attempts
        return Exchange.passed(
            arrival.ensure_id(gateway),
            "left" if left else self.why,
            self.status,
            error=self.error,
            upstream=self.upstream,
            model=self.model[:LONGEST_NAME],
            attempts=self.attempts,
            body_bytes=self.body_bytes,
            usage=self.usage,
            key=arrival.key.name if arrival.key else "",
            first_byte_s=max(self.first_byte - arrival.started, 0.0),
            total_s=total_s,
            format=self.format,
            at=time.time() - total_s,
            client=arrival.client,
            method=request.method[:LONGEST_METHOD] if request is not None else "",
            path=path_of(request) if request is not None else "",
            model_used=self.model_used[:LONGEST_NAME],
            answer_bytes=self.answer_bytes,
            stream=self.stream,
            calls=self.calls,
            caller=self.caller,
            conversation=name_of(self.caller, self.opening) if self.opening else "",
        )


def name_of(caller: str, opening: str) -> str:
    """Return `identity.name_of`, cached for the conversations that are going on."""
    return _name_of(caller, opening[:OPENING_CHARACTERS])


_name_of: Final = lru_cache(maxsize=CONVERSATIONS_KEPT)(identity.name_of)


def size_of(response: web.StreamResponse) -> int:
    """Return the size of an answer in bytes; 0 for a stream."""
    return len(response.body) if isinstance(response, web.Response) and isinstance(response.body, bytes) else 0


def path_of(request: web.BaseRequest) -> str:
    """Return the path of a request without its query, because a query may hold a key."""
    return request.rel_url.raw_path[:LONGEST_PATH]


RECORD: Final = web.RequestKey("record", Record)


def of(request: web.BaseRequest) -> Record:
    """Return the record of a request."""
    return request[RECORD]


def open_record(request: web.BaseRequest, arrival: Arrival) -> Record:
    """Create the record of a request that arrived."""
    record = request[RECORD] = Record(arrival)
    return record
