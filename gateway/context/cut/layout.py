"""The layout of a fold: which messages are kept, which are folded, and the tokens of digest and quotes. No text is written yet."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from gateway.context.count.counter import Counter, CountText
from gateway.context.cut import calling, replay
from gateway.context.cut.budget import Budget
from gateway.context.cut.media_and_reasoning import has_media_or_reasoning, without_media_and_reasoning
from gateway.context.cut.policy import Policy
from gateway.context.cut.rungs import FOLD, Rung
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import Structure, call_ids, result_id
from gateway.context.cut.units import ANSWER, CALLS, USER, Cut, Room, Unit, UnitKind, newest_question
from gateway.wire.facts import Interned, facts_of
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, text_of, texts
from gateway.wire.views import Opaque

STUB_TOKENS: Final = 48
"""Tokens of a tool result that is reduced to a stub: its rows with errors or with the question's words. See `result_limits`."""
TRIMMED_RESULT_SHARE: Final = 1 / 16
"""Share of the free room that a trimmed tool result keeps."""
MOST_QUOTES_OF_FREE: Final = 1.6
"""Factor. If pinned messages fill most of the room, quotes may have this multiple of their share of the free room."""

MOST_SEARCHED_CHARACTERS: Final = 4_000_000
"""Characters of a conversation. In a longer one, long texts keep only head and tail, because searching their rows would
take more than about 2 s."""

_WITH_IDS: Final = RESULT_ROLES | {"assistant"}


class Source(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """The input of a fold."""

    messages: Sequence[Message]
    structure: Structure
    budget: Budget
    counter: Counter
    policy: Policy
    summary: Summary | None = None
    rung: Rung = FOLD
    earlier_notes: str = ""
    """The rows in notes of an earlier fold that the client sent back."""
    memory: Memory = msgspec.field(default_factory=Memory)
    """The cache of everything that is computed from these messages."""

    _costs_by_id: dict[int, tuple[Message, int, int]] = {}
    """By a message's ``id``: the message, and its cost without and with call ids. The message is kept alive, so that no
    other one gets the same ``id``."""
    _layouts: dict[tuple[Rung, Budget, Policy], "Layout"] = {}
    """The layouts so far. A summary does not move the cut, so a copy of this source with a summary shares them."""

    @property
    def layout(self) -> "Layout":
        """The layout of this source; computed once."""
        key = self.rung, self.budget, self.policy
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = lay_out(self)
        return layout

    @cached_property
    def costs(self) -> list[int]:
        """The cost of each original message."""
        return [self.cost(message) for message in self.messages]

    @cached_property
    def thorough(self) -> bool:
        """Whether long texts are searched for rows to keep. It depends only on the conversation's length, so all
        replicas agree."""
        characters = sum(sum(map(len, texts(message.get("content")))) for message in self.messages)
        return characters <= MOST_SEARCHED_CHARACTERS

    def cost_without_ids(self, message: Message) -> int:
        """Return the tokens of a message, without the ids of its calls."""
        return self._costs_of(message)[1]

    def cost(self, message: Message) -> int:
        """Return the tokens of a message, with the ids of its calls: some servers write them into the prompt."""
        return self._costs_of(message)[2]

    def _costs_of(self, message: Message) -> tuple[Message, int, int]:
        entry = self._costs_by_id.get(id(message))
        if entry is None:
            cached, name = facts_of(message).costs_with_ids, self.counter.name
            costs = cached.get(name)
            if costs is None:
                costs = self._count(message)
                if name:
                    cached[name] = costs
            entry = self._costs_by_id[id(message)] = message, *costs
        return entry

    def _count(self, message: Message) -> tuple[int, int]:
        """Count the tokens of a message without and with its call ids."""
        cost = self.counter.message(message)
        return cost, cost + id_tokens(message, self.counter.text)


def id_tokens(message: Message, text: CountText) -> int:
    """Return the tokens of the ids of a message's calls and result, with a sign around each."""
    if message.get("role") not in _WITH_IDS:
        return 0
    return sum(text(name) + 1 for name in (*call_ids(message), result_id(message)) if name)


class Question(NamedTuple):
    """The user messages of a turn, and the cut when the turn began. Only messages that this cut folds are quoted for them."""

    indices: tuple[int, ...]
    """The positions of the messages in the conversation."""
    cut: Cut


class Layout(msgspec.Struct, frozen=True):
    """Where a conversation is cut, and the facts about the request that decide what replaces the folded part."""

    units: tuple[Unit, ...]
    room: Room
    cut: Cut
    cut_at_question: Cut
    """The cut at the beginning of the current turn. Only messages that it folds are quoted."""
    folded: tuple[int, ...]
    """Indices of the folded messages."""
    questions: tuple[Question, ...]
    """The questions since the last one with which the cut moved; the current one is the last."""
    ends_with_question: bool = False
    """Whether the request ends with the current question, or with the beginning of its answer."""
    prefix_breaks: bool = False
    """Whether the request begins unlike the one before it although the cut did not move: then filling the room breaks no
    cached prefix."""
    tight: bool = False
    """Whether the cut moved with this request and moves again with the next: then the digest may fill the room."""
    has_agent: bool = False
    """Whether the conversation is an agent's: calls and results are a large part of it."""
    autonomous: bool = False
    """Whether the agent works on its own between two messages of the user."""
    set_aside: tuple[int, ...] = ()
    """Indices of messages after the cut that are left out of this request and may be quoted: they make room for the
    quotes of the current question."""

    @property
    def question(self) -> tuple[int, ...]:
        """Indices of the user messages of the current turn."""
        return self.questions[-1].indices if self.questions else ()

    @property
    def left_out(self) -> tuple[int, ...]:
        """Indices of all messages that are not sent, and may be quoted: folded ones and those set aside."""
        return tuple(sorted({*self.folded, *self.set_aside})) if self.set_aside else self.folded

    @property
    def turns_folded(self) -> int:
        """The number of turns of which nothing is kept."""
        if self.set_aside:
            left_out = set(self.left_out)
            return next(unit.turn for unit in self.units if not left_out.issuperset(unit.indices))
        return self.units[self.cut.first_kept].turn if self.cut.first_kept else 0


def lay_out(source: Source) -> Layout:
    """Decide where the conversation is cut."""
    room = _room_of(source)
    units = _units(source, room)
    question = newest_question(units)
    ends_with_question = _ends_with_question(units, question)
    if source.rung.newest_only:
        cut = Cut(first_kept=max(len(units) - 1, 0))
        questions = (Question(units[question].indices, cut),) if question >= 0 else ()
        folded = _folded_by(cut, units)
        return Layout(tuple(units), room, cut, cut, folded, questions, ends_with_question)
    cuts = _cuts(source, units, room)
    cut = cuts[-1] if cuts else Cut()
    cut_at_question = cuts[question] if question >= 0 else Cut()
    return Layout(
        tuple(units),
        room,
        cut,
        cut_at_question,
        _folded_by(cut, units),
        _questions_since_cut(units, cuts, question),
        ends_with_question,
        prefix_breaks=ends_with_question and replay.prefix_breaks(units, room),
        tight=cut.tight and (len(cuts) == 1 or cuts[-2] is not cut),
        has_agent=calling.has_agent(units),
        autonomous=calling.is_autonomous(units, _results_in(source)),
    )


def _questions_since_cut(units: Sequence[Unit], cuts: Sequence[Cut], newest: int) -> tuple[Question, ...]:
    """Return the questions since the last one with which the cut moved; unit ``newest`` has the current one.

    A cut that moved inside a turn changed the request before this turn's question, not the quotes behind it.
    """
    questions: list[Question] = []
    for position in range(newest, -1, -1):
        if units[position].kind is not USER:
            continue
        questions.append(Question(units[position].indices, cuts[position]))
        if position == 0 or cuts[position] is not cuts[position - 1]:
            break
    return tuple(reversed(questions))


def _results_in(source: Source) -> int:
    """Return the number of tool results."""
    return sum([message.get("role") in RESULT_ROLES for message in source.messages])


def _room_of(source: Source) -> Room:
    """Return the room that decides where the cut is placed."""
    pinned = sum(source.costs[index] for index in source.structure.pinned)
    free = max(source.budget.rounded_room - pinned, 1)
    share = source.policy.recall_share
    quote_tokens = max(int(min(share * source.budget.room, share * MOST_QUOTES_OF_FREE * free)), 0)
    return Room(free, quote_tokens, source.policy.low_water, source.policy.max_turns, source.policy.prices)


def _folded_by(cut: Cut, units: Sequence[Unit]) -> tuple[int, ...]:
    """Return the indices of the messages before a cut; if it is inside a turn, the turn's user messages are kept."""
    return tuple(
        sorted(
            index
            for unit in units[: cut.first_kept]
            if unit.kind is not USER or unit.turn != units[cut.first_kept].turn
            for index in unit.indices
        )
    )


UNIT_BYTES: Final = 300
"""Bytes of a remembered unit: its numbers, its indices, its place and its cut (``sys.getsizeof``, CPython 3.11)."""


def _cuts(source: Source, units: Sequence[Unit], room: Room) -> Sequence[Cut]:
    """Return the cut after each unit. The replay of a conversation is remembered, and continued when it has grown."""
    opening = source.messages[units[0].indices[0]] if units else None
    if type(opening) is not Interned or not opening.number:
        return replay.replay(units, room)
    key = ("replay", opening.number, room)
    grown = replay.grow(units, room, source.memory.get(key))
    source.memory.put(key, grown, UNIT_BYTES * len(units))
    return grown.cuts


def _ends_with_question(units: Sequence[Unit], question: int) -> bool:
    """Return whether unit ``question`` is the last unit, or is followed only by the beginning of an answer."""
    after = len(units) - 1 - question
    return question >= 0 and (after == 0 or (after == 1 and units[-1].kind is ANSWER))


class ResultLimits(NamedTuple):
    """The most tokens of a tool result."""

    trimmed: int
    stubbed: int
    """The parts that are never cut stay in a stub."""


def result_limits(source: Source, room: Room, message: Message) -> ResultLimits:
    """Return the most tokens of a tool result once it is trimmed or reduced to a stub."""
    content = message.get("content")
    whole = [part for part in content if type(part) is Opaque] if isinstance(content, list) else []
    stubbed = STUB_TOKENS + (source.counter.message({"role": "tool", "content": whole}) if whole else 0)
    trimmed = max(int(room.free * TRIMMED_RESULT_SHARE), stubbed)
    configured = tokens_of_characters(source, message, source.policy.tool_result_chars)
    return ResultLimits(trimmed if configured is None else min(trimmed, configured), stubbed)


def tokens_of_characters(source: Source, message: Message, characters: int) -> int | None:
    """Return about how many tokens a message has when cut to so many characters; None if it is no longer than that."""
    content = message.get("content")
    length = len(content) if isinstance(content, str) else len(text_of(message))
    return None if length <= characters else max(int(source.cost_without_ids(message) * characters / length), 1)


def _units(source: Source, room: Room) -> list[Unit]:
    """Return the units of a conversation, with their costs in full, trimmed and stubbed."""
    costs = source.costs
    trimmed, stubbed = list(costs), list(costs)
    results: set[int] = set()
    for index, message in enumerate(source.messages):
        if has_media_or_reasoning(message):
            trimmed[index] = stubbed[index] = min(source.cost(without_media_and_reasoning(message)), costs[index])
        if message.get("role") in RESULT_ROLES:
            results.add(index)
            ids = costs[index] - source.cost_without_ids(message)  # they stay in every form
            limits = result_limits(source, room, message)
            trimmed[index] = min(trimmed[index], limits.trimmed + ids)
            stubbed[index] = min(stubbed[index], limits.stubbed + ids)

    def unit(turn: int, kind: UnitKind, indices: tuple[int, ...]) -> Unit:
        cost, trimmed_cost, stubbed_cost = [sum(map(by.__getitem__, indices)) for by in (costs, trimmed, stubbed)]
        return Unit(turn, kind, indices, cost, trimmed_cost, stubbed_cost)

    units: list[Unit] = []
    for number, turn in enumerate(source.structure.turns):
        if turn.user:
            units.append(unit(number, USER, turn.user))
        for step in turn.steps:
            # A late result begins its step; every other result ends it.
            has_results = step[0] in results or step[-1] in results
            units.append(unit(number, CALLS if has_results else ANSWER, step))
    return units
