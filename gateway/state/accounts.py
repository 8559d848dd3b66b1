"""Accounts of a summariser: the hourly tokens that were spent on its calls, and whether it fails.

Each account is of a model and of the caller who pays for its calls, or of the operator. So the refused key of one caller does not affect another caller.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from gateway.state.newest import keep_newest
from gateway.upstream.breaker import Breaker

MOST_ACCOUNTS: Final = 4096
"""Accounts that are kept, the newest. Chosen to bound memory."""
LARGEST_SHARE_OF_REST: Final = 3 / 4
"""Share of the operator's hourly tokens, minus those used by others, that one caller may use: so no caller can use up all of them."""
HOUR_S: Final = 3600.0
"""Seconds."""
PAUSE_S: Final = 30.0
"""Seconds without calls after failures; doubled after each failed trial."""
LONGEST_PAUSE_S: Final = 600.0
"""Seconds; the most of this pause."""


class Spending(NamedTuple):
    """Tokens of one job, when they were spent, and the key hash of the caller whose conversation it was."""

    at: float
    tokens: int
    caller: str


class Account:
    """What was spent on the calls of one model in this hour, and the breaker that ends calls while they fail. ``shared``: the operator pays,
    for all callers."""

    def __init__(self, clock: Callable[[], float], *, shared: bool) -> None:
        self.breaker = Breaker(pause_s=PAUSE_S, longest_s=LONGEST_PAUSE_S, clock=clock)
        self._clock = clock
        self._shared = shared
        self._spent: deque[Spending] = deque()

    def can_afford(self, cost: int, caller: str, tokens_per_hour: int | None) -> bool:
        """Return whether the tokens of this hour cover a job, and the caller's part of them."""
        now = self._clock()
        while self._spent and self._spent[0].at <= now - HOUR_S:
            self._spent.popleft()
        if tokens_per_hour is None:
            return True
        others = sum(one.tokens for one in self._spent if one.caller != caller)
        own = sum(one.tokens for one in self._spent) - others
        left = tokens_per_hour - others
        return own + cost <= (left * LARGEST_SHARE_OF_REST if self._shared else left)

    def charge(self, cost: int, caller: str) -> None:
        """Add a job's cost to the tokens of this hour."""
        self._spent.append(Spending(self._clock(), cost, caller))

    def refund(self, cost: int, caller: str) -> None:
        """Take off the cost of a job again, because its first call got no answer."""
        if self._spent:
            self._spent.append(Spending(self._spent[-1].at, -cost, caller))


class Accounts:
    """The accounts of all models and payers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accounts: OrderedDict[tuple[str, str], Account] = OrderedDict()

    def of(self, model: str, payer: str) -> Account:
        """Return the account of a model; ``payer`` is the hash of the caller's key if the caller pays, else empty."""
        key = model, payer
        found = self._accounts.get(key) or Account(self._clock, shared=not payer)
        keep_newest(self._accounts, key, found, MOST_ACCOUNTS)
        return found
