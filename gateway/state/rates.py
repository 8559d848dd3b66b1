"""Rates: the requests and tokens of each client key in the current minute.

It is a minute of the clock, so that replicas mean the same one. Counts are shared through the store. Each process also
counts what it let through itself: this count is used while the store does not work, and where the store lost its own.
Nothing here refuses: it returns numbers.

The tokens of a request are reserved before it is sent, so that requests at the same time cannot pass the limit
together. When it has ended, the bill takes the place of the reservation.
"""

import time
from collections.abc import Callable
from math import ceil
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from gateway.observe.exchange import CLIENT_GONE, Exchange
from gateway.state.store.base import Store
from gateway.state.store.memory import MemoryStore
from providers.native import WRITING

GONE: Final = frozenset({CLIENT_GONE, "unfinished"})
"""The errors of a request, and of a turn on a socket, whose client left before its end."""
UNENDED: Final = GONE | {"upstream_broke_off"}
"""The errors of a request whose answer has no end: a bill at its beginning does not count its text."""
MINUTE_S: Final = 60
"""Seconds."""
KEPT_S: Final = 120.0
"""How long the count of a minute is kept: longer than the minute, because clocks differ."""

BYTES_PER_TOKEN: Final = 4
"""Used when an upstream does not state its bill: ordinary English text."""
BYTES_PER_STREAMED_TOKEN: Final = 256
"""The same in a stream, where each token is an event: OpenAI's events of chats and completions have 180 to 350 bytes."""
MOST_TOKENS: Final = 2**40
"""Tokens that are counted for one request. Clients and upstreams may state any number, and stores count up to 2**63."""
USUAL_ANSWER: Final = 1024
"""Tokens that are reserved for an answer without a limit. Chosen: most answers are shorter."""
SHARE_FOR_ANSWER: Final = 10
"""Divisor: an answer without a limit reserves at most this part of a key's limit, so that small limits serve several."""

COMPLETIONS: Final = "/v1/completions"
"""The OpenAI-compatible endpoint that is passed through although a model writes its answer."""

What = Literal["requests", "tokens"]


class Used(msgspec.Struct, frozen=True):
    """A key's use of one of its limits in the current minute."""

    what: What
    limit: int
    count: int
    reset_s: int
    """Seconds until the next minute begins, 1 to 60."""

    @property
    def left(self) -> int:
        """Return the unused rest."""
        return max(self.limit - self.count, 0)


class Reserved(msgspec.Struct, frozen=True):
    """Tokens of a running request, counted in the minute in which it began."""

    key: str
    minute: int
    tokens: int


def expected(body_bytes: int, window: int, answer: int | None, limit: int, *, answers: int = 1) -> int:
    """Return the tokens that a request may take: its size in tokens, at most the window, and its answers' limit."""
    prompt = min(body_bytes // BYTES_PER_TOKEN, window)
    each = min(USUAL_ANSWER, limit // SHARE_FOR_ANSWER) if answer is None else max(answer, 0)
    return min(prompt + each * max(answers, 1), MOST_TOKENS)


def tokens_of(exchange: Exchange, reserved: int = 0) -> int:
    """Return the tokens of a request: as billed, else as counted, else by its size. Failed requests are free; one whose client
    left was sent, and is billed to us. Where only a bill would count, such as for embeddings, the client that leaves before it is charged
    what was ``reserved``."""
    if exchange.status >= 400 and not (exchange.error in GONE and exchange.attempts):
        return 0
    if exchange.format and exchange.why == "not_chat":  # a conversation that was only counted
        return 0
    if exchange.error in GONE and exchange.prompt_tokens is None and not _is_by_model(exchange):
        return reserved
    return min(_prompt_of(exchange) + _output_of(exchange), MOST_TOKENS)


def _prompt_of(exchange: Exchange) -> int:
    if exchange.prompt_tokens is not None:
        return exchange.prompt_tokens
    if not _is_by_model(exchange):
        return 0
    return exchange.tokens_after or exchange.body_bytes // BYTES_PER_TOKEN


def _output_of(exchange: Exchange) -> int:
    """Return the tokens of the answer. A stream states its bill last, if at all, so a client that leaves before has its text but no bill."""
    billed = exchange.completion_tokens
    if billed is not None and exchange.error not in UNENDED:
        return billed
    if not _is_by_model(exchange):
        return 0
    by_size = exchange.answer_bytes // (BYTES_PER_STREAMED_TOKEN if exchange.stream else BYTES_PER_TOKEN)
    return max(billed or 0, by_size)


def _is_by_model(exchange: Exchange) -> bool:
    """Return whether a model wrote the answer. Of other requests, such as for a file, only the bill counts."""
    return bool(exchange.format) or exchange.stream or writes_text(exchange.path)


def writes_text(path: str) -> bool:
    """Return whether a model writes the answers at a path that is passed through. Some servers ignore a slash at its end."""
    path = path.rstrip("/")
    return path == COMPLETIONS or path in WRITING


class Rates:
    """The counts of all client keys, by a name for the key."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._own = MemoryStore()
        self._clock = clock
        self._reserved: dict[str, Reserved] = {}

    async def use(self, key: str, what: What, amount: int, limit: int) -> Used:
        """Add to a key's use and return it; an amount of 0 only reads. What does not fit stays counted in the store alone."""
        now = self._clock()
        used = await self._use_at(now, key, what, amount, limit)
        if used.count > limit:
            await self._add_own(_name(what, key, _minute(now)), -amount)
        return used

    async def _use_at(self, now: float, key: str, what: What, amount: int, limit: int) -> Used:
        count = await self._add(_name(what, key, _minute(now)), amount)
        return Used(what, limit, count, max(ceil(MINUTE_S - now % MINUTE_S), 1))

    async def reserve(self, request_id: str, key: str, tokens: int, limit: int) -> tuple[Used, bool]:
        """Reserve tokens for a request; return the use with them, and whether the request fits in the limit.

        If it does not fit, its tokens are given back, and the use without them is returned. The first request of a minute
        always fits: otherwise a request that is larger than the limit would never be served.
        """
        now = self._clock()
        minute = _minute(now)
        used = await self._use_at(now, key, "tokens", tokens, limit)
        before = used.count - tokens
        if used.count > limit and before > 0:
            await self._add(_name("tokens", key, minute), -tokens)
            return replace(used, count=before), False
        self._reserved[request_id] = Reserved(key, minute, tokens)
        return used, True

    def has_reservation(self, request_id: str) -> bool:
        """Return whether a request has a reservation."""
        return request_id in self._reserved

    def take_reservation(self, request_id: str) -> Reserved | None:
        """Remove a request's reservation and return it, to settle it; None without one."""
        return self._reserved.pop(request_id, None)

    async def settle(self, key: str, tokens: int, reserved: Reserved | None) -> None:
        """Replace a reservation by the bill: unused tokens are given back in the minute of the reservation, tokens beyond it are
        charged now."""
        now = _minute(self._clock())
        excess = tokens - (reserved.tokens if reserved else 0)
        may_return = reserved is not None and reserved.minute == now
        if excess > 0 or (excess and may_return):
            await self._add(_name("tokens", key, now), excess)

    async def _add(self, name: str, amount: int) -> int:
        """Add to both counts; return the larger.

        The store comes first. Otherwise two requests at the same moment could both be refused: one is the second here, the other is the
        second in the store.
        """
        shared = await self._store.add(name, amount, ttl_s=KEPT_S)
        own = await self._add_own(name, amount)
        return own if shared is None else max(own, shared)

    async def _add_own(self, name: str, amount: int) -> int:
        return await self._own.add(name, amount, ttl_s=KEPT_S)


def _minute(now: float) -> int:
    return int(now // MINUTE_S)


def _name(what: What, key: str, minute: int) -> str:
    return f"{what}.{key}.{minute}"
