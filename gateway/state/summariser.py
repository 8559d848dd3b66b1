"""Background summaries: made after a response by the model that the operator chose, for the next request on any replica.

No request waits for a summary. A failure here costs one summary, and the digest is used instead.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import structlog

from gateway.context.count.counter import CountText
from gateway.context.cut.foresight import SummaryGoal, next_summary
from gateway.context.cut.source import Source
from gateway.context.cut.summary import Summary
from gateway.context.life import identity
from gateway.context.life.identity import key_hash_in
from gateway.context.summarise import transcript
from gateway.state.accounts import Account, Accounts
from gateway.state.newest import keep_newest
from gateway.state.store.base import Store
from gateway.state.store.values import pack, unpack
from gateway.state.tasks import Tasks
from gateway.upstream.breaker import Breaker
from gateway.wire.message import Message
from providers.usage import read_usage

if TYPE_CHECKING:
    from gateway.context.summarise.verdict import Verdict

log = structlog.get_logger(__name__)

AskModel = Callable[[str, Sequence[Message]], Awaitable[bytes | None]]
"""(model, messages) -> the body of the answer, or None when it was not usable.

It calls the upstream directly: an overflow of the summariser's own request is never folded by us (case 60).
"""

KIND: Final = "summary"
VERSION: Final = 1
"""Version of the stored form; other versions are ignored."""
MOST_CACHED: Final = 2000
"""Summaries cached in this process. Chosen: each has a few kilobytes."""
CACHED_S: Final = 300.0
"""Time after which the store is read again: another process may have deleted the summary."""
NOT_CACHED: Final = ("", 0.0)
"""An empty text that has expired."""
NEWEST_LOOKED_UP: Final = 400
"""Newest messages of a conversation; only summaries that end after one of these are looked up in the store."""
FAILED_TTL_S: Final = 600.0
"""Time after a failure in which no replica tries this cut again."""
MOST_RUNNING: Final = 16
"""Conversations and cuts in progress in one process, two per job. A declined conversation is considered again at its
next request."""
MOST_PIECES: Final = 16
"""Calls for one summary. Chosen to bound its cost: a longer conversation keeps its digest."""
SIZE_SHARE: Final = 8
"""A summary should be this many times shorter than the messages it replaces."""
WINDOW_SHARE: Final = 16
"""A summary should be this many times smaller than the summariser's window, which must hold it twice besides the
messages."""
SMALLEST_SUMMARY: Final = 150
"""Tokens of the shortest summary. Chosen: a paragraph."""
LARGEST_SUMMARY: Final = 2000
"""Tokens. Asked for more, models write more words and no more facts."""


class SummaryJob(msgspec.Struct, frozen=True):
    """A conversation that may need a summary, and the model that would write it."""

    scope: str
    source: Source
    """The conversation as it is folded, with the budget, the stable counter and the policy that decide its cut."""
    used: float
    """Share of the room in use; 1 when something was folded."""
    at: float
    """The share at which a summary is made."""
    model: str
    """The summariser's model; empty when there is none."""
    window: int
    """The summariser's window, in tokens."""
    count: CountText
    """Counts the tokens of a text for the summariser's model."""
    deadline_s: float = 60.0
    """Time limit of each call, in seconds."""
    tokens_per_hour: int | None = None
    payer: str = ""
    """Hash of the caller's key when the caller pays for the call; empty when the summariser's upstream has its own key.
    """


class Plan(msgspec.Struct, frozen=True):
    """The calls that make a summary: one per piece, each continuing the one before."""

    goal: SummaryGoal
    pieces: list[str]
    earlier: str
    size: int
    """The wanted length of the summary, in tokens."""
    cost: int
    """Approximate tokens of all calls together."""


class Written(NamedTuple):
    """A summary, or the reason why there is none."""

    text: str = ""
    problem: str = ""
    billed: int = 0
    """Tokens that the answers say they took."""


class Summariser:
    """The summaries of one process: read from memory or the store, and made in the background. ``observed`` is called with the outcome of
    each, and with the tokens of its calls."""

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
        self._cached: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._running: set[str] = set()
        self._accounts = Accounts(clock)
        self._forgotten = 0

    def forget(self) -> None:
        """Drop the summaries in memory, and discard those in progress."""
        self._cached.clear()
        self._forgotten += 1

    async def find(self, chain: Sequence[str]) -> Summary | None:
        """Return the newest summary that covers a prefix of a conversation, given its chain (`identity.chain`).

        Pass the chain only up to the cut: a summary for the next cut must not move this one.
        """
        newest = self._newest(chain)
        unknown = chain[max(newest + 1, len(chain) - NEWEST_LOOKED_UP) :]
        for key, value in (await self._store.get_many(KIND, unknown)).items():
            self._remember(key, _text_in(value))
        newest = self._newest(chain)
        if newest < 0:
            return None
        self._cached.move_to_end(chain[newest])
        return Summary(self._cached[chain[newest]][0], newest + 1)

    def _newest(self, chain: Sequence[str]) -> int:
        """Return the newest position with a fresh summary in this process; -1 when there is none."""
        now = self._clock()
        return next(
            (index for index in reversed(range(len(chain))) if self._cached.get(chain[index], NOT_CACHED)[1] > now), -1
        )

    def make_if_needed(self, job: SummaryJob, ask: AskModel) -> bool:
        """Check in the background whether a summary is needed, and make it. Return False when there is nothing to check.

        The caller does not wait: counting and hashing run in a thread.
        """
        if not job.model or job.used < job.at or len(self._running) >= MOST_RUNNING:
            return False
        return self._tasks.start(self._check_and_make(job, ask), "summary") is not None

    async def _check_and_make(self, job: SummaryJob, ask: AskModel) -> None:
        """Find the messages that a summary should cover, and make it unless it exists or is being made."""
        chain = await asyncio.to_thread(identity.chain, job.source.sent, job.scope)
        if not chain or chain[-1] in self._running:
            return  # the same request is being checked
        async with self._running_for(chain[-1]):
            earlier = await self.find(chain)
            goal = await asyncio.to_thread(next_summary, job.source, earlier.covers if earlier else 0)
            key = chain[goal.covers - 1] if goal else ""
            if goal is None or key in self._running or await self._store.get(KIND, key) is not None:
                return
            async with self._running_for(key):
                await self._make(job, ask, key, goal, earlier)

    @asynccontextmanager
    async def _running_for(self, key: str) -> AsyncIterator[None]:
        """Mark a conversation or a cut as in progress in this process."""
        self._running.add(key)
        try:
            yield
        finally:
            self._running.discard(key)

    async def _make(self, job: SummaryJob, ask: AskModel, key: str, goal: SummaryGoal, earlier: Summary | None) -> None:
        """Plan the calls, claim the job among all replicas, and make the summary."""
        plan = await asyncio.to_thread(_plan, job, goal, earlier)
        if plan is None:
            await self._give_up(job, key, "window_too_small")
        elif await self._store.claim(key, ttl_s=job.deadline_s * len(plan.pieces) + 30):
            try:
                await self._make_claimed(job, ask, key, plan)
            finally:
                await self._store.release(key)

    async def _make_claimed(self, job: SummaryJob, ask: AskModel, key: str, plan: Plan) -> None:
        """Make and store the summary; only this process holds the claim."""
        if await self._store.get(KIND, key) is not None:
            return  # another replica finished between our check and our claim
        account, forgotten = self._accounts.of(job.model, job.payer), self._forgotten
        caller = key_hash_in(job.scope)
        # The budget is checked first: `begin_call` may use up the only trial call that the breaker allows.
        if not account.can_afford(plan.cost, caller, job.tokens_per_hour) or not account.breaker.begin_call():
            self._observed("declined", 0)
            return
        account.charge(plan.cost, caller)
        written = await self._write(job, ask, plan, account)
        if written.billed > plan.cost:  # a model that thinks first writes many times what it was asked for
            account.charge(written.billed - plan.cost, caller)
        if not written.text:
            await self._give_up(job, key, written.problem)
        elif self._forgotten == forgotten:  # else something was deleted meanwhile, on which the summary may depend
            await self._put(job, key, plan, written)

    async def _write(self, job: SummaryJob, ask: AskModel, plan: Plan, account: Account) -> Written:
        """Ask the model to write the summary piece by piece, and check the result."""
        text, billed = plan.earlier, 0
        for piece in plan.pieces:
            body = await self._call(job, ask, transcript.question(piece, text, plan.size), account.breaker)
            if body is None and piece is plan.pieces[0]:
                account.refund(plan.cost, key_hash_in(job.scope))
            text = _read(body) if body is not None else ""
            billed += _billed(body) if body is not None else 0
            if not text:
                return Written(problem="no_answer", billed=billed)
            if job.count(text) > transcript.longest(plan.size):
                return Written(problem="too_long", billed=billed)
        judged = await asyncio.to_thread(_judge, job, plan, text)
        return Written(judged.text, judged.reason, billed)

    async def _put(self, job: SummaryJob, key: str, plan: Plan, written: Written) -> None:
        """Store a summary, and use it if the store has kept it."""
        text, cost = written.text, max(plan.cost, written.billed)
        value = pack(VERSION, text=text)
        await self._store.put(KIND, key, value, ttl_s=self._ttl_s, scope=job.scope)
        if await self._store.get(KIND, key) != value:
            # A summary known to one replica only would make it forward other bytes than the other replicas.
            self._observed("not_stored", cost)
            return
        self._remember(key, text)
        self._observed("stored", cost)
        log.info("summary_stored", covers=plan.goal.covers, calls=len(plan.pieces),
                 replaced=plan.goal.replaced_tokens, chars=len(text))  # fmt: skip

    async def _call(
        self, job: SummaryJob, ask: AskModel, messages: Sequence[Message], breaker: Breaker
    ) -> bytes | None:
        """Return the body of the model's answer; None after any failure. The breaker counts both."""
        try:
            async with asyncio.timeout(job.deadline_s):
                body = await ask(job.model, messages)
        except Exception as error:  # noqa: BLE001 - a summariser may fail in any way; its text may quote the user
            log.info("summary_call_failed", model=job.model, error=type(error).__name__)
            body = None
        if body is None:
            breaker.failed()
        else:
            breaker.succeeded()
        return body

    async def _give_up(self, job: SummaryJob, key: str, reason: str) -> None:
        """Store a mark, so that no request and no replica tries this cut again too soon."""
        self._observed(reason, 0)
        log.info("summary_rejected", model=job.model, reason=reason)
        mark = pack(VERSION, text="")
        await self._store.put(KIND, key, mark, ttl_s=FAILED_TTL_S, scope=job.scope)

    def _remember(self, key: str, text: str) -> None:
        if text:
            keep_newest(self._cached, key, (text, self._clock() + CACHED_S), MOST_CACHED)


def _plan(job: SummaryJob, goal: SummaryGoal, earlier: Summary | None) -> Plan | None:
    """Write the messages in as few pieces as the summariser's window allows; None when impossible.

    An earlier summary that leaves no room for new messages is ignored: the client still has all the messages.
    """
    size = max(min(goal.replaced_tokens // SIZE_SHARE, job.window // WINDOW_SHARE, LARGEST_SUMMARY), SMALLEST_SUMMARY)
    for known in (earlier, None) if earlier else (None,):
        text, first = (known.text, known.covers) if known else ("", 0)
        room = transcript.input_room(job.window, size, text, job.count)
        if room < size:
            continue
        for longest in transcript.LONGEST_ENTRY:
            entries = transcript.write(job.source.messages, first, goal.covers, longest)
            pieces = transcript.pieces(entries, room, job.count)
            if 0 < len(pieces) <= MOST_PIECES:
                cost = sum(job.count(piece) for piece in pieces) + len(pieces) * 2 * size
                return Plan(goal, pieces, text, size, cost)
    return None


def _read(body: bytes) -> str:
    from gateway.context.summarise import verdict  # noqa: PLC0415  # loads what reads a fold's lines, which a start does not need

    return verdict.read(body)


def _billed(body: bytes) -> int:
    """Return the tokens that an answer says it took; 0 if it does not say so."""
    usage = read_usage(body)
    return usage.prompt + (usage.completion or 0) if usage is not None else 0


def _judge(job: SummaryJob, plan: Plan, text: str) -> "Verdict":
    from gateway.context.summarise import verdict  # noqa: PLC0415  # see `_read`

    covered = job.source.messages[: plan.goal.covers]
    return verdict.judge(
        text, covered, plan.earlier, replaced=plan.goal.replaced_tokens, size=plan.size, count=job.count
    )


def _text_in(value: bytes) -> str:
    """Return the text of a stored summary; empty for another version, a damaged value, or the mark of a failure."""
    stored = unpack(value, VERSION, text=str)
    return str(stored["text"]) if stored else ""
