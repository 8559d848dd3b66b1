"""A full room: everything from which the next cut is decided."""

from typing import NamedTuple

from gateway.context.cut.cost_sums import CostSums
from gateway.context.cut.units import Cut, Room


class FullRoom(NamedTuple):
    """A conversation whose newest unit no longer fits beside the digest and the other kept units."""

    sums: CostSums
    cut: Cut
    """The cut that must move."""
    newest: int
    """The position of the newest unit."""
    most_filled: int
    """The most tokens of the digest and the kept units together."""
    unspent: int
    """Tokens beside these that are free for quotes of the current turn. The digest may take what its quotes leave."""

    @property
    def room(self) -> Room:
        return self.sums.room

    @property
    def tokens_per_request(self) -> float:
        """The tokens by which a request has grown on average."""
        return self.sums.tokens_per_request(self.newest)

    @property
    def has_agent(self) -> bool:
        """Whether the conversation is an agent's."""
        return self.sums.has_agent_at(self.newest)

    def kept_cost(self, cut: Cut) -> int:
        """Return the tokens of the units that a cut keeps."""
        return self.sums.kept_cost(cut, self.newest)

    def keeps_too_many_turns(self, cut: Cut) -> bool:
        """Return whether a cut keeps more turns than the operator allows."""
        return self.sums.too_many_turns(cut, self.newest)


def cut_at(first: int) -> Cut:
    """Return a cut that keeps all units from ``first`` on in full."""
    return Cut(first, first, first)
