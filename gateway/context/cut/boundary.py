"""The boundary at which a conversation is cut: the first unit that is kept.

Shares are of the free room, which is the room without the pinned messages.
"""

from bisect import bisect_left, bisect_right
from typing import Final

from gateway.context.cut.full_room import FullRoom, cut_at
from gateway.context.cut.units import ANSWER, USER, Room

KEPT_SHARE: Final = 0.15
"""Share of the units that are kept in full right after a cut. The rest of the room lets the conversation grow."""
KEPT_SHARE_IN_LARGE_ROOM: Final = 0.1
"""The same in a large room: kept units are written to the cache once more, and read with every request."""
KEPT_TOKENS_IN_SMALL_ROOM: Final = 600
"""Tokens. A room is large if `KEPT_SHARE` of it is more than this. Chosen: some ten messages of a chat."""
WHOLE_TURN_SHARE: Final = 0.25
"""Share. The cut is not placed inside a current turn of at most this size. Measured with coding agents: with 0.5, a cut that keeps the
whole turn leaves so little room to grow that 7 to 12 % more tokens are processed, and no more of what questions need is found."""
REPLY_SHARE: Final = 0.6
"""Share of the free room that the reply before a new question may take, with the question that it answers. A longer reply is
shortened to an old unit's limit."""
REPLY_SHARE_BEFORE_LONG_QUESTION: Final = 0.1
"""The same if the new question is longer than the reply: it says more by itself. A coding agent that gets results as messages of the
user costs 1.11 and 1.16 times what it costs without its oldest half (GPT-5.6, llama.cpp; windows of half), with 0.6 it would be 1.36 and 1.46."""
REPLY_AND_NEW_QUESTION_SHARE: Final = 0.85
"""Share of the free room that this reply and the new question may take together; the digest needs the rest. Counted in 360 made-up chats (rooms of
1,600 to 20,000 tokens, questions of 5 to 90 % and replies of 5 to 100 % of them): without this limit a third of the folds had no digest, and 46
lost the user's wish, with it 14; as many replies stay whole. With 0.95 the reply fills the room more often, with 0.7 fewer replies stay. `QUESTION_AND_STEP_SHARE` of `unit_limits` is another limit with
the same value: what exceeds that one is shortened, what exceeds this one is folded."""
LEAST_REPLY_ROOM: Final = 1500
"""Tokens of free room from which on this reply is kept. In a smaller room the digest needs its place: at a tenth of the histories of
customer service (rooms of some hundred tokens), 6 to 10 % less of what later calls use was left beside a reply."""


def kept_after_cut(room: Room) -> float:
    """Return the most tokens of the units that are kept right after a cut."""
    return min(KEPT_SHARE * room.free, max(KEPT_SHARE_IN_LARGE_ROOM * room.free, KEPT_TOKENS_IN_SMALL_ROOM))


def first_kept(full: FullRoom) -> int:
    """Return the first unit to keep: at the first turn boundary that leaves room to grow, else the start of the current turn, else a step
    in it."""
    sums, newest = full.sums, full.newest
    limit = kept_after_cut(full.room)
    boundary = _turn_boundary(full, limit)
    current = sums.turn_start_of[newest]
    if newest == current and boundary in (None, newest):
        return _reply_or_question(full)
    if boundary is not None:
        return boundary
    fits_whole = full.kept_cost(cut_at(current)) <= full.room.free * WHOLE_TURN_SHARE
    if full.cut.first_kept <= current and fits_whole:
        return current
    steps = [
        position
        for position in range(max(current, full.cut.first_kept), newest + 1)
        if sums.units[position].kind is not USER
    ]
    return next((step for step in steps if full.kept_cost(cut_at(step)) <= limit), steps[-1])


def _reply_or_question(full: FullRoom) -> int:
    """Return the first unit to keep with a new question that leaves no room for the turn before it.

    It is the plain reply before the question, because few short questions can be understood without the words that they answer. It is the
    question if this reply is too large, alone or together with the question.
    """
    units, question, free = full.sums.units, full.newest, full.room.free
    reply = question - 1
    is_answered = reply > full.cut.first_kept and units[reply].kind is ANSWER
    if not is_answered or free < LEAST_REPLY_ROOM or full.keeps_too_many_turns(cut_at(reply)):
        return question
    both = full.kept_cost(cut_at(reply))
    cost = both - full.kept_cost(cut_at(question))
    refers_to_reply = units[question].cost <= units[reply].cost
    most = REPLY_SHARE if refers_to_reply else REPLY_SHARE_BEFORE_LONG_QUESTION
    return reply if cost <= most * free and both <= REPLY_AND_NEW_QUESTION_SHARE * free else question


def _turn_boundary(full: FullRoom, limit: float) -> int | None:
    """Return the first turn boundary after the cut from which on the units cost at most ``limit`` tokens; None without one."""
    units, starts, most = full.sums.units, full.sums.turn_starts, full.room.max_turns
    # With a limit of turns, enough of them are folded that several new ones fit.
    oldest = -1 if most is None else units[full.newest].turn - max(int(most * full.room.low_water), 1)
    low = bisect_left(starts, oldest + 1, bisect_right(starts, full.cut.first_kept), key=lambda at: units[at].turn)
    high = bisect_right(starts, full.newest)
    # The later the cut, the less is kept: the negative costs are in ascending order.
    first_fitting = bisect_left(starts, -limit, low, max(low, high), key=lambda at: -full.kept_cost(cut_at(at)))
    return starts[first_fitting] if first_fitting < high else None
