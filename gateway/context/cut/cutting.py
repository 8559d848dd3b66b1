"""Cut a source: make its `Layout`, which says where the conversation is cut and what replaces the folded part."""

from collections.abc import Sequence
from typing import Final

from gateway.context.cut import agents, replay
from gateway.context.cut.layout import Layout
from gateway.context.cut.media_and_reasoning import has_media_or_reasoning, without_media_and_reasoning
from gateway.context.cut.result_limits import result_limits
from gateway.context.cut.source import Source
from gateway.context.cut.units import ANSWER, CALLS, USER, Cut, Room, Unit, UnitKind, newest_question
from gateway.wire.derived import Interned
from gateway.wire.message import RESULT_ROLES

MOST_QUOTES_OF_FREE: Final = 1.6
"""Factor. If pinned messages fill most of the room, quotes may have this multiple of their share of the free room."""
UNIT_BYTES: Final = 300
"""Bytes of a remembered unit: its numbers, its indices, its place and its cut (``sys.getsizeof``, CPython 3.11)."""


def layout_of(source: Source) -> Layout:
    """Return the layout of a source; it is decided once."""
    key = source.rung_limits, source.budget, source.policy
    layout = source.layouts.get(key)
    if layout is None:
        layout = source.layouts[key] = _make_layout(source)
    return layout


def _make_layout(source: Source) -> Layout:
    """Decide where the conversation is cut; on the last rung, in front of the newest unit."""
    room = _room_of(source)
    units = _units(source, room)
    question = newest_question(units)
    asked = units[question].indices if question >= 0 else ()
    ends_with_question = _ends_with_question(units, question)
    if source.rung_limits.newest_only:
        cut = Cut(first_kept=max(len(units) - 1, 0))
        return Layout(
            units=tuple(units),
            room=room,
            cut=cut,
            cut_at_question=cut,
            folded=folded_by(cut, units),
            question=asked,
            ends_with_question=ends_with_question,
        )
    cuts = _cuts(source, units, room)
    cut = cuts[-1] if cuts else Cut()
    return Layout(
        units=tuple(units),
        room=room,
        cut=cut,
        cut_at_question=cuts[question] if question >= 0 else Cut(),
        folded=folded_by(cut, units),
        question=asked,
        ends_with_question=ends_with_question,
        prefix_breaks=ends_with_question and replay.prefix_breaks(units, room),
        # Until a cut moves it is the same object.
        tight=cut.tight and (len(cuts) == 1 or cuts[-2] is not cut),
        has_agent=agents.has_agent(units),
        autonomous=agents.is_autonomous(units, _results_in(source)),
    )


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


def folded_by(cut: Cut, units: Sequence[Unit]) -> tuple[int, ...]:
    """Return the indices of the messages before a cut; if it is inside a turn, the turn's user messages are kept."""
    return tuple(
        sorted(
            index
            for unit in units[: cut.first_kept]
            if unit.kind is not USER or unit.turn != units[cut.first_kept].turn
            for index in unit.indices
        )
    )


def _cuts(source: Source, units: Sequence[Unit], room: Room) -> Sequence[Cut]:
    """Return the cut after each unit. The replay of a conversation is remembered, and continued when it has grown."""
    opening = source.messages[units[0].indices[0]] if units else None
    if type(opening) is not Interned or not opening.number:
        return replay.replay(units, room)
    key = ("replay", opening.number, room)
    grown = replay.continue_replay(source.memory.get(key), units, room)
    source.memory.put(key, grown, UNIT_BYTES * len(units))
    return grown.cuts


def _ends_with_question(units: Sequence[Unit], question: int) -> bool:
    """Return whether unit ``question`` is the last unit, or is followed only by the beginning of an answer."""
    after = len(units) - 1 - question
    return question >= 0 and (after == 0 or (after == 1 and units[-1].kind is ANSWER))


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
        if len(indices) == 1:
            index = indices[0]
            return Unit(turn, kind, indices, costs[index], trimmed[index], stubbed[index])
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
