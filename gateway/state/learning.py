"""What upstreams taught: windows, ratios and the last usage of conversations, in this process and, through the store, in all.

Reads on the way of a request answer from memory. What neighbours learned is fetched when a model is first seen and again every now and then;
what is learned here is written in the background. All of it is derived: losing it costs a refusal or a count.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from gateway.context.count.calibration import Calibration
from gateway.context.count.tokens import Anchor
from gateway.context.life import identity
from gateway.state.store.base import Store
from gateway.state.store.values import pack, unpack
from gateway.state.tasks import Tasks
from gateway.wire.chat import Message

log = structlog.get_logger(__name__)

VERSION: Final = 1
STATED_TTL_S: Final = 24 * 3600.0
"""A limit that an upstream stated; deployments change, so it is asked again once a day."""
GUESSED_TTL_S: Final = 3600.0
"""A size that was accepted after a refusal without numbers: the real window may be larger."""
RATIO_TTL_S: Final = 7 * 86400.0
USAGE_TTL_S: Final = 6 * 3600.0
TOLD_TTL_S: Final = 3600.0
REFRESH_S: Final = 30.0
SMALLEST_WINDOW: Final = 64
"""Tokens. Nobody serves less: such a number is a misreading."""
CONVERSATIONS: Final = 4096
MODELS: Final = 4096
LOOKED_UP: Final = 24
"""Newest messages behind which the last request of a conversation may have ended."""

Model = tuple[str, str]
"""Upstream and model."""


@dataclass(frozen=True, slots=True)
class LearnedWindow:
    """A window smaller than the configured one that an upstream proved; ``until`` is a time of the clock."""

    tokens: int
    until: float


class Learning:
    """The facts learned, with the store behind them."""

    def __init__(self, store: Store, tasks: Tasks, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._tasks = tasks
        self._clock = clock
        self._windows: dict[Model, LearnedWindow] = {}
        self._ratios: dict[Model, Calibration] = {}
        self._told: dict[str, tuple[float, dict[str, int]]] = {}
        self._read: dict[Model, float] = {}
        self._anchors: OrderedDict[str, Anchor] = OrderedDict()

    def is_new(self, upstream: str, model: str) -> bool:
        """Whether it is time to `know` a model: never asked for, or not for a while."""
        read = self._read.get((upstream, model))
        return read is None or self._clock() - read >= REFRESH_S

    async def know(self, upstream: str, model: str) -> None:
        """Fetch what the store knows of a model: waited for once, refreshed in the background afterwards."""
        key = (upstream, model)
        read = self._read.get(key)
        if len(self._read) >= MODELS:  # names come from clients
            self._read.clear()
        self._read[key] = self._clock()
        if read is None:
            await self._fetch(key)
        else:
            self._tasks.start(self._fetch(key), "learned")

    def window(self, upstream: str, model: str) -> int | None:
        """The window learned from an upstream's refusals, until it expires."""
        learned = self._windows.get((upstream, model))
        return learned.tokens if learned and learned.until > self._clock() else None

    def ratio(self, upstream: str, model: str) -> float:
        """What our counts of a model are multiplied by; moves in coarse steps."""
        known = self._ratios.get((upstream, model))
        return known.ratio if known else 1.0

    def told_window(self, upstream: str, model: str) -> int | None:
        """The window that the upstream's model list states."""
        told = self._told.get(upstream)
        return told[1].get(model) if told else None

    def listed(self) -> set[str]:
        """Every model whose window some upstream's list states."""
        return {model for _, windows in self._told.values() for model in windows}

    def wants_list(self, upstream: str) -> bool:
        """Whether it is time to ask an upstream for its model list; answering yes counts as having asked."""
        told = self._told.get(upstream)
        if told is not None and self._clock() - told[0] < TOLD_TTL_S:
            return False
        self._told[upstream] = (self._clock(), told[1] if told else {})
        return True

    def note_list(self, upstream: str, windows: dict[str, int]) -> None:
        """Remember what a model list told."""
        self._told[upstream] = (self._clock(), windows)
        log.info("windows_told", upstream=upstream, models=len(windows))

    def note_window(self, upstream: str, model: str, tokens: int, *, stated: bool) -> None:
        """Remember a window that an upstream proved to be smaller than was believed."""
        if tokens < SMALLEST_WINDOW or self.window(upstream, model) == tokens:
            return
        ttl_s = STATED_TTL_S if stated else GUESSED_TTL_S
        until = self._clock() + ttl_s
        self._windows[(upstream, model)] = LearnedWindow(tokens, until)
        log.info("window_learned", upstream=upstream, model=model, window=tokens, stated=stated, expires_in_s=ttl_s)
        self._write("window", f"{upstream}\n{model}", {"tokens": tokens, "until": until}, ttl_s)

    def note_count(self, upstream: str, model: str, estimated: int, billed: int) -> None:
        """Learn from one request what the upstream makes of our unscaled count."""
        key = (upstream, model)
        known = self._ratios.get(key, Calibration())
        learned = self._ratios[key] = known.observe(estimated, billed)
        if learned.ratio != known.ratio:
            log.info("ratio_learned", upstream=upstream, model=model, ratio=learned.ratio)
            self._write(
                "ratio", f"{upstream}\n{model}", {"ratio": learned.ratio, "reports": learned.reports}, RATIO_TTL_S
            )

    def note_usage(self, scope: str, key: str, anchor: Anchor) -> None:
        """Remember what was billed for a conversation, for its next request; ``key`` is the last of its `conversation`."""
        self._remember(key, anchor)
        self._write("usage", key, {"billed": anchor.billed, "fixed": anchor.fixed}, USAGE_TTL_S, scope)

    async def anchor(self, chain: Sequence[str]) -> Anchor | None:
        """The newest usage that covers a prefix of a `conversation`, from this process or a neighbour's."""
        recent = list(enumerate(chain, 1))[-LOOKED_UP:]
        for covered, key in reversed(recent):
            known = self._anchors.get(key)
            if known is not None:
                self._anchors.move_to_end(key)
                return Anchor(covered, known.billed, known.fixed)
        found = await self._store.get_many("usage", [key for _, key in recent])
        for covered, key in reversed(recent):
            value = unpack(found.get(key), VERSION, billed=int, fixed=int)
            if value is not None:
                anchor = Anchor(covered, value["billed"], value["fixed"])
                self._remember(key, anchor)
                return anchor
        return None

    async def _fetch(self, key: Model) -> None:
        name = f"{key[0]}\n{key[1]}"
        window = unpack(await self._store.get("window", name), VERSION, tokens=int, until=float)
        if window is not None and window["until"] > self._clock():
            self._windows[key] = LearnedWindow(window["tokens"], window["until"])
        ratio = unpack(await self._store.get("ratio", name), VERSION, ratio=float, reports=list)
        if ratio is not None:
            self._ratios[key] = Calibration(
                ratio["ratio"], tuple(filter(lambda r: isinstance(r, float), ratio["reports"]))
            )

    def _remember(self, key: str, anchor: Anchor) -> None:
        self._anchors[key] = anchor
        self._anchors.move_to_end(key)
        while len(self._anchors) > CONVERSATIONS:
            self._anchors.popitem(last=False)

    def _write(self, kind: str, key: str, value: dict[str, Any], ttl_s: float, scope: str = "") -> None:
        data = pack(VERSION, **value)
        self._tasks.start(self._store.put(kind, key, data, ttl_s=ttl_s, scope=scope), "learn")


def conversation(scope: str, model: str, messages: Sequence[Message]) -> list[str]:
    """Name a conversation after each of its messages, for one caller and one model. Hashes all of it: ask once a request."""
    return identity.chain(messages, f"{scope}\n{model}".encode())
