"""The source of a fold: its messages, its limits, and what each message costs."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from gateway.context.count.counter import Counter, CountText
from gateway.context.cut.budget import Budget
from gateway.context.cut.layout import Layout
from gateway.context.cut.policy import Policy
from gateway.context.cut.rungs import FOLD, RungLimits
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import Structure, call_ids, result_id
from gateway.context.read.view import as_sent
from gateway.wire.derived import derived_of
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, texts

MOST_THOROUGH_CHARACTERS: Final = 4_000_000
"""Characters of a conversation. In a longer one, long texts keep only head and tail, because searching their rows would
take more than about 2 s."""

_WITH_IDS: Final = RESULT_ROLES | {"assistant"}


class MessageCost(NamedTuple):
    """The tokens of a message."""

    without_ids: int
    """Without the ids of its calls."""
    with_ids: int


class Source(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """The input of a fold."""

    messages: Sequence[Message]
    structure: Structure
    budget: Budget
    counter: Counter
    policy: Policy
    summary: Summary | None = None
    rung_limits: RungLimits = FOLD
    earlier_notes: str = ""
    """The rows in notes of an earlier fold that the client sent back."""
    memory: Memory = msgspec.field(default_factory=Memory)
    """The cache of everything that is computed from these messages."""

    _costs_by_id: dict[int, tuple[Message, MessageCost]] = {}
    """Messages with their costs, by ``id(message)``. The message is kept alive, so that no other one gets the same id."""
    layouts: dict[tuple[RungLimits, Budget, Policy], Layout] = {}
    """The layouts so far (`layout_of`). A summary does not move the cut, so a copy of this source with a summary shares them."""

    @property
    def sent(self) -> tuple[Message, ...]:
        """The messages as they came: see `gateway.context.read.as_calls`."""
        return tuple(map(as_sent, self.messages))

    @cached_property
    def costs(self) -> list[int]:
        """The cost of each original message."""
        return [self.cost(message) for message in self.messages]

    @cached_property
    def thorough(self) -> bool:
        """Whether long texts are searched for rows to keep. It depends only on the conversation's length, so all
        replicas agree."""
        characters = sum(sum(map(len, texts(message.get("content")))) for message in self.messages)
        return characters <= MOST_THOROUGH_CHARACTERS

    def cost_without_ids(self, message: Message) -> int:
        """Return the tokens of a message, without the ids of its calls."""
        return self._cost_of(message).without_ids

    def cost(self, message: Message) -> int:
        """Return the tokens of a message, with the ids of its calls: some servers write them into the prompt."""
        return self._cost_of(message).with_ids

    def _cost_of(self, message: Message) -> MessageCost:
        """Return the cost of a message. It is counted once for this source, and once for each message that is remembered."""
        entry = self._costs_by_id.get(id(message))
        if entry is None:
            cached, name = derived_of(message).costs_with_ids, self.counter.name
            costs = cached.get(name)
            if costs is None:
                costs = self._count(message)
                if name:
                    cached[name] = costs
            entry = self._costs_by_id[id(message)] = message, MessageCost(*costs)
        return entry[1]

    def _count(self, message: Message) -> tuple[int, int]:
        """Count the tokens of a message without and with its call ids, as the derived values of a message keep them."""
        cost = self.counter.message(as_sent(message))
        return cost, cost + id_tokens(message, self.counter.text)


def id_tokens(message: Message, count: CountText) -> int:
    """Return the tokens of the ids of a message's calls and result, with a sign around each."""
    if message.get("role") not in _WITH_IDS:
        return 0
    return sum(count(name) + 1 for name in (*call_ids(message), result_id(message)) if name)
