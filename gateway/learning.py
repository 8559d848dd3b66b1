"""What upstreams taught: windows, ratios and the last usage of conversations."""

from gateway.store.base import Store


class Learning:
    """In-process facts in front of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def told_window(self, upstream: str, model: str) -> int | None:
        """The window an upstream's model list states."""
        return None

    def window(self, upstream: str, model: str) -> int | None:
        """The window learned from refusals."""
        return None

    async def close(self) -> None:
        """Write what is still to be written."""
