"""Conversations that the model did not get in full."""

from typing import Any

import msgspec

from gateway.observe.shape import RecordJson
from gateway.observe.sums import bounds


class Loser(msgspec.Struct):
    """A conversation that the model did not get in full, with the largest loss in one of its requests."""

    model: str
    key: str
    session: str
    last: str
    requests: int = 0
    observed: bool = True
    """Whether all of these requests were in mode observe, so that nothing was really lost."""
    lost: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def weight(self) -> tuple[int, int, int]:
        """Order conversations: a cut question is worst, then lines, then turns."""
        return self.lost.get("question_characters", 0), self.lost.get("lines", 0), self.lost.get("turns", 0)

    def add(self, record: RecordJson) -> None:
        """Add one record."""
        self.requests += 1
        self.observed = self.observed and record["mode"] == "observe"
        self.lost = {name: max(count, self.lost.get(name, 0)) for name, count in record["lost"].items()}


class Losers:
    """The conversations that lost most."""

    def __init__(self) -> None:
        self._known: dict[str, Loser] = {}

    def add(self, record: RecordJson) -> None:
        """Add a record of a conversation that lost something."""
        name = record["conversation"]
        if name not in self._known:
            if len(self._known) >= bounds.MOST_CONVERSATIONS:
                del self._known[min(self._known, key=lambda each: self._known[each].weight)]
            self._known[name] = Loser(record["model"], record["key"], record["session"], record["time"])
        self._known[name].add(record)

    def worst(self, most: int) -> list[tuple[str, Loser]]:
        """Return the worst conversations, the worst first."""
        return sorted(self._known.items(), key=lambda pair: pair[1].weight, reverse=True)[:most]

    def as_json(self, most: int) -> list[dict[str, Any]]:
        """Return the worst conversations as JSON."""
        return [
            {
                "conversation": name, "session": one.session, "model": one.model, "key": one.key, "last": one.last,
                "requests": one.requests, "observed": one.observed, "lost": one.lost,
            }
            for name, one in self.worst(most)
        ]  # fmt: skip
