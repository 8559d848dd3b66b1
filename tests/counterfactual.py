"""Compare what a conversation costs as it was sent with what it would cost in other ways.

Each way is billed by the simulated cache of one provider. The simulation knows published rules only: where an upstream
states what it billed, that is the better figure for what was sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.cache.prompt import Encode, rendered
from benchmarks.cache.simulate import Bill, Block, Cache, send
from gateway.context.cache.rules import CacheRule
from gateway.wire.message import PINNED_ROLES, Message


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a conversation, its messages in the shape of chat completions."""

    at_s: float
    """When it was sent, on any clock that does not run backwards."""
    came: Sequence[Message]
    """The messages as the client sent them."""
    sent: Sequence[Message]
    """The messages as they went upstream."""
    room: int
    """Tokens that the upstream takes, tools included."""
    tools: str = ""
    """The tool definitions as one text."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The bills of one conversation in three ways."""

    ours: Bill
    """As it was sent."""
    unfolded: Bill
    """As the client sent it, as if there were no limit."""
    cut: Bill
    """As a client sends it that drops the older half of its turns whenever they no longer fit."""
    too_large: int
    """Requests of the unfolded conversation that the upstream would have refused."""

    def __add__(self, other: "Comparison") -> "Comparison":
        return Comparison(
            self.ours + other.ours,
            self.unfolded + other.unfolded,
            self.cut + other.cut,
            self.too_large + other.too_large,
        )


def counterfactual(requests: Sequence[Request], rule: CacheRule, encode: Encode) -> Comparison:
    """Bill a conversation as it was sent, as the client sent it, and as a client that cuts it would send it."""
    ours, unfolded, cut = Bill(), Bill(), Bill()
    ours_cache, unfolded_cache, cut_cache = Cache(rule), Cache(rule), Cache(rule)
    too_large = 0
    for request in requests:
        whole = rendered(request.came, rule, encode, request.tools)
        too_large += _size(whole) > request.room
        unfolded_cache, bill = send(unfolded_cache, whole, request.at_s)
        unfolded += bill
        ours_cache, bill = send(ours_cache, rendered(request.sent, rule, encode, request.tools), request.at_s)
        ours += bill
        kept = drop_oldest_half(request.came, request.room - len(encode(request.tools)), rule, encode)
        cut_cache, bill = send(cut_cache, rendered(kept, rule, encode, request.tools), request.at_s)
        cut += bill
    return Comparison(ours, unfolded, cut, too_large)


def drop_oldest_half(messages: Sequence[Message], room: int, rule: CacheRule, encode: Encode) -> list[Message]:
    """Return the messages that a client keeps that drops the older half of its turns each time the room is full.

    It depends on the messages alone, so a longer conversation drops the same turns until the room is full again. Pinned
    messages and the newest turn always stay.
    """
    pinned = [message for message in messages if message.get("role") in PINNED_ROLES]
    room -= sum(_cost(message, rule, encode) for message in pinned)
    turns: list[list[Message]] = []
    costs: list[int] = []
    for message in messages:
        if message.get("role") in PINNED_ROLES:
            continue
        if message.get("role") == "user" or not turns:
            turns.append([])
            costs.append(0)
        turns[-1].append(message)
        costs[-1] += _cost(message, rule, encode)
        while sum(costs) > room and len(turns) > 1:
            half = (len(turns) + 1) // 2
            turns, costs = turns[half:], costs[half:]
    return [*pinned, *(message for turn in turns for message in turn)]


def _size(blocks: Sequence[Block]) -> int:
    return sum(len(block.tokens) for block in blocks)


def _cost(message: Message, rule: CacheRule, encode: Encode) -> int:
    return _size(rendered([message], rule, encode))
