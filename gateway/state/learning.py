"""What upstreams taught: windows, ratios and bills of conversations, in this process and, through the store, in all.

Reads on the way of a request answer from memory. What neighbours learned is fetched when a model is first seen and again every now and then;
what is learned here is written in the background. All of it is derived: losing it costs a refusal or a count. What a lesson may change
is decided here: stated knowledge holds for everybody once two callers were told it, a guess for its own conversation alone.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import structlog

from gateway.context.count.calibration import Calibration
from gateway.context.count.tokens import Anchor
from gateway.context.life.evidence import Before
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
from gateway.state.facts import Fact, Model, Ratio, Smaller, Stated, Windows
from gateway.state.forgetting import Forgotten
from gateway.state.store.base import Store
from gateway.state.store.values import pack
from gateway.state.tasks import Tasks
from gateway.state.told import Lists

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
RATIO_TTL_S: Final = 7 * 86400.0
"""A model's ratio. Chosen: tokenizers change less often than deployments."""
USAGE_TTL_S: Final = 6 * 3600.0
"""The bill of a conversation. Chosen: most conversations end within hours."""
REFRESH_S: Final = 30.0
"""Interval at which facts of other processes are fetched again."""
CONVERSATIONS: Final = 4096
"""Conversations whose bills are kept in this process. Chosen to bound memory."""
MODELS: Final = 4096
"""Models whose facts are kept in this process. Chosen to bound memory: clients choose the names."""
LOOKED_UP: Final = 24
"""Newest messages after which the last request of a conversation may have ended."""


class Learning:
    """The learned facts and their store. ``ignored`` is called with each stored value that cannot be our own."""

    def __init__(
        self,
        store: Store,
        tasks: Tasks,
        clock: Callable[[], float] = time.time,
        ignored: Callable[[str], None] = lambda kind: None,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._clock = clock
        self._ignored = ignored
        self._forgotten = Forgotten()
        self.lists = Lists(clock)
        self._windows: dict[Model, Windows] = {}
        self._ratios: dict[Model, Ratio] = {}
        self._read: dict[Model, float] = {}
        self._anchors: OrderedDict[str, Anchor] = OrderedDict()
        self._smaller: OrderedDict[str, Smaller] = OrderedDict()
        self._before: OrderedDict[str, Before] = OrderedDict()
        self._watched: set[Model] = set()

    def is_new(self, upstream: str, model: str) -> bool:
        """Return whether to `know` a model: never done, or long ago."""
        read = self._read.get((upstream, model))
        return read is None or self._clock() - read >= REFRESH_S

    async def know(self, upstream: str, model: str) -> None:
        """Fetch the store's facts about a model: the first time with waiting, later in the background."""
        key = (upstream, model)
        read = self._read.get(key)
        if len(self._read) >= MODELS:  # names come from clients
            self._read.clear()
        self._read[key] = self._clock()
        if read is None:
            await self._fetch(key)
        else:
            self._tasks.start(self._fetch(key), "learned")

    def window(self, upstream: str, model: str, caller: str | None = None) -> int | None:
        """The window that refusals stated, where it holds for this caller, or for any; None where there is none, or it has expired."""
        known = self._windows.get((upstream, model))
        if known is None:
            return None
        now = self._clock()
        return min((one.tokens for one in known.stated if facts.in_force(one, known, now, caller)), default=None)

    def calibration(self, upstream: str, model: str) -> Calibration:
        """Return the ratio between a model's bills and our counts, with its evidence."""
        known = self._ratios.get((upstream, model))
        return known.calibration if known is not None and known.until > self._clock() else Calibration()

    def ratio(self, upstream: str, model: str) -> float:
        """Return the factor for our counts of a model; it moves in coarse steps."""
        return self.calibration(upstream, model).ratio

    def has_smaller(self, upstream: str, model: str) -> bool:
        """Return whether some conversation with this model is folded smaller than its window: only then `smaller` is
        needed."""
        known = self._windows.get((upstream, model))
        return known is not None and known.smaller_until > self._clock()

    async def smaller(self, upstream: str, model: str, chain: Sequence[str]) -> int | None:
        """Return the size to which this conversation is folded, if it is smaller than the common window."""
        known = self._windows.get((upstream, model), Windows())
        now = self._clock()
        recent = list(chain)[-LOOKED_UP:]
        if not any(key in self._smaller for key in recent):
            for key, stored in (await self._store.get_many("guess", recent)).items():
                read = self._checked("guess", stored, facts.read_smaller)
                if read is not None and not self._forgotten.covers((read.upstream, read.model), read.since):
                    _put(self._smaller, key, read)
        for key in reversed(recent):
            one = self._smaller.get(key)
            if one is None or one.until <= now or (one.upstream, one.model) != (upstream, model):
                continue
            if known.largest <= one.tokens or known.largest_until <= now:
                return one.tokens
        return None

    def before(self, chain: Sequence[str]) -> Before | None:
        """Return the facts about a conversation's last request, found by its prefix."""
        for key in reversed(chain[-LOOKED_UP:]):
            known = self._before.get(key)
            if known is not None:
                return known
        return None

    def watches(self, upstream: str, model: str) -> bool:
        """Return whether bills of this model were suspect, so that `before` is needed."""
        return (upstream, model) in self._watched

    async def anchor(self, chain: Sequence[str]) -> Anchor | None:
        """Return the newest usage that covers a prefix of a `conversation`, from this or another process."""
        recent = list(enumerate(chain, 1))[-LOOKED_UP:]
        for covered, key in reversed(recent):
            known = self._anchors.get(key)
            if known is not None:
                self._anchors.move_to_end(key)
                return Anchor(covered, known.billed, known.fixed)
        found = await self._store.get_many("usage", [key for _, key in recent])
        for covered, key in reversed(recent):
            value = self._checked("usage", found.get(key), facts.read_usage)
            if value is not None:
                anchor = Anchor(covered, value["billed"], value["fixed"])
                _put(self._anchors, key, anchor)
                return anchor
        return None

    def learn(self, lessons: Iterable[Lesson]) -> None:
        """Apply the lessons of a refusal or an answer."""
        for lesson in lessons:
            match lesson:
                case StatedWindow():
                    self._stated(lesson)
                case SmallerFold():
                    until = self._clock() + GUESSED_TTL_S
                    self._fold_smaller(lesson.scope, lesson.conversation, _guess(lesson, self._clock(), until))
                case PromptRead():
                    self._prompt_read(lesson)
                case CountCompared():
                    self._compared(lesson)
                case ConversationBilled():
                    _put(self._anchors, lesson.conversation, lesson.anchor)
                    value = pack(facts.VERSION, billed=lesson.anchor.billed, fixed=lesson.anchor.fixed)
                    self._write("usage", lesson.conversation, value, USAGE_TTL_S, lesson.scope)
                case ConversationSeen():
                    _put(self._before, lesson.conversation, lesson.before)
                    if lesson.before.suspicions and len(self._watched) < MODELS:
                        self._watched.add((lesson.upstream, lesson.model))

    def facts(self) -> list[Fact]:
        """Return everything this process has learned, for operators."""
        now = self._clock()
        found = self.lists.facts()
        found += [fact for model, known in self._windows.items() for fact in facts.facts_of(model, known, now)]
        for (upstream, model), ratio in self._ratios.items():
            known = ratio.calibration
            if ratio.until > now:
                reports = ", ".join(f"{billed:,} for {counted:,}" for counted, billed in known.reports[-3:])
                sure = "confirmed" if known.confirmed else "not confirmed"
                found.append(
                    Fact("observed", "ratio", upstream, model, known.ratio, "everyone", f"{sure}; billed {reports}",
                         ratio.since, ratio.until)
                )  # fmt: skip
        for one in self._smaller.values():
            if one.until > now:
                billed = f"billed {one.billed:,}, " if one.billed is not None else ""
                evidence = f"sign {one.sign}, {billed}{one.counted:,} by our count"
                found.append(
                    Fact(one.kind, "conversation", one.upstream, one.model, one.tokens, "its conversation", evidence,
                         one.since, one.until)
                )  # fmt: skip
        return found

    async def load(self) -> None:
        """Fetch everything in the store, for operators."""
        for kind in ("window", "ratio"):
            for name in await self._store.names(kind, MODELS):
                upstream, _, model = name.partition("\n")
                await self._fetch((upstream, model))
        for key, stored in (await self._store.get_many("guess", await self._store.names("guess", MODELS))).items():
            read = self._checked("guess", stored, facts.read_smaller)
            if read is not None and not self._forgotten.covers((read.upstream, read.model), read.since):
                _put(self._smaller, key, read)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop everything in memory; facts stored after the deletion are fetched again when needed."""
        self._forgotten = forgotten
        for memory in (self._windows, self._ratios, self._read, self._anchors, self._smaller, self._before):
            memory.clear()
        self._watched.clear()
        self.lists.forget()

    def _stated(self, lesson: StatedWindow) -> None:
        """A window was stated: it holds for this conversation at once, for its caller at the second, for all once another caller is told it."""
        model, now = (lesson.upstream, lesson.model), self._clock()
        known = self._windows.get(model, Windows())
        earlier = next((one for one in known.stated if one.tokens == lesson.tokens and one.until > now), None)
        refusals, since = (earlier.refusals, earlier.since) if earlier else (0, now)
        refusals += earlier is None or earlier.conversation != lesson.conversation
        callers = earlier.callers if earlier else ()
        if lesson.scope not in callers:
            callers = (*callers, lesson.scope)[: facts.CALLERS]
        ttl_s = STATED_TTL_S if refusals != facts.ENOUGH else FIRST_STATED_TTL_S
        stated = Stated(lesson.tokens, lesson.prompt, lesson.counted, lesson.sign[: facts.SIGN_CHARS], lesson.conversation,
                        refusals, since, now + ttl_s, callers)  # fmt: skip
        others = [one for one in known.stated if one.tokens != lesson.tokens and one.until > now]
        self._set_windows(model, replace(known, stated=(*others, stated)[-facts.STATED_KEPT :]))
        log.info("window_stated", upstream=model[0], model=model[1], window=lesson.tokens, prompt=lesson.prompt,
                 counted=lesson.counted, sign=lesson.sign, refusals=refusals, expires_in_s=ttl_s)  # fmt: skip
        if known.largest <= lesson.tokens or known.largest_until <= now:
            smaller = Smaller(
                *model, lesson.tokens, "stated", stated.sign, None, lesson.counted, now, now + STATED_TTL_S
            )
            self._fold_smaller(lesson.scope, lesson.conversation, smaller)

    def _fold_smaller(self, scope: str, conversation: str, smaller: Smaller) -> None:
        """Fold one conversation smaller from now on."""
        model = (smaller.upstream, smaller.model)
        _put(self._smaller, conversation, smaller)
        ttl_s = smaller.until - smaller.since
        self._write("guess", conversation, facts.pack_smaller(smaller), ttl_s, scope)
        known = self._windows.get(model, Windows())
        if known.smaller_until < smaller.until:
            self._set_windows(model, replace(known, smaller_until=smaller.until))
        if smaller.kind == "guessed":
            log.info("fold_guessed", upstream=model[0], model=model[1], tokens=smaller.tokens, sign=smaller.sign,
                     billed=smaller.billed, counted=smaller.counted, expires_in_s=ttl_s)  # fmt: skip

    def _prompt_read(self, lesson: PromptRead) -> None:
        """Apply a bill: it disproves smaller windows, stated or guessed."""
        model, now = (lesson.upstream, lesson.model), self._clock()
        known = self._windows.get(model, Windows())
        stated = tuple(one for one in known.stated if one.tokens >= lesson.tokens)
        for one in known.stated:
            if one not in stated:
                log.info("window_disproved", upstream=model[0], model=model[1], window=one.tokens, billed=lesson.tokens)
        for key in [key for key, one in self._smaller.items() if _ends(one, model, lesson.tokens)]:
            gone = self._smaller.pop(key)
            self._write("guess", key, facts.pack_smaller(replace(gone, until=now)), 1.0)
        grew = lesson.tokens > known.largest or known.largest_until <= now
        dropped = len(stated) != len(known.stated)
        if not grew and not dropped:
            return
        fresh = replace(known, stated=stated)
        if grew:
            fresh = replace(fresh, largest=lesson.tokens, largest_since=now, largest_until=now + LARGEST_TTL_S)
        # A growing conversation is billed a little more each time: the stored value follows in steps of a quarter.
        worth = dropped or lesson.tokens > 1.25 * known.largest or known.largest_until <= now
        self._set_windows(model, fresh, write=worth)

    def _compared(self, lesson: CountCompared) -> None:
        model, now = (lesson.upstream, lesson.model), self._clock()
        known = self._ratios.get(model) or Ratio(Calibration(), now, now)
        calibration = known.calibration.observe(lesson.counted, lesson.billed, stated=lesson.stated)
        if calibration == known.calibration:
            return
        if len(self._ratios) >= MODELS:
            self._ratios.clear()
        learned = self._ratios[model] = Ratio(calibration, known.since, now + RATIO_TTL_S)
        if calibration.ratio != known.calibration.ratio or calibration.confirmed != known.calibration.confirmed:
            log.info("ratio_learned", upstream=model[0], model=model[1], ratio=calibration.ratio,
                     counted=lesson.counted, billed=lesson.billed, confirmed=calibration.confirmed)  # fmt: skip
            self._write("ratio", _name(model), facts.pack_ratio(learned), RATIO_TTL_S)

    def _set_windows(self, model: Model, known: Windows, *, write: bool = True) -> None:
        if len(self._windows) >= MODELS:
            self._windows.clear()
        self._windows[model] = known
        if write:
            self._write("window", _name(model), facts.pack_windows(known), STATED_TTL_S)

    async def _fetch(self, model: Model) -> None:
        name = _name(model)
        windows = self._checked("window", await self._store.get("window", name), facts.read_windows)
        if windows is not None:
            self._windows[model] = self._forgotten.left_of(model, windows)
        ratio = self._checked("ratio", await self._store.get("ratio", name), facts.read_ratio)
        if ratio is not None and not self._forgotten.covers(model, ratio.since):
            self._ratios[model] = ratio

    def _checked(self, kind: str, stored: bytes | None, read: Callable[[bytes], Any]) -> Any:
        """Decode a stored value; one that cannot be our own is ignored and counted."""
        if stored is None:
            return None
        value = read(stored)
        if value is None:
            self._ignored(kind)
        return value

    def _write(self, kind: str, key: str, value: bytes, ttl_s: float, scope: str = "") -> None:
        self._tasks.start(self._store.put(kind, key, value, ttl_s=ttl_s, scope=scope), "learn")


def _guess(lesson: SmallerFold, now: float, until: float) -> Smaller:
    return Smaller(
        lesson.upstream, lesson.model, lesson.tokens, "guessed", lesson.sign[: facts.SIGN_CHARS], lesson.billed, lesson.counted,
        now, until,
    )  # fmt: skip


def _ends(one: Smaller, model: Model, billed: int) -> bool:
    return (one.upstream, one.model) == model and one.tokens < billed


def _name(model: Model) -> str:
    return f"{model[0]}\n{model[1]}"


def _put(memory: "OrderedDict[str, Any]", key: str, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > CONVERSATIONS:
        memory.popitem(last=False)
