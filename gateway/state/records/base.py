"""The protocol of a log of records: each record as JSON, with its time and the fields by which it is found."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from gateway.observe.shape import RecordJson

MOST_FOUND: Final = 10_000
"""Records that one question returns at most. Chosen: 15 MB of JSON."""


class StoredRecord(NamedTuple):
    """One stored record."""

    id: str
    at: float
    key: str
    model: str
    session: str
    conversation: str
    caller: str
    value: bytes
    """The JSON form, sealed."""


class Query(msgspec.Struct, frozen=True):
    """A question for records; an empty field matches every record. ``until`` is excluded."""

    key: str = ""
    model: str = ""
    """As the client names it."""
    session: str = ""
    conversation: str = ""
    since: float = 0.0
    until: float = float("inf")
    limit: int = 100

    def matches(self, record: RecordJson) -> bool:
        """Return whether a record matches."""
        return self.since <= record["at"] < self.until and all(
            not wanted or record.get(name) == wanted
            for name, wanted in (
                ("key", self.key), ("model", self.model), ("session", self.session), ("conversation", self.conversation),
            )
        )  # fmt: skip

    def of(self, records: Iterable[RecordJson]) -> list[RecordJson]:
        """Return the records that match, newest first, each once."""
        found = {record["request_id"]: record for record in records if self.matches(record)}
        return sorted(found.values(), key=lambda record: -record["at"])[: self.limit]


class Bounds(msgspec.Struct, frozen=True):
    """How many records are kept, and for how long."""

    keep_s: float = 7 * 86400.0
    most: int = 200_000
    """Records."""
    max_bytes: int = 256 * 2**20


class RecordLog(Protocol):
    """Rows in a store. Every method may raise what its library raises; `gateway.state.records.keeper` handles it."""

    bounds: Bounds

    async def append(self, rows: Sequence[StoredRecord]) -> None: ...

    async def find(self, query: Query) -> list[tuple[str, bytes]]:
        """Return (id, value), newest first."""
        ...

    async def get(self, request_id: str) -> bytes | None: ...

    async def put_text(self, request_id: str, value: bytes) -> None:
        """Keep the text of a request as long as its record."""
        ...

    async def text(self, request_id: str) -> bytes | None: ...

    async def forget(self, caller: str | None) -> int:
        """Delete the records of one caller, or all."""
        ...

    async def close(self) -> None: ...
