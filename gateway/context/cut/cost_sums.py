"""Running sums of the units' costs: they give the cost of any cut without adding up its units."""

from collections.abc import Sequence
from itertools import accumulate

from gateway.context.cut.agents import has_agent_until
from gateway.context.cut.unit_limits import newest_cost, newest_limit, old_unit_limit, question_cost
from gateway.context.cut.units import ANSWER, USER, Cut, Room, Unit


class CostSums:
    """The running sums for one conversation in one room."""

    def __init__(self, units: Sequence[Unit], room: Room) -> None:
        self.units = units
        self.room = room
        self.old_unit_limit = old_unit_limit(room)
        self.full = _running_sums([unit.cost for unit in units], self.old_unit_limit)
        """For each position the tokens of all units before it, in full, but of each unit no more than an old unit may have. The last number is for
        the end of the conversation."""
        self.trimmed = _running_sums([unit.trimmed_cost for unit in units], self.old_unit_limit)
        """The same of trimmed units."""
        self.stubbed = _running_sums([unit.stubbed_cost for unit in units], self.old_unit_limit)
        """The same of stubbed units."""
        self.turn_starts: list[int] = []
        """The first unit of each turn."""
        self.turn_start_of: list[int] = []
        """For each unit the first unit of its turn."""
        self.question_of: list[int] = []
        """For each unit the unit with the user messages of its turn; -1 without one."""
        self.requests = list(accumulate([unit.kind is not ANSWER for unit in units]))
        """For each unit the number of requests so far."""
        self._has_agent: list[bool] | None = None
        """See `has_agent_at`."""
        self.uncut_cost: list[int] = []
        """For each unit the cost of all units up to it in full, with the newest unit and its question at their own
        limits."""
        self._add_turns()

    def _add_turns(self) -> None:
        """Fill in the facts about turns, and the costs without a cut."""
        turn = question = -1
        start = question_tokens = question_extra = 0
        most_of_newest = newest_limit(self.room, 0)
        for position, unit in enumerate(self.units):
            before, with_unit = self.full[position], self.full[position + 1]
            if unit.turn != turn:
                turn = unit.turn
                start = position
                self.turn_starts.append(position)
                question = position if unit.kind is USER else -1
                question_tokens = question_cost(unit, self.room) if question >= 0 else 0
                # The sums count a question like an old unit, but the current one may be larger.
                question_extra = question_tokens - (with_unit - before) if question >= 0 else 0
                most_of_newest = newest_limit(self.room, question_tokens)
            self.turn_start_of.append(start)
            self.question_of.append(question)
            if position != question:
                with_unit = before + newest_cost(unit.cost, self.room, most_of_newest)
            self.uncut_cost.append(with_unit + question_extra)

    def kept_cost(self, cut: Cut, newest: int) -> int:
        """Return the tokens of the kept units when ``newest`` is the last unit."""
        return self.cost_change(cut, newest) + self.uncut_cost[newest]

    def cost_change(self, cut: Cut, newest: int) -> int:
        """Return the tokens that a cut adds to the cost of all units. Later growth does not change this number."""
        first = cut.first_kept
        stubs_end = min(max(cut.stubs_end, first), newest)
        trims_end = max(min(max(cut.trims_end, first), newest), stubs_end)
        stubs = self.stubbed[stubs_end] - self.stubbed[first]
        trims = self.trimmed[trims_end] - self.trimmed[stubs_end]
        change = stubs + trims - self.full[trims_end]
        question = self.question_of[first] if self.units else -1
        if 0 <= question < first:  # the cut is inside a turn, whose question is kept
            change += min(self.units[question].cost, self.old_unit_limit)
        return change

    def has_agent_at(self, newest: int) -> bool:
        """Return whether the conversation up to a unit is an agent's; found out when a cut moves, which most requests do not."""
        if self._has_agent is None:
            self._has_agent = has_agent_until(self.units)
        return self._has_agent[newest]

    def tokens_per_request(self, newest: int) -> float:
        """Return the tokens by which a request has grown on average."""
        return max(self.full[newest + 1] / max(self.requests[newest], 1), 1.0)

    def too_many_turns(self, cut: Cut, newest: int) -> bool:
        """Return whether a cut keeps more turns than the operator allows."""
        most = self.room.max_turns
        return most is not None and self.units[newest].turn - self.units[cut.first_kept].turn >= max(most, 1)


def _running_sums(costs: Sequence[int], limit: int) -> list[int]:
    """Return the running sums of costs, each at most ``limit``."""
    return [0, *accumulate([cost if cost < limit else limit for cost in costs])]
