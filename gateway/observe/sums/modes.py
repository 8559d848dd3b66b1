"""The sums of each mode: the tokens that folding saves, and the refused requests."""

import msgspec

from gateway.observe.shape import RecordJson
from gateway.observe.sums.record import refused


class ModeSums(msgspec.Struct):
    """The sums of all requests of one mode. Numbers are tokens if nothing else is stated."""

    requests: int = 0
    refused: int = 0
    """Requests that the upstream refused as too long at least once."""
    failed: int = 0
    """Requests that the client saw refused as too long."""
    folded: int = 0
    """Requests that were folded, or would have been."""
    before: int = 0
    after: int = 0
    uncounted: int = 0
    """Billed prompt tokens of requests that were not counted because they surely fit."""

    @property
    def saved_share(self) -> float:
        """The share of all prompt tokens that folding saves."""
        whole = self.before + self.uncounted
        return (self.before - self.after) / whole if whole else 0.0

    def add(self, record: RecordJson) -> None:
        """Add one record."""
        self.requests += 1
        self.refused += bool(record["refusals"])
        self.failed += refused(record)
        before, after = record["tokens_before"], record["tokens_after"]
        if before is None or after is None:
            self.uncounted += record["prompt_tokens"] or 0
            return
        self.before += before
        self.after += min(after, before)
        self.folded += after < before
