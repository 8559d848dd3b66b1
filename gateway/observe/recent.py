"""The last exchanges, kept in memory for the admin port."""

from collections import deque

from gateway.observe.exchange import Exchange


class Recent:
    """A ring of the newest exchanges. They contain no message text, so the ring contains none."""

    def __init__(self, limit: int = 500) -> None:
        self._ring: deque[Exchange] = deque(maxlen=limit)

    def observe(self, exchange: Exchange) -> None:
        self._ring.append(exchange)

    def newest(self, limit: int = 100) -> list[Exchange]:
        """Return the newest exchanges, newest first."""
        return list(reversed(self._ring))[:limit]
