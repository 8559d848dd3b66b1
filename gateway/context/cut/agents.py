"""Agents: whether a conversation is an agent's or a chat, and whether the agent works on its own. Calls and results tell it.

Where the cut is and how the room is shared depends on this. Which lines of the folded part are kept depends only on the calls in that part
(`LinePool.has_many_calls`), so that a digest stays the same until the cut moves.
"""

from collections.abc import Sequence
from typing import Final

from gateway.context.cut.units import CALLS, Unit

AGENT_CALL_TOKENS_SHARE: Final = 1 / 3
"""Share of a conversation's tokens. If calls and results take more, the conversation is an agent's. A chat calls tools
only now and then."""
AGENT_CALLING_TURNS_SHARE: Final = 1 / 2
"""Share of the turns. If more turns have calls, the conversation is an agent's, even if calls and results are short. In
recorded conversations about errands half of the turns have calls."""
AUTONOMOUS_RESULTS: Final = 4
"""Results per turn. If a conversation has more, the agent works on its own between two messages of the user. Recorded
coding agents have 9 to 12 (median 10), customer service 0.7, tools that users command one by one 1.5."""


def has_agent(units: Sequence[Unit]) -> bool:
    """Return whether a conversation is an agent's: calls and results are a large part of it, or many turns have calls."""
    return bool(units) and has_agent_until(units)[-1]


def is_autonomous(units: Sequence[Unit], results: int) -> bool:
    """Return whether an agent works on its own between two messages of the user: it has many results for each turn."""
    return bool(units) and results > AUTONOMOUS_RESULTS * (units[-1].turn + 1)


def has_agent_until(units: Sequence[Unit]) -> list[bool]:
    """Return for each unit whether the conversation up to it is an agent's."""
    has_agent_by_unit: list[bool] = []
    tokens = call_tokens = calling_turns = 0
    last_calling_turn = -1
    for unit in units:
        tokens += unit.cost
        if unit.kind is CALLS:
            call_tokens += unit.cost
            calling_turns += unit.turn != last_calling_turn
            last_calling_turn = unit.turn
        has_many_call_tokens = call_tokens > AGENT_CALL_TOKENS_SHARE * tokens
        has_agent_by_unit.append(has_many_call_tokens or calling_turns > AGENT_CALLING_TURNS_SHARE * (unit.turn + 1))
    return has_agent_by_unit
