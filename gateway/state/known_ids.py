"""Ids that one upstream knows and others do not: which upstream made a response, a conversation, a file.

Only hashes are kept, each of an id and its caller at an upstream. So an id leads to an upstream only for the caller who got it from
there, and two callers who use one id do not disturb each other.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from gateway.state.newest import keep_newest
from gateway.state.store import values
from gateway.state.store.base import Store
from gateway.state.tasks import Tasks

KIND: Final = "id"
VERSION: Final = 1
"""Version of the stored form; other versions are ignored."""
KEPT_S: Final = 30 * 86400.0
"""Seconds. OpenAI keeps responses 30 days: https://platform.openai.com/docs/guides/conversation-state. An id that is used is kept again."""
WRITTEN_AGAIN_S: Final = 86400.0
"""Seconds after which an id that is still used is written again, so that the store does not drop it."""
MOST: Final = 2**15
"""Ids kept in this process, beside the store: 5 MB. Chosen to bound memory."""
_VALUE: Final = values.pack(VERSION)

Scopes = Mapping[str, str]
"""The caller's scope at each upstream that may be asked, by the upstreams' names, in the order to prefer them."""


class KnownIds:
    """The ids of all callers, in the store that all processes share, and the newest of this process."""

    def __init__(self, store: Store, tasks: Tasks, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._tasks = tasks
        self._clock = clock
        self._newest: OrderedDict[str, float] = OrderedDict()
        """For the name of each id, when it was written."""

    async def find(self, ids: Sequence[str], scopes: Scopes) -> str:
        """Return the upstream that knows an id, of the first one that is known; "" if none is."""
        names = {_name(scope, one): (upstream, one, scope) for one in ids for upstream, scope in scopes.items()}
        for name, (upstream, one, scope) in names.items():
            if name in self._newest:
                self.add([one], scope)
                return upstream
        found = await self._store.get_many(KIND, list(names))
        for name, (upstream, one, scope) in names.items():
            if values.unpack(found.get(name), VERSION) is not None:
                self.add([one], scope)
                return upstream
        return ""

    def add(self, ids: Iterable[str], scope: str) -> list[asyncio.Task[None]]:
        """Remember ids that an upstream has made for a caller; return the writes that make them known to other processes."""
        writes, now = [], self._clock()
        for name in [_name(scope, one) for one in ids]:
            written = self._newest.get(name)
            if written is None or now - written >= WRITTEN_AGAIN_S:
                written = now
                write = self._store.put(KIND, name, _VALUE, ttl_s=KEPT_S, scope=scope)
                writes.append(self._tasks.start(write, "id", must_finish=True))
            keep_newest(self._newest, name, written, MOST)
        return [write for write in writes if write is not None]

    def forget(self) -> None:
        """Drop everything in memory; ids stored after the deletion are found in the store."""
        self._newest.clear()


def _name(scope: str, one: str) -> str:
    """Return the name of an id. Ids come from clients and upstreams, so they may hold any character."""
    return blake2b(f"{scope}\n{one}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
