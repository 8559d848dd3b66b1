"""What was learned for each owner: an upstream, a model and a learner. It is kept in memory and in the store.

Requests read these facts from memory. What other processes have learned is fetched from the store when an owner is first seen, and again every
`REFRESH_S`. What a lesson changes is decided in `gateway.state.learning`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.context.count.calibration import Calibration
from gateway.state import facts
from gateway.state.facts import Owner, Ratio, Windows
from gateway.state.forgetting import Forgotten
from gateway.state.newest import keep_newest
from gateway.state.stored_facts import StoredFacts
from gateway.state.tasks import Tasks

WINDOWS_TTL_S: Final = 24 * 3600.0
"""Lifetime of facts about a window, in seconds; deployments change, so a stated limit is tested again once a day."""
RATIO_TTL_S: Final = facts.LONGEST_TTL_S
"""A model's ratio. Chosen: tokenizers change less often than deployments."""
REFRESH_S: Final = 30.0
"""Interval at which facts of other processes are fetched again."""
MOST_OWNERS: Final = 4096
"""Owners with facts that are kept in this process, about 1 KB each; and as many without facts. Chosen to bound memory: clients choose the
names of models."""
NO_WINDOWS: Final = Windows()
"""The facts about a window, if nothing was learned."""
UNCALIBRATED: Final = Calibration()
"""The calibration without a learned ratio."""


class OwnerFacts(msgspec.Struct, frozen=True):
    """The facts about one model that one learner's requests taught."""

    windows: Windows = NO_WINDOWS
    ratio: Ratio | None = None
    fetched_at: float | None = None
    """When they were last fetched from the store; None before the first time."""
    has_suspect_bills: bool = False
    """Whether some bills were suspect, so that the last requests of conversations are looked up."""

    @property
    def empty(self) -> bool:
        """Return whether nothing was learned: the store was only asked."""
        return self.ratio is None and not self.has_suspect_bills and self.windows == NO_WINDOWS


NOTHING_KNOWN: Final = OwnerFacts()
"""The facts of an owner for whom nothing was learned yet."""


class FactsByOwner:
    """The facts of all owners."""

    def __init__(self, stored: StoredFacts, tasks: Tasks, clock: Callable[[], float]) -> None:
        self._stored = stored
        self._tasks = tasks
        self._clock = clock
        self._forgotten = Forgotten()
        self._known: OrderedDict[Owner, OwnerFacts] = OrderedDict()
        self._without_facts: OrderedDict[Owner, OwnerFacts] = OrderedDict()
        """Owners without facts. They are apart, so that invented keys and models push out no facts: those come from answers alone."""

    def of(self, owner: Owner) -> OwnerFacts:
        """Return the facts of an owner that are in memory."""
        return self._known.get(owner) or self._without_facts.get(owner, NOTHING_KNOWN)

    def known(self) -> Iterator[tuple[Owner, OwnerFacts]]:
        """Yield the owners that have facts in memory."""
        yield from self._known.items()

    def calibration(self, owner: Owner) -> Calibration:
        """Return the ratio between a model's bills and our counts, with its evidence."""
        ratio = self.of(owner).ratio
        return ratio.calibration if ratio is not None and ratio.until > self._clock() else UNCALIBRATED

    def largest_billed(self, owner: Owner) -> int:
        """Return the largest prompt that was billed lately, in tokens; 0 without one. This much fits."""
        windows = self.of(owner).windows
        return windows.largest if windows.largest_until > self._clock() else 0

    def is_due(self, owner: Owner) -> bool:
        """Return whether to `fetch` the facts of an owner: never fetched, not since `REFRESH_S`, or before the clock was set
        back."""
        fetched_at = self.of(owner).fetched_at
        return fetched_at is None or not 0 <= self._clock() - fetched_at < REFRESH_S

    async def fetch_if_due(self, owner: Owner) -> None:
        """Fetch the store's facts, where that is due."""
        if self.is_due(owner):
            await self.fetch(owner)

    async def fetch(self, owner: Owner) -> None:
        """Fetch the store's facts. The first time this waits for the store; later it happens in the background."""
        first = self.of(owner).fetched_at is None
        self.update(owner, fetched_at=self._clock())
        if first:
            await self._read_store(owner)
        else:
            self._tasks.start(self._read_store(owner), "learned")

    async def load_all(self) -> None:
        """Fetch the facts of all owners in the store, for operators."""
        for kind in ("window", "ratio"):
            for name in await self._stored.names(kind, MOST_OWNERS):
                if (owner := _owner_of(name)) is not None:
                    await self._read_store(owner)

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
        before, ours = self.calibration(owner).ratio, self.of(owner).ratio
        if ours is None or stored.calibration.ratio != before:
            self.update(owner, ratio=stored)
        return self.calibration(owner).ratio != before

    def update(self, owner: Owner, **changes: Any) -> None:
        """Change some facts in memory; the least recently changed owner is dropped when there are too many. Owners without facts push out none
        that has some."""
        changed = replace(self.of(owner), **changes)
        kept, others = (self._without_facts, self._known) if changed.empty else (self._known, self._without_facts)
        others.pop(owner, None)
        keep_newest(kept, owner, changed, MOST_OWNERS)

    def store_windows(self, owner: Owner, windows: Windows) -> None:
        """Change the facts about a window, in memory and in the store."""
        _, _, learner = owner
        self.update(owner, windows=windows)
        self._stored.put("window", _stored_name(owner), facts.pack_windows(windows), WINDOWS_TTL_S, learner)

    def store_ratio(self, owner: Owner, ratio: Ratio) -> None:
        """Write a ratio that is in memory to the store."""
        _, _, learner = owner
        self._stored.put("ratio", _stored_name(owner), facts.pack_ratio(ratio), RATIO_TTL_S, learner)

    def forget(self, forgotten: Forgotten) -> None:
        """Drop everything in memory; facts stored after the deletion are fetched again when needed."""
        self._forgotten = forgotten
        self._known.clear()
        self._without_facts.clear()

    async def _read_store(self, owner: Owner) -> None:
        """Take the facts of an owner from the store."""
        name, model = _stored_name(owner), facts.model_of(owner)
        windows = await self._stored.get("window", name, facts.read_windows)
        ratio = await self._stored.get("ratio", name, facts.read_ratio)
        if windows is not None:
            self.update(owner, windows=self._forgotten.still_valid(model, windows))
        if ratio is not None and not self._forgotten.covers(model, ratio.since):
            self.update(owner, ratio=ratio)


def _stored_name(owner: Owner) -> str:
    return "\n".join(owner)


def _owner_of(name: str) -> Owner | None:
    """Return the owner of a stored fact; None for a name in another form."""
    upstream, _, rest = name.partition("\n")
    model, separator, learner = rest.rpartition("\n")  # clients choose the model's name
    return (upstream, model, learner) if separator else None
