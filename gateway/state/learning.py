"""Learned facts about upstreams: the windows and ratios of their models. They are kept in memory and shared through the store.

Requests read them from memory. Facts of other processes are fetched when a model is first used, and again every `REFRESH_S`. Facts learned
here are written in the background. All of them are derived: losing one costs a refusal or a count.

This module decides what a lesson may change. Refusals and bills of a *learner* change facts about that learner only: a caller's scope and,
where the gateway checks no keys, its network address. A guess changes facts about its own conversation only
(`gateway.state.conversations`). Only an upstream's own model list holds for everyone.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from gateway.context.count.calibration import Calibration
from gateway.context.life.lessons import (
    ConversationBilled,
    ConversationSeen,
    CountCompared,
    Lesson,
    PromptRead,
    SmallerFold,
    StatedWindow,
)
from gateway.state import facts
from gateway.state.conversations import Conversations
from gateway.state.facts import Fact, Owner, Ratio, SmallerSize, StatedSize, Windows
from gateway.state.forgetting import Forgotten
from gateway.state.model_lists import ModelLists
from gateway.state.newest import keep_newest
from gateway.state.store.base import Store
from gateway.state.stored_facts import StoredFacts
from gateway.state.tasks import Tasks

log = structlog.get_logger(__name__)

STATED_TTL_S: Final = 24 * 3600.0
"""Lifetime of a limit that an upstream stated; deployments change, so it is tested again once a day."""
FIRST_STATED_TTL_S: Final = 3600.0
"""The same when it was confirmed only now: one of several backends may have stated it, so the larger size is tried
again soon."""
GUESSED_TTL_S: Final = 3600.0
"""Lifetime of a size that was accepted after a refusal without numbers: the real window may be larger."""
LARGEST_TTL_S: Final = 24 * 3600.0
"""The largest billed prompt. The same day as for a stated limit, which it can disprove."""
STORED_GROWTH: Final = 1.25
"""Factor by which the largest billed prompt must grow to be stored again: a growing conversation is billed a little more each time."""
RATIO_TTL_S: Final = facts.LONGEST_TTL_S
"""A model's ratio. Chosen: tokenizers change less often than deployments."""
REFRESH_S: Final = 30.0
"""Interval at which facts of other processes are fetched again."""
OWNERS: Final = 4096
"""Models, each of a learner, whose facts are kept in this process, about 1 KB each; and as many without facts. Chosen to bound memory: clients
choose the names."""


NO_WINDOWS: Final = Windows()
"""The facts about a window of which nothing was learned."""


class Known(msgspec.Struct, frozen=True):
    """The facts about one model that one learner's requests taught."""

    windows: Windows = msgspec.field(default_factory=Windows)
    ratio: Ratio | None = None
    fetched_at: float | None = None
    """When they were last fetched from the store; None before the first time."""
    has_suspect_bills: bool = False
    """Whether some bills were suspect, so that the last requests of conversations are looked up."""

    @property
    def empty(self) -> bool:
        """Return whether nothing was learned: the store was only asked."""
        return self.ratio is None and not self.has_suspect_bills and self.windows == NO_WINDOWS


UNKNOWN: Final = Known()
"""The facts about a model of which nothing was learned yet."""
UNCALIBRATED: Final = Calibration()
"""The calibration without a learned ratio."""


class Learning:
    """The learned facts and their store. ``ignored`` is called with each stored value that cannot be our own."""

    def __init__(
        self,
        store: Store,
        tasks: Tasks,
        clock: Callable[[], float] = time.time,
        ignored: Callable[[str], None] = lambda kind: None,
    ) -> None:
        self._stored = StoredFacts(store, tasks, ignored)
        self._tasks = tasks
        self._clock = clock
        self._forgotten = Forgotten()
        self.lists = ModelLists(clock)
        self.conversations = Conversations(self._stored, clock)
        self._known: OrderedDict[Owner, Known] = OrderedDict()
        self._without_facts: OrderedDict[Owner, Known] = OrderedDict()
        """Owners of whom nothing is known. They are apart, so that invented keys and models push out no facts: those come from answers alone."""

    def is_due(self, owner: Owner) -> bool:
        """Return whether to `fetch` the facts about a learner's model: never fetched, not since `REFRESH_S`, or before the clock was set
        back."""
        read = self._facts_about(owner).fetched_at
        return read is None or not 0 <= self._clock() - read < REFRESH_S

    async def fetch_if_due(self, owner: Owner) -> None:
        """Fetch the store's facts, where that is due."""
        if self.is_due(owner):
            await self.fetch(owner)

    async def fetch(self, owner: Owner) -> None:
        """Fetch the store's facts. The first time this waits for the store; later it happens in the background."""
        first = self._facts_about(owner).fetched_at is None
        self._update(owner, fetched_at=self._clock())
        if first:
            await self._read_store(owner)
        else:
            self._tasks.start(self._read_store(owner), "learned")

    def stated_window(self, owner: Owner) -> int | None:
        """Return the window that refusals stated to this learner; None without one, or when it has expired."""
        known = self._facts_about(owner).windows
        if not known.stated:
            return None
        now = self._clock()
        return min((one.tokens for one in known.stated if facts.in_force(one, known, now)), default=None)

    def calibration(self, owner: Owner) -> Calibration:
        """Return the ratio between a model's bills and our counts, with its evidence."""
        known = self._facts_about(owner).ratio
        return known.calibration if known is not None and known.until > self._clock() else UNCALIBRATED

    def ratio(self, owner: Owner) -> float:
        """Return the factor for our counts of a model; it moves in coarse steps."""
        return self.calibration(owner).ratio

    async def adopt_stored_ratio(self, owner: Owner) -> bool:
        """Replace the ratio by the one in the store; return whether it has changed.

        A cut is measured with the ratio, so processes that share a store fold a conversation to the same bytes. If the
        stored ratio is the same, the reports that this process has collected are kept.
        """
        stored = await self._stored.get("ratio", _stored_name(owner), facts.read_ratio)
        if (
            stored is None
            or self._forgotten.covers(facts.model_of(owner), stored.since)
            or stored.until <= self._clock()
        ):
            return False
        before, ours = self.ratio(owner), self._facts_about(owner).ratio
        if ours is None or stored.calibration.ratio != before:
            self._update(owner, ratio=stored)
        return self.ratio(owner) != before

    def may_fold_smaller(self, owner: Owner) -> bool:
        """Return whether some conversation of this learner is folded smaller than its window: only then is `smaller_size`
        needed."""
        return self._facts_about(owner).windows.smaller_until > self._clock()

    async def smaller_size(self, owner: Owner, chain: Sequence[str]) -> int | None:
        """Return the size to which this conversation is folded, if it is smaller than the common window."""
        return await self.conversations.smaller_size(owner, chain, self._proven(owner))

    def has_suspect_bills(self, owner: Owner) -> bool:
        """Return whether bills of this model to this learner were suspect, so that the last requests of its conversations are looked up."""
        return self._facts_about(owner).has_suspect_bills

    def learn(self, lessons: Iterable[Lesson], learner: str) -> None:
        """Apply the lessons of a refusal or an answer that this learner (`identity.learner_of`) got."""
        for lesson in lessons:
            match lesson:
                case StatedWindow():
                    self._apply_stated_window(lesson, learner)
                case SmallerFold():
                    self._apply_guess(lesson, learner)
                case PromptRead():
                    self._apply_bill(lesson, learner)
                case CountCompared():
                    self._apply_comparison(lesson, learner)
                case ConversationBilled():
                    self.conversations.set_anchor(lesson)
                case ConversationSeen():
                    self.conversations.set_last_request(lesson)
                    if lesson.last_request.suspicions:
                        self._update((lesson.upstream, lesson.model, learner), has_suspect_bills=True)

    def facts(self) -> list[Fact]:
        """Return everything this process has learned, for operators."""
        now = self._clock()
        found = self.lists.facts()
        for owner, known in self._known.items():
            found += facts.window_facts(owner, known.windows, now)
            if known.ratio is not None and known.ratio.until > now:
                found.append(facts.ratio_fact(owner, known.ratio))
        return found + self.conversations.facts()

    async def load_all(self) -> None:
        """Fetch everything in the store, for operators."""
        for kind in ("window", "ratio"):
            for name in await self._stored.names(kind, OWNERS):
                if (owner := _owner_of(name)) is not None:
                    await self._read_store(owner)
        await self.conversations.load_all(OWNERS)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop everything in memory; facts stored after the deletion are fetched again when needed."""
        self._forgotten = forgotten
        self._known.clear()
        self._without_facts.clear()
        self.conversations.forget(forgotten)
        self.lists.forget()

    def _apply_stated_window(self, lesson: StatedWindow, learner: str) -> None:
        """Apply a stated window: it holds for this conversation at once, and for all of its learner after a second refusal."""
        owner, now = (lesson.upstream, lesson.model, learner), self._clock()
        known = self._facts_about(owner).windows
        earlier = next((one for one in known.stated if one.tokens == lesson.tokens and one.until > now), None)
        refusals, since = (earlier.refusals, earlier.since) if earlier else (0, now)
        refusals += earlier is None or earlier.conversation != lesson.conversation
        ttl_s = STATED_TTL_S if refusals != facts.ENOUGH_REFUSALS else FIRST_STATED_TTL_S
        stated = StatedSize(
            tokens=lesson.tokens, prompt=lesson.prompt, counted=lesson.counted, sign=lesson.sign[: facts.SIGN_CHARS],
            conversation=lesson.conversation, refusals=refusals, since=since, until=now + ttl_s,
        )  # fmt: skip
        others = [one for one in known.stated if one.tokens != lesson.tokens and one.until > now]
        self._set_windows(owner, replace(known, stated=(*others, stated)[-facts.STATED_KEPT :]))
        log.info("window_stated", upstream=lesson.upstream, model=lesson.model, window=lesson.tokens, prompt=lesson.prompt,
                 counted=lesson.counted, sign=lesson.sign, refusals=refusals, expires_in_s=ttl_s)  # fmt: skip
        if self._proven(owner) <= lesson.tokens:
            smaller = SmallerSize(
                upstream=lesson.upstream, model=lesson.model, learner=learner, tokens=lesson.tokens, kind="stated",
                sign=stated.sign, billed=None, counted=lesson.counted, since=now, until=now + STATED_TTL_S,
            )  # fmt: skip
            self._fold_smaller(lesson.scope, lesson.conversation, smaller)

    def _apply_guess(self, lesson: SmallerFold, learner: str) -> None:
        """Fold one conversation to a guessed size. It is at least the largest prompt that was billed lately: this much fits."""
        now = self._clock()
        proven = self._proven((lesson.upstream, lesson.model, learner))
        guess = SmallerSize(
            upstream=lesson.upstream, model=lesson.model, learner=learner, tokens=max(lesson.tokens, proven), kind="guessed",
            sign=lesson.sign[: facts.SIGN_CHARS], billed=lesson.billed, counted=lesson.counted, since=now, until=now + GUESSED_TTL_S,
        )  # fmt: skip
        self._fold_smaller(lesson.scope, lesson.conversation, guess)

    def _fold_smaller(self, scope: str, conversation: str, smaller: SmallerSize) -> None:
        """Fold one conversation to a smaller size from now on: store the size, and that this learner has such a size."""
        owner = smaller.owner
        self.conversations.fold_smaller(scope, conversation, smaller)
        known = self._facts_about(owner).windows
        if known.smaller_until < smaller.until:
            self._set_windows(owner, replace(known, smaller_until=smaller.until))
        if smaller.kind == "guessed":
            log.info("fold_guessed", upstream=smaller.upstream, model=smaller.model, tokens=smaller.tokens, sign=smaller.sign,
                     billed=smaller.billed, counted=smaller.counted, expires_in_s=smaller.until - smaller.since)  # fmt: skip

    def _apply_bill(self, lesson: PromptRead, learner: str) -> None:
        """Apply a billed prompt: it disproves smaller windows, stated or guessed."""
        owner, now = (lesson.upstream, lesson.model, learner), self._clock()
        known = self._facts_about(owner).windows
        if not known.stated and lesson.tokens <= known.largest and known.smaller_until <= now < known.largest_until:
            return  # the usual bill: nothing to disprove, and no larger than others
        stated = tuple(one for one in known.stated if one.tokens >= lesson.tokens)
        for one in known.stated:
            if one not in stated:
                log.info("window_disproved", upstream=lesson.upstream, model=lesson.model, window=one.tokens,
                         billed=lesson.tokens)  # fmt: skip
        if known.smaller_until > now:
            self.conversations.end_smaller(owner, lesson.tokens)
        grew = lesson.tokens > known.largest or known.largest_until <= now
        dropped = len(stated) != len(known.stated)
        if not grew and not dropped:
            return
        fresh = replace(known, stated=stated)
        if grew:
            fresh = replace(fresh, largest=lesson.tokens, largest_since=now, largest_until=now + LARGEST_TTL_S)
        if dropped or lesson.tokens > STORED_GROWTH * known.largest or known.largest_until <= now:
            self._set_windows(owner, fresh)
        else:
            self._update(owner, windows=fresh)

    def _apply_comparison(self, lesson: CountCompared, learner: str) -> None:
        """Apply a bill of a counted prompt to the ratio between bills and counts."""
        owner, now = (lesson.upstream, lesson.model, learner), self._clock()
        known = self._facts_about(owner).ratio or Ratio(Calibration(), now, now)
        calibration = known.calibration.observe(
            lesson.counted, lesson.billed, stated=lesson.stated, counter=lesson.counter
        )
        if calibration == known.calibration:
            return
        if not lesson.stated and known.calibration.has_stopped_growing(lesson.counted, lesson.billed):
            log.warning("bills_stopped_growing", upstream=lesson.upstream, model=lesson.model, billed=lesson.billed,
                        counted=lesson.counted)  # fmt: skip
        learned = Ratio(calibration, known.since, now + RATIO_TTL_S)
        self._update(owner, ratio=learned)
        if calibration.ratio != known.calibration.ratio or calibration.confirmed != known.calibration.confirmed:
            log.info("ratio_learned", upstream=lesson.upstream, model=lesson.model, ratio=calibration.ratio,
                     counted=lesson.counted, billed=lesson.billed, confirmed=calibration.confirmed)  # fmt: skip
            self._stored.put("ratio", _stored_name(owner), facts.pack_ratio(learned), RATIO_TTL_S, learner)

    def _facts_about(self, owner: Owner) -> Known:
        return self._known.get(owner) or self._without_facts.get(owner, UNKNOWN)

    def _proven(self, owner: Owner) -> int:
        """Return the largest prompt that was billed to this learner lately; 0 without one. This much fits."""
        known = self._facts_about(owner).windows
        return known.largest if known.largest_until > self._clock() else 0

    def _update(self, owner: Owner, **facts: Any) -> None:
        """Change some facts in memory; the least recently changed owner is dropped when there are too many. Owners without facts push out none
        that has some."""
        known = replace(self._facts_about(owner), **facts)
        kept, others = (self._without_facts, self._known) if known.empty else (self._known, self._without_facts)
        others.pop(owner, None)
        keep_newest(kept, owner, known, OWNERS)

    def _set_windows(self, owner: Owner, windows: Windows) -> None:
        """Change the facts about a window, in memory and in the store."""
        _, _, learner = owner
        self._update(owner, windows=windows)
        self._stored.put("window", _stored_name(owner), facts.pack_windows(windows), STATED_TTL_S, learner)

    async def _read_store(self, owner: Owner) -> None:
        """Take the facts about a learner's model from the store."""
        name, model = _stored_name(owner), facts.model_of(owner)
        windows = await self._stored.get("window", name, facts.read_windows)
        ratio = await self._stored.get("ratio", name, facts.read_ratio)
        if windows is not None:
            self._update(owner, windows=self._forgotten.still_valid(model, windows))
        if ratio is not None and not self._forgotten.covers(model, ratio.since):
            self._update(owner, ratio=ratio)


def _stored_name(owner: Owner) -> str:
    return "\n".join(owner)


def _owner_of(name: str) -> Owner | None:
    """Return the owner of a stored fact; None for a name in another form."""
    upstream, _, rest = name.partition("\n")
    model, separator, learner = rest.rpartition("\n")  # clients choose the model's name
    return (upstream, model, learner) if separator else None
