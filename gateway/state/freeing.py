"""Free large values piece by piece in a thread of their own.

Freeing a schema of some megabytes takes 15 to 40 ms, and Python runs no other thread meanwhile. If the event loop dropped the last reference,
all requests would wait. So large values are given to this thread. It waits until it has the only reference, and then frees one object at a
time.
"""

import sys
import threading
import time
from collections import deque
from typing import Any, Final

LEAST_FREED_BYTES: Final = 2**18
"""Bytes of JSON from which its values are freed here; those of a shorter one are freed in 5 ms (measured)."""
CHECK_S: Final = 0.02
"""Time between two checks whether a value is still in use elsewhere."""
PATIENCE_S: Final = 5.0
"""Time after which a value that is still in use is dropped here: its last user then frees it."""


def take_apart(value: Any) -> None:
    """Free a value's lists and objects in pieces. Parts that are also referenced elsewhere stay unchanged."""
    waiting: list[Any] = [value]
    del value
    while waiting:
        part = waiting.pop()
        if sys.getrefcount(part) > OWN_REFERENCES:
            continue
        if type(part) is dict:
            waiting.extend(part.values())
            part.clear()
        elif type(part) is list:
            waiting.extend(part)
            part.clear()
        elif type(part) is tuple:
            waiting.extend(part)
        else:
            waiting.extend(getattr(part, "__dict__", {}).values())
            names = getattr(type(part), "__slots__", ())
            waiting.extend([inner for name in names if (inner := getattr(part, name, None)) is not None])


def _references_of_own() -> int:
    """Measure `OWN_REFERENCES`, with the same variables as in `take_apart`."""
    waiting: list[Any] = [[]]
    part = waiting.pop()
    return sys.getrefcount(part)


OWN_REFERENCES: Final = _references_of_own()
"""The result of `sys.getrefcount` inside `take_apart` for a value that nothing else references. It differs between versions of
Python."""


def _most_references(values: list[Any]) -> int:
    """Return the largest number of references to any of the values."""
    most = 0
    for value in values:
        most = max(most, sys.getrefcount(value))
    return most


LISTED_REFERENCES: Final = _most_references([[]])
"""The result of `_most_references` for a list of values that nothing else references."""


class FreeingThread:
    """The thread, and the values that wait until nothing else uses them."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, list[Any]]] = deque()
        self._changed = threading.Event()
        self._closed = False
        self._taking = False
        self._thread = threading.Thread(target=self._serve, name="freeing", daemon=True)
        self._thread.start()

    def add(self, values: list[Any]) -> None:
        """Free values once their other users have left. The list is emptied."""
        self._values.append((time.monotonic() + PATIENCE_S, values))
        self._changed.set()

    @property
    def busy(self) -> bool:
        """Return whether values wait, or are being taken apart."""
        return self._taking or bool(self._values)

    def close(self) -> None:
        """End the thread soon. Waiting values are then freed like any other value."""
        self._closed = True
        self._changed.set()

    def _serve(self) -> None:
        while not self._closed:
            if not self._values:
                self._taking = False
                self._changed.wait()
                self._changed.clear()
                continue
            self._taking = True  # set before the values leave the queue, so that `busy` is never false in between
            until, values = self._values.popleft()
            if _most_references(values) > LISTED_REFERENCES and time.monotonic() < until:
                self._values.append((until, values))
                time.sleep(CHECK_S)
                continue
            while values:
                take_apart(values.pop())
