"""Learning: what a lesson changes in the facts about upstreams, and what is known of them.

All facts are derived: losing one costs a refusal or a count. Refusals and bills of a *learner* change facts about that learner only: a caller's
scope and, where the gateway checks no keys, its network address. A guess changes facts about its own conversation only
(`gateway.state.conversations`). Only an upstream's own model list holds for everyone (`gateway.state.model_lists`).
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

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
from gateway.state.facts import Fact, Owner, Ratio, SmallerSize, StatedSize
from gateway.state.forgetting import Forgotten
from gateway.state.model_lists import ModelLists
from gateway.state.owner_facts import MOST_OWNERS, RATIO_TTL_S, WINDOWS_TTL_S, FactsByOwner
from gateway.state.store.base import Store
from gateway.state.stored_facts import StoredFacts
from gateway.state.tasks import Tasks

log = structlog.get_logger(__name__)

STATED_TTL_S: Final = WINDOWS_TTL_S
"""Lifetime of a limit that an upstream stated."""
FIRST_STATED_TTL_S: Final = 3600.0
"""The same when it was confirmed only now: one of several backends may have stated it, so the larger size is tried
again soon."""
GUESSED_TTL_S: Final = 3600.0
"""Lifetime of a size that was accepted after a refusal without numbers: the real window may be larger."""
LARGEST_TTL_S: Final = 24 * 3600.0
"""The largest billed prompt. The same day as for a stated limit, which it can disprove."""
STORED_GROWTH: Final = 1.25
"""Factor by which the largest billed prompt must grow to be stored again: a growing conversation is billed a little more each time."""


class Learning:
    """The learned facts and their store. ``ignored`` is called with each stored value that cannot be our own."""

    def __init__(
        self,
        store: Store,
        tasks: Tasks,
        clock: Callable[[], float] = time.time,
        ignored: Callable[[str], None] = lambda kind: None,
    ) -> None:
        stored = StoredFacts(store, tasks, ignored)
        self._clock = clock
        self.owners = FactsByOwner(stored, tasks, clock)
        self.lists = ModelLists(clock)
        self.conversations = Conversations(stored, clock)

    def stated_window(self, owner: Owner) -> int | None:
        """Return the window that refusals stated to this learner; None without one, or when it has expired."""
        known = self.owners.of(owner).windows
        if not known.stated:
            return None
        now = self._clock()
        return min((one.tokens for one in known.stated if facts.in_force(one, known, now)), default=None)

    def calibration(self, owner: Owner) -> Calibration:
        """Return the ratio between a model's bills and our counts, with its evidence."""
        return self.owners.calibration(owner)

    def ratio(self, owner: Owner) -> float:
        """Return the factor for our counts of a model; it moves in coarse steps."""
        return self.calibration(owner).ratio

    def may_fold_smaller(self, owner: Owner) -> bool:
        """Return whether some conversation of this learner is folded smaller than its window: only then is `smaller_size`
        needed."""
        return self.owners.of(owner).windows.smaller_until > self._clock()

    async def smaller_size(self, owner: Owner, chain: Sequence[str]) -> int | None:
        """Return the size to which this conversation is folded, if it is smaller than the common window."""
        return await self.conversations.smaller_size(owner, chain, self.owners.largest_billed(owner))

    def has_suspect_bills(self, owner: Owner) -> bool:
        """Return whether bills of this model to this learner were suspect, so that the last requests of its conversations are looked up."""
        return self.owners.of(owner).has_suspect_bills

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
                        self.owners.update((lesson.upstream, lesson.model, learner), has_suspect_bills=True)

    def facts(self) -> list[Fact]:
        """Return everything this process has learned, for operators."""
        now = self._clock()
        found = self.lists.facts()
        for owner, known in self.owners.known():
            found += facts.window_facts(owner, known.windows, now)
            if known.ratio is not None and known.ratio.until > now:
                found.append(facts.ratio_fact(owner, known.ratio))
        return found + self.conversations.facts()

    async def load_all(self) -> None:
        """Fetch everything in the store, for operators."""
        await self.owners.load_all()
        await self.conversations.load_all(MOST_OWNERS)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop everything in memory; facts stored after the deletion are fetched again when needed."""
        self.owners.forget(forgotten)
        self.conversations.forget(forgotten)
        self.lists.forget()

    def _apply_stated_window(self, lesson: StatedWindow, learner: str) -> None:
        """Apply a stated window: it holds for this conversation at once, and for all of its learner after a second refusal."""
        owner, now = (lesson.upstream, lesson.model, learner), self._clock()
        known = self.owners.of(owner).windows
        earlier = next((one for one in known.stated if one.tokens == lesson.tokens and one.until > now), None)
        refusals, since = (earlier.refusals, earlier.since) if earlier else (0, now)
        refusals += earlier is None or earlier.conversation != lesson.conversation
        ttl_s = STATED_TTL_S if refusals != facts.ENOUGH_REFUSALS else FIRST_STATED_TTL_S
        stated = StatedSize(
            tokens=lesson.tokens, prompt=lesson.prompt, counted=lesson.counted, sign=lesson.sign[: facts.SIGN_CHARS],
            conversation=lesson.conversation, refusals=refusals, since=since, until=now + ttl_s,
        )  # fmt: skip
        others = [one for one in known.stated if one.tokens != lesson.tokens and one.until > now]
        self.owners.store_windows(owner, replace(known, stated=(*others, stated)[-facts.STATED_KEPT :]))
        log.info("window_stated", upstream=lesson.upstream, model=lesson.model, window=lesson.tokens, prompt=lesson.prompt,
                 counted=lesson.counted, sign=lesson.sign, refusals=refusals, expires_in_s=ttl_s)  # fmt: skip
        if self.owners.largest_billed(owner) <= lesson.tokens:
            smaller = SmallerSize(
                upstream=lesson.upstream, model=lesson.model, learner=learner, tokens=lesson.tokens, kind="stated",
                sign=stated.sign, billed=None, counted=lesson.counted, since=now, until=now + STATED_TTL_S,
            )  # fmt: skip
            self._fold_smaller(lesson.scope, lesson.conversation, smaller)

    def _apply_guess(self, lesson: SmallerFold, learner: str) -> None:
        """Fold one conversation to a guessed size. It is at least the largest prompt that was billed lately: this much fits."""
        now = self._clock()
        proven = self.owners.largest_billed((lesson.upstream, lesson.model, learner))
        guess = SmallerSize(
            upstream=lesson.upstream, model=lesson.model, learner=learner, tokens=max(lesson.tokens, proven), kind="guessed",
            sign=lesson.sign[: facts.SIGN_CHARS], billed=lesson.billed, counted=lesson.counted, since=now, until=now + GUESSED_TTL_S,
        )  # fmt: skip
        self._fold_smaller(lesson.scope, lesson.conversation, guess)

    def _fold_smaller(self, scope: str, conversation: str, smaller: SmallerSize) -> None:
        """Fold one conversation to a smaller size from now on: store the size, and that this learner has such a size."""
        owner = smaller.owner
        self.conversations.fold_smaller(scope, conversation, smaller)
        known = self.owners.of(owner).windows
        if known.smaller_until < smaller.until:
            self.owners.store_windows(owner, replace(known, smaller_until=smaller.until))
        if smaller.kind == "guessed":
            log.info("fold_guessed", upstream=smaller.upstream, model=smaller.model, tokens=smaller.tokens, sign=smaller.sign,
                     billed=smaller.billed, counted=smaller.counted, expires_in_s=smaller.until - smaller.since)  # fmt: skip

    def _apply_bill(self, lesson: PromptRead, learner: str) -> None:
        """Apply a billed prompt: it disproves smaller windows, stated or guessed."""
        owner, now = (lesson.upstream, lesson.model, learner), self._clock()
        known = self.owners.of(owner).windows
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
            self.owners.store_windows(owner, fresh)
        else:
            self.owners.update(owner, windows=fresh)

    def _apply_comparison(self, lesson: CountCompared, learner: str) -> None:
        """Apply a bill of a counted prompt to the ratio between bills and counts."""
        owner, now = (lesson.upstream, lesson.model, learner), self._clock()
        known = self.owners.of(owner).ratio or Ratio(Calibration(), now, now)
        calibration = known.calibration.observe(
            lesson.counted, lesson.billed, stated=lesson.stated, counter=lesson.counter
        )
        if calibration == known.calibration:
            return
        if not lesson.stated and known.calibration.has_stopped_growing(lesson.counted, lesson.billed):
            log.warning("bills_stopped_growing", upstream=lesson.upstream, model=lesson.model, billed=lesson.billed,
                        counted=lesson.counted)  # fmt: skip
        learned = Ratio(calibration, known.since, now + RATIO_TTL_S)
        self.owners.update(owner, ratio=learned)
        if calibration.ratio != known.calibration.ratio or calibration.confirmed != known.calibration.confirmed:
            log.info("ratio_learned", upstream=lesson.upstream, model=lesson.model, ratio=calibration.ratio,
                     counted=lesson.counted, billed=lesson.billed, confirmed=calibration.confirmed)  # fmt: skip
            self.owners.store_ratio(owner, learned)
