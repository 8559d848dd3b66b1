"""How much memory a piece of code takes."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Allocation:
    """The bytes that were allocated in a block of code; known at its end."""

    left: int = 0
    """Bytes that are still in use at the end."""
    peak: int = 0
    """The most bytes that were in use at once."""


@contextmanager
def allocation() -> Iterator[Allocation]:
    """Measure the code of a ``with`` block."""
    found = Allocation()
    gc.collect()
    tracemalloc.start()
    try:
        yield found
        gc.collect()
        found.left, found.peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
