"""The last exchanges, kept in memory for whoever looks at the admin port."""

from collections import deque

from gateway.observe.exchange import Exchange


class Recent:
    """A ring of the newest exchanges. They hold no message text, so neither does this."""

    def __init__(self, limit: int = 500) -> None:
        self._ring: deque[Exchange] = deque(maxlen=limit)

    def observe(self, exchange: Exchange) -> None:
        self._ring.append(exchange)

    def newest(self, limit: int = 100) -> list[Exchange]:
        """The newest exchanges, newest first."""
        return list(reversed(self._ring))[:limit]
