"""Background summaries: made after a response, by a model the operator named, ready for the next request on any replica.

Nobody waits for one. Whatever goes wrong here costs a summary, and the digest stands.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
import structlog

from gateway.breaker import Breaker
from gateway.context import identity, transcript, verdict
from gateway.context.summary import Summary
from gateway.store.base import Store
from gateway.tasks import Tasks
from providers.wire import Message

log = structlog.get_logger(__name__)

Ask = Callable[[str, Sequence[Message], float], Awaitable[bytes | None]]
"""(model, messages, deadline in seconds) -> the body of the answer, or None where there was no good one.

It goes to the upstream directly: a summariser's own overflow is never folded by us (case 60).
"""

KIND: Final = "summary"
VERSION: Final = 1
KEPT: Final = 2000
"""Summaries remembered in this process; each has some kilobytes."""
LOOKED_UP: Final = 400
"""Newest messages behind which a summary may end that is looked for in the store."""
FAILED_TTL_S: Final = 600.0
"""After a failure a cut is left alone this long, on all replicas."""
MOST_JOBS: Final = 8
"""At once in one process. Whoever is declined asks again with its next request."""
MOST_PIECES: Final = 16
SIZE_SHARE: Final = 8
"""A summary is asked to be so many times shorter than what it stands for."""
SMALLEST: Final = 150
LARGEST: Final = 2000
"""Tokens. Models asked for more do not write denser, only longer."""


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to be made, with everything it is made from and for whom."""

    scope: str
    messages: Sequence[Message]
    covers: int
    replaced: int
    """Tokens that the covered messages cost."""
    model: str
    window: int
    """The summariser's own, in tokens."""
    count: Callable[[str], int]
    """Tokens of a text, as the summariser's model counts them."""
    deadline_s: float = 60.0
    """For each call."""
    tokens_per_hour: int | None = None

    @property
    def size(self) -> int:
        """How long the summary should be, in tokens."""
        return min(max(self.replaced // SIZE_SHARE, SMALLEST), LARGEST)


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
        self._known: OrderedDict[str, str] = OrderedDict()
        self._running: set[str] = set()
        self._breakers: dict[str, Breaker] = {}
        self._spent: dict[str, deque[tuple[float, int]]] = {}

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
        return Summary(self._known[chain[newest]], newest + 1)

    def _newest(self, chain: Sequence[str]) -> int:
        return next((index for index in reversed(range(len(chain))) if chain[index] in self._known), -1)

    def consider(self, job: Job, ask: Ask) -> bool:
        """Start making a summary in the background; False where it is declined at once."""
        if len(self._running) >= MOST_JOBS or job.covers > len(job.messages):
            return False
        return self._tasks.start(self._work(job, ask), "summary") is not None

    async def _work(self, job: Job, ask: Ask) -> None:
        chain = identity.chain(job.messages[: job.covers], job.scope.encode())
        key = chain[-1]
        if key in self._running or key in self._known:
            return
        self._running.add(key)
        try:
            if await self._store.get(KIND, key) is not None:
                return
            plan = await asyncio.to_thread(_plan, job, await self.find(chain[:-1]))
            if plan is None:
                await self._give_up(job, key, "window_too_small")
            elif await self._store.claim(key, ttl_s=job.deadline_s * len(plan.pieces) + 30):
                try:
                    await self._claimed(job, ask, key, plan)
                finally:
                    await self._store.release(key)
        finally:
            self._running.discard(key)

    async def _claimed(self, job: Job, ask: Ask, key: str, plan: "Plan") -> None:
        """Make the summary that this process alone may make now."""
        if await self._store.get(KIND, key) is not None:
            return  # another replica finished between our look and our claim
        breaker = self._breakers.setdefault(job.model, Breaker(pause_s=30.0, longest_s=600.0, clock=self._clock))
        if not self._affordable(job, plan.cost) or not breaker.allows():
            self._observed("declined", 0)
            return
        text = plan.earlier
        for piece in plan.pieces:
            body = await self._asked(job, ask, transcript.question(piece, text, job.size), breaker)
            text = verdict.read(body) if body is not None else ""
            if not text:
                await self._give_up(job, key, "no_answer")
                return
        judged = await asyncio.to_thread(_judge, job, plan, text)
        if not judged.text:
            await self._give_up(job, key, judged.reason)
            return
        self._remember(key, judged.text)
        value = orjson.dumps({"v": VERSION, "text": judged.text})
        await self._store.put(KIND, key, value, ttl_s=self._ttl_s, scope=job.scope)
        self._observed("stored", plan.cost)
        log.info(
            "summary_stored", covers=job.covers, calls=len(plan.pieces), replaced=job.replaced, chars=len(judged.text)
        )

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
        log.info("summary_rejected", covers=job.covers, model=job.model, reason=reason)
        mark = orjson.dumps({"v": VERSION, "text": ""})
        await self._store.put(KIND, key, mark, ttl_s=FAILED_TTL_S, scope=job.scope)

    def _affordable(self, job: Job, cost: int) -> bool:
        """Whether the hour's budget of this summariser still has room for the job, which is then taken from it."""
        if job.tokens_per_hour is None:
            return True
        spent = self._spent.setdefault(job.model, deque())
        now = self._clock()
        while spent and spent[0][0] <= now - 3600:
            spent.popleft()
        if sum(tokens for _, tokens in spent) + cost > job.tokens_per_hour:
            return False
        spent.append((now, cost))
        return True

    def _remember(self, key: str, text: str) -> None:
        if text:
            self._known[key] = text
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls that make a summary: one a piece, each on top of the one before."""

    pieces: list[str]
    earlier: str
    cost: int
    """Tokens of all calls together, about."""


def _plan(job: Job, earlier: Summary | None) -> Plan | None:
    """Write the messages down in as few pieces as the summariser's window takes; None where that cannot be.

    An earlier summary that leaves no room for anything else is set aside: the client still has all the messages.
    """
    for known in (earlier, None) if earlier else (None,):
        text, first = (known.text, known.covers) if known else ("", 0)
        room = transcript.input_room(job.window, job.size, text, job.count)
        if room < job.size:
            continue
        for longest in transcript.LONGEST:
            entries = transcript.write(job.messages, first, job.covers, longest)
            pieces = transcript.pieces(entries, room, job.count)
            if 0 < len(pieces) <= MOST_PIECES:
                cost = sum(job.count(piece) for piece in pieces) + len(pieces) * 2 * job.size
                return Plan(pieces, text, cost)
    return None


def _judge(job: Job, plan: Plan, text: str) -> verdict.Verdict:
    covered = job.messages[: job.covers]
    return verdict.judge(text, covered, plan.earlier, replaced=job.replaced, size=job.size, count=job.count)


def _text_in(value: bytes) -> str:
    """The text of a stored summary; empty for one of another version, a damaged one, or the mark of a failure."""
    try:
        stored = orjson.loads(value)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(stored, dict) or stored.get("v") != VERSION or not isinstance(stored.get("text"), str):
        return ""
    return str(stored["text"])
