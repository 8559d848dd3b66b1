"""Background summaries: made after a response, by a model the operator named, ready for the next request on any replica.

Nobody waits for one. Whatever goes wrong here costs a summary, and the digest stands.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog

from gateway.context.choose import transcript
from gateway.context.cut.foresight import Wish, foresee
from gateway.context.cut.layout import Source
from gateway.context.cut.summary import Summary
from gateway.context.life import identity
from gateway.context.write import verdict
from gateway.state.store.base import Store
from gateway.state.store.values import pack, unpack
from gateway.state.tasks import Tasks
from gateway.upstream.breaker import Breaker
from gateway.wire.chat import Message

log = structlog.get_logger(__name__)

Kept = TypeVar("Kept")
Ask = Callable[[str, Sequence[Message], float], Awaitable[bytes | None]]
"""(model, messages, deadline in seconds) -> the body of the answer, or None where there was no good one.

It goes to the upstream directly: a summariser's own overflow is never folded by us (case 60).
"""

KIND: Final = "summary"
VERSION: Final = 1
KEPT: Final = 2000
"""Summaries remembered in this process; each has some kilobytes."""
KNOWN_S: Final = 300.0
"""For so long: then the store is asked again, for somebody may have had it forgotten."""
NEVER: Final = ("", 0.0)
LOOKED_UP: Final = 400
"""Newest messages behind which a summary may end that is looked for in the store."""
FAILED_TTL_S: Final = 600.0
"""After a failure a cut is left alone this long, on all replicas."""
MOST_HELD: Final = 16
"""Conversations and cuts at work at once in one process, two a job. Whoever is declined asks again with its next request."""
MOST_PIECES: Final = 16
ACCOUNTS: Final = 4096
"""Callers whose failures and spending are remembered."""
SIZE_SHARE: Final = 8
"""A summary is asked to be so many times shorter than what it stands for."""
WINDOW_SHARE: Final = 16
"""And so many times smaller than the summariser's window, which must hold it twice beside what it tells of."""
SMALLEST: Final = 150
LARGEST: Final = 2000
"""Tokens. Models asked for more do not write denser, only longer."""


@dataclass(frozen=True, slots=True)
class Job:
    """A conversation that may want a summary, and who would write it."""

    scope: str
    source: Source
    """The conversation as it is folded: with the budget, the stable counter and the policy its cut depends on."""
    used: float
    """Share of the room that was in use; 1 where something had to be folded."""
    at: float
    """The share from which on a summary is wanted."""
    model: str
    """The summariser's; empty where there is none."""
    window: int
    """The summariser's own, in tokens."""
    count: Callable[[str], int]
    """Tokens of a text, as the summariser's model counts them."""
    deadline_s: float = 60.0
    """For each call."""
    tokens_per_hour: int | None = None
    payer: str = ""
    """The hash of the caller's key where the caller pays for the call; empty where the summariser's upstream has a key of its own."""

    @property
    def account(self) -> tuple[str, str]:
        """Who is at work for whom: one caller's refused key or spent hour is nobody else's."""
        return self.model, self.payer


class Summarizer:
    """The summaries of one process: found in memory or in the store, and made in the background."""

    def __init__(
        self,
        store: Store,
        tasks: Tasks,
        *,
        ttl_s: float = 30 * 86400.0,
        observed: Callable[[str, int], None] = lambda outcome, tokens: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._ttl_s = ttl_s
        self._observed = observed
        self._clock = clock
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._running: set[str] = set()
        self._breakers: OrderedDict[tuple[str, str], Breaker] = OrderedDict()
        self._spent: OrderedDict[tuple[str, str], deque[tuple[float, int]]] = OrderedDict()
        self._forgotten = 0

    def forget(self) -> None:
        """Let go of the summaries in memory, and let none that is being made now be kept."""
        self._known.clear()
        self._forgotten += 1

    async def find(self, chain: Sequence[str]) -> Summary | None:
        """Find the newest summary that covers a prefix of a conversation, given its chain (`identity.chain`).

        Give the chain up to the cut only: a summary made for the next cut must not move this one.
        """
        newest = self._newest(chain)
        unknown = chain[max(newest + 1, len(chain) - LOOKED_UP) :]
        for key, value in (await self._store.get_many(KIND, unknown)).items():
            self._remember(key, _text_in(value))
        newest = self._newest(chain)
        if newest < 0:
            return None
        self._known.move_to_end(chain[newest])
        return Summary(self._known[chain[newest]][0], newest + 1)

    def _newest(self, chain: Sequence[str]) -> int:
        """The newest place of which this process knows the summary, and knows it from lately; -1 where there is none."""
        now = self._clock()
        return next(
            (index for index in reversed(range(len(chain))) if self._known.get(chain[index], NEVER)[1] > now), -1
        )

    def consider(self, job: Job, ask: Ask) -> bool:
        """Look in the background whether a summary is wanted, and make it; False where there is nothing to look at.

        Costs the caller nothing: all counting and hashing is done in a thread.
        """
        if not job.model or job.used < job.at or len(self._running) >= MOST_HELD:
            return False
        return self._tasks.start(self._consider(job, ask), "summary") is not None

    async def _consider(self, job: Job, ask: Ask) -> None:
        chain = await asyncio.to_thread(identity.chain, job.source.messages, job.scope.encode())
        if not chain or chain[-1] in self._running:
            return  # the same request is being looked at
        async with self._holding(chain[-1]):
            earlier = await self.find(chain)
            wish = await asyncio.to_thread(foresee, job.source, earlier.covers if earlier else 0)
            key = chain[wish.covers - 1] if wish else ""
            if wish is None or key in self._running or await self._store.get(KIND, key) is not None:
                return
            async with self._holding(key):
                await self._make(job, ask, key, wish, earlier)

    @asynccontextmanager
    async def _holding(self, key: str) -> AsyncIterator[None]:
        self._running.add(key)
        try:
            yield
        finally:
            self._running.discard(key)

    async def _make(self, job: Job, ask: Ask, key: str, wish: Wish, earlier: Summary | None) -> None:
        plan = await asyncio.to_thread(_plan, job, wish, earlier)
        if plan is None:
            await self._give_up(job, key, "window_too_small")
        elif await self._store.claim(key, ttl_s=job.deadline_s * len(plan.pieces) + 30):
            try:
                await self._claimed(job, ask, key, plan)
            finally:
                await self._store.release(key)

    async def _claimed(self, job: Job, ask: Ask, key: str, plan: "Plan") -> None:
        """Make the summary that this process alone may make now."""
        if await self._store.get(KIND, key) is not None:
            return  # another replica finished between our look and our claim
        breaker = _entry(self._breakers, job.account, lambda: Breaker(pause_s=30.0, longest_s=600.0, clock=self._clock))
        forgotten = self._forgotten
        if not self._affordable(job, plan.cost) or not breaker.allows():
            self._observed("declined", 0)
            return
        text = plan.earlier
        for piece in plan.pieces:
            body = await self._asked(job, ask, transcript.question(piece, text, plan.size), breaker)
            if body is None and piece is plan.pieces[0]:
                self._refund(job, plan.cost)
            text = verdict.read(body) if body is not None else ""
            if not text or job.count(text) > transcript.longest(plan.size):
                await self._give_up(job, key, "too_long" if text else "no_answer")
                return
        judged = await asyncio.to_thread(_judge, job, plan, text)
        if not judged.text:
            await self._give_up(job, key, judged.reason)
            return
        if self._forgotten != forgotten:
            return  # something was forgotten while this was made: it may rest on that
        value = pack(VERSION, text=judged.text)
        await self._store.put(KIND, key, value, ttl_s=self._ttl_s, scope=job.scope)
        if await self._store.get(KIND, key) != value:
            # A summary that only this replica knows would make it forward other bytes than its neighbours.
            self._observed("not_stored", plan.cost)
            return
        self._remember(key, judged.text)
        self._observed("stored", plan.cost)
        log.info("summary_stored", covers=plan.wish.covers, calls=len(plan.pieces),
                 replaced=plan.wish.replaced, chars=len(judged.text))  # fmt: skip

    async def _asked(self, job: Job, ask: Ask, messages: Sequence[Message], breaker: Breaker) -> bytes | None:
        try:
            async with asyncio.timeout(job.deadline_s):
                body = await ask(job.model, messages, job.deadline_s)
        except Exception as error:  # noqa: BLE001 - a summariser may fail in any way; its text may quote the user
            log.info("summary_call_failed", model=job.model, error=type(error).__name__)
            body = None
        if body is None:
            breaker.failed()
        else:
            breaker.succeeded()
        return body

    async def _give_up(self, job: Job, key: str, reason: str) -> None:
        """Leave a mark, so that no request and no replica tries this cut again too soon."""
        self._observed(reason, 0)
        log.info("summary_rejected", model=job.model, reason=reason)
        mark = pack(VERSION, text="")
        await self._store.put(KIND, key, mark, ttl_s=FAILED_TTL_S, scope=job.scope)

    def _affordable(self, job: Job, cost: int) -> bool:
        """Whether the payer's budget of this hour still has room for the job, which is then taken from it."""
        if job.tokens_per_hour is None:
            return True
        spent = _entry(self._spent, job.account, deque[tuple[float, int]])
        now = self._clock()
        while spent and spent[0][0] <= now - 3600:
            spent.popleft()
        if sum(tokens for _, tokens in spent) + cost > job.tokens_per_hour:
            return False
        spent.append((now, cost))
        return True

    def _refund(self, job: Job, cost: int) -> None:
        """Give back what no call has cost: the first one got no answer."""
        spent = self._spent.get(job.account)
        if job.tokens_per_hour is not None and spent:
            spent.append((spent[-1][0], -cost))

    def _remember(self, key: str, text: str) -> None:
        if text:
            self._known[key] = (text, self._clock() + KNOWN_S)
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls that make a summary: one a piece, each on top of the one before."""

    wish: Wish
    pieces: list[str]
    earlier: str
    size: int
    """How long the summary should be, in tokens."""
    cost: int
    """Tokens of all calls together, about."""


def _plan(job: Job, wish: Wish, earlier: Summary | None) -> Plan | None:
    """Write the messages down in as few pieces as the summariser's window takes; None where that cannot be.

    An earlier summary that leaves no room for anything else is set aside: the client still has all the messages.
    """
    size = max(min(wish.replaced // SIZE_SHARE, job.window // WINDOW_SHARE, LARGEST), SMALLEST)
    for known in (earlier, None) if earlier else (None,):
        text, first = (known.text, known.covers) if known else ("", 0)
        room = transcript.input_room(job.window, size, text, job.count)
        if room < size:
            continue
        for longest in transcript.LONGEST:
            entries = transcript.write(job.source.messages, first, wish.covers, longest)
            pieces = transcript.pieces(entries, room, job.count)
            if 0 < len(pieces) <= MOST_PIECES:
                cost = sum(job.count(piece) for piece in pieces) + len(pieces) * 2 * size
                return Plan(wish, pieces, text, size, cost)
    return None


def _entry(kept: "OrderedDict[tuple[str, str], Kept]", key: tuple[str, str], make: Callable[[], Kept]) -> Kept:
    """Find or make an entry; the one that was used longest ago goes when there are too many."""
    if key not in kept:
        kept[key] = make()
    kept.move_to_end(key)
    while len(kept) > ACCOUNTS:
        kept.popitem(last=False)
    return kept[key]


def _judge(job: Job, plan: Plan, text: str) -> verdict.Verdict:
    covered = job.source.messages[: plan.wish.covers]
    return verdict.judge(text, covered, plan.earlier, replaced=plan.wish.replaced, size=plan.size, count=job.count)


def _text_in(value: bytes) -> str:
    """The text of a stored summary; empty for one of another version, a damaged one, or the mark of a failure."""
    stored = unpack(value, VERSION, text=str)
    return str(stored["text"]) if stored else ""
