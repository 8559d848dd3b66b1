"""The layout of a fold: which messages stand, which are folded, and what the rest may cost, before any text is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from gateway.context.count.counter import Counter
from gateway.context.cut import replay
from gateway.context.cut.attachments import carries_more, without_media
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.cut.replay import Cut, Room, Unit
from gateway.context.cut.rungs import FOLD, Rung
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import SplitConversation, call_ids, result_id
from gateway.wire.facts import Interned, facts_of
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, text_of, texts

STUB: Final = 48
"""Tokens of a tool result that is reduced to its most telling rows."""
FIRST_CUT_SHARE: Final = 1 / 16
"""Share of the free room that an old tool result keeps when it is first cut."""
RECALL_OF_FREE: Final = 1.6
"""When pinned messages fill most of the room, excerpts may take this multiple of their share of the rest."""

SEARCHED: Final = 4_000_000
"""Characters of a conversation up to which long texts are searched row by row, about 2 s of work; beyond that, heads
and tails stand."""

_WITH_IDS: Final = RESULT_ROLES | {"assistant"}


@dataclass(frozen=True)  # no slots: what is asked of it many times is found out once
class Source:
    """The input of a fold."""

    messages: Sequence[Message]
    conversation: SplitConversation
    budget: Budget
    counter: Counter
    policy: Policy
    summary: Summary | None = None
    rung: Rung = FOLD
    earlier: str = ""
    """Rows from notes of an earlier fold that the client sent back."""
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    """Where what follows from the messages is remembered."""

    _measured: dict[int, tuple[Message, int, int]] = field(default_factory=dict, repr=False, compare=False)
    """By a message's ``id``: the message itself, so that the id stays its own, and its cost without and with call ids.
    """
    _layouts: dict[tuple[Rung, Budget, Policy], "Layout"] = field(default_factory=dict, repr=False, compare=False)
    """The layouts made so far. A summary does not move the cut, so a source with one shares them."""

    @property
    def layout(self) -> "Layout":
        """Where the conversation is cut; found out once."""
        key = self.rung, self.budget, self.policy
        found = self._layouts.get(key)
        if found is None:
            found = self._layouts[key] = lay_out(self)
        return found

    @cached_property
    def costs(self) -> list[int]:
        """The cost of each original message."""
        return [self.cost(message) for message in self.messages]

    @cached_property
    def thorough(self) -> bool:
        """Whether texts are searched for rows to keep. It depends only on the conversation's length, so all replicas
        agree."""
        return sum(sum(map(len, texts(message.get("content")))) for message in self.messages) <= SEARCHED

    def bare(self, message: Message) -> int:
        """Return the cost of a message by the counter alone."""
        return self._measure(message)[1]

    def cost(self, message: Message) -> int:
        """Return the cost of a message including the ids of its calls: some servers write them into the prompt."""
        return self._measure(message)[2]

    def _measure(self, message: Message) -> tuple[Message, int, int]:
        found = self._measured.get(id(message))
        if found is None:
            known, name = facts_of(message).costs_with_ids, self.counter.name
            both = known.get(name)
            if both is None:
                both = self._both(message)
                if name:
                    known[name] = both
            found = self._measured[id(message)] = message, *both
        return found

    def _both(self, message: Message) -> tuple[int, int]:
        bare = self.counter.message(message)
        return bare, bare + (self._count_ids(message) if message.get("role") in _WITH_IDS else 0)

    def _count_ids(self, message: Message) -> int:
        text = self.counter.text
        return sum(text(name) + 1 for name in (*call_ids(message), result_id(message)) if name)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a conversation is cut, in units and in messages."""

    units: tuple[Unit, ...]
    room: Room
    cut: Cut
    quoted: Cut
    """The cut at the beginning of the current turn: only what was folded then is searched for quotes."""
    folded: tuple[int, ...]
    """Indices of the folded messages."""
    asked: tuple[tuple[int, ...], ...]
    """Indices of the user messages of all turns that began under this cut, the current turn's last."""
    asked_last: bool = False
    """Whether the request ends with the current question, or with the beginning of its answer."""
    breaks: bool = False
    """Whether the request begins unlike the one before it although the cut stands: then a full room costs no prefix."""
    full: bool = False
    """Whether the cut moved with this request and will move again with the next: then its digest may be as large as there is room."""
    aside: tuple[int, ...] = ()
    """Indices of messages after the cut that give way to the quotes of the current question: they are left out of this
    request, and quoted from."""

    @property
    def current(self) -> tuple[int, ...]:
        """Indices of the user messages of the current turn."""
        return self.asked[-1] if self.asked else ()

    @property
    def gone(self) -> tuple[int, ...]:
        """Indices of the messages that do not stand: what may be quoted."""
        return tuple(sorted({*self.folded, *self.aside})) if self.aside else self.folded

    @property
    def large(self) -> int:
        """Tokens that an old tool result keeps when it is first cut."""
        return large_of(self.room)

    @property
    def turns_folded(self) -> int:
        """Return the number of whole turns that do not stand."""
        if self.aside:
            return next(unit.turn for unit in self.units if self.aside[-1] in unit.indices) + 1
        return self.units[self.cut.first].turn if self.cut.first else 0


def lay_out(source: Source) -> Layout:
    """Decide where the conversation is cut."""
    pinned = sum(source.costs[index] for index in source.conversation.pinned)
    free = max(replay.rounded_room(source.budget) - pinned, 1)
    share = source.policy.recall_share
    recall = max(int(min(share * source.budget.room, share * RECALL_OF_FREE * free)), 0)
    room = Room(free, recall, source.policy.low_water, source.policy.max_turns, source.policy.prices)
    units = _units(source, room)
    start = next((place for place in range(len(units) - 1, -1, -1) if units[place].step < 0), -1)
    if source.rung.newest_only:
        cut = quoted = Cut(first=max(len(units) - 1, 0))
        asked = [units[start].indices] if start >= 0 else []
        full = False
    else:
        cuts = _replayed(source, units, room)
        cut = cuts[-1] if cuts else Cut()
        quoted = cuts[start] if start >= 0 else Cut()
        asked = [unit.indices for unit, then in zip(units, cuts, strict=True) if unit.step < 0 and then is quoted]
        full = cut.full and (len(cuts) == 1 or cuts[-2] is not cut)
    folded = tuple(
        index
        for unit in units[: cut.first]
        # If the cut is inside a turn, the turn's user messages stand.
        if unit.step >= 0 or unit.turn != units[cut.first].turn
        for index in unit.indices
    )
    asked_last = _asked_last(units, start)
    breaks = asked_last and not source.rung.newest_only and replay.breaks(units, room)
    return Layout(tuple(units), room, cut, quoted, folded, tuple(asked), asked_last, breaks, full)


UNIT_BYTES: Final = 300
"""Bytes of a remembered unit: its numbers, its indices, its place and its cut (``sys.getsizeof``, CPython 3.11)."""


def _replayed(source: Source, units: Sequence[Unit], room: Room) -> Sequence[Cut]:
    """Return the cut after each unit; a conversation that was replayed before is continued."""
    opening = source.messages[units[0].indices[0]] if units else None
    if type(opening) is not Interned or not opening.number:
        return replay.replay(units, room)
    key = ("replay", opening.number, room)
    played = replay.grow(units, room, source.memory.recall(key))
    source.memory.keep(key, played, UNIT_BYTES * len(units))
    return played.cuts


def _asked_last(units: Sequence[Unit], start: int) -> bool:
    """Return whether unit ``start``, the current question, is the last unit, or only the beginning of an answer follows."""
    return start >= 0 and (start == len(units) - 1 or (start == len(units) - 2 and not units[-1].asks))


def large_of(room: Room) -> int:
    """Return the tokens that an old tool result keeps when it is first cut in such a room."""
    return max(int(room.free * FIRST_CUT_SHARE), STUB)


def tokens_of(source: Source, message: Message, longest: int) -> int | None:
    """Return the approximate tokens of a message with so many characters of text; None when it has no more than these."""
    content = message.get("content")
    characters = len(content) if isinstance(content, str) else len(text_of(message))
    return None if characters <= longest else max(int(source.bare(message) * longest / characters), 1)


def _units(source: Source, room: Room) -> list[Unit]:
    large = large_of(room)
    costs = source.costs
    cut, stub = list(costs), list(costs)
    results: set[int] = set()
    for index, message in enumerate(source.messages):
        if carries_more(message):
            cut[index] = stub[index] = min(source.cost(without_media(message)), costs[index])
        if message.get("role") in RESULT_ROLES:
            results.add(index)
            limit = tokens_of(source, message, source.policy.tool_result_chars)
            cut[index] = min(cut[index], large if limit is None else min(large, limit))
            stub[index] = min(stub[index], STUB)
    whole, trimmed, stubbed = costs.__getitem__, cut.__getitem__, stub.__getitem__
    return [
        Unit(
            number,
            step,
            indices,
            sum(map(whole, indices)),
            sum(map(trimmed, indices)),
            sum(map(stubbed, indices)),
            step < 0 or indices[-1] in results,
        )
        for number, turn in enumerate(source.conversation.turns)
        for step, indices in enumerate((turn.user, *turn.steps), -1)
        if indices
    ]
