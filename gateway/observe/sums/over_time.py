"""Requests over time, in pieces that grow with the time they span."""

from math import floor
from typing import Any, Final

from gateway.observe.shape import RecordJson
from gateway.observe.sums.record import failed, folded

STEPS_S: Final = (1, 5, 15, 60, 300, 900, 3600, 10_800, 43_200, 86_400, 604_800, 2_419_200)
"""Seconds of one piece of time; each divides the next, so that pieces can be joined."""
MOST_PIECES: Final = 60
"""Pieces of time with counts of their own. Chosen: what a chart can show."""
COUNTED: Final = ("all", "folded", "failed")
"""The numbers that are counted for each piece."""


class OverTime:
    """Counts of requests by time."""

    def __init__(self) -> None:
        self.oldest: float | None = None
        self._pieces: dict[int, list[int]] = {}
        self._step = 0

    def add(self, record: RecordJson) -> None:
        """Add one record."""
        if not record["at"]:
            return
        self.oldest = record["at"] if self.oldest is None else min(self.oldest, record["at"])
        self._add_piece(floor(record["at"] / STEPS_S[self._step]), [1, int(folded(record)), int(failed(record))])
        while max(self._pieces) - min(self._pieces) >= MOST_PIECES and self._step < len(STEPS_S) - 1:
            self._join()

    def _join(self) -> None:
        """Join the pieces to those of the next longer step."""
        joined = STEPS_S[self._step + 1] // STEPS_S[self._step]
        finer, self._pieces = self._pieces, {}
        self._step += 1
        for piece, counts in finer.items():
            self._add_piece(piece // joined, counts)

    def _add_piece(self, piece: int, counts: list[int]) -> None:
        known = self._pieces.get(piece, [0] * len(COUNTED))
        self._pieces[piece] = [one + other for one, other in zip(known, counts, strict=True)]

    def as_json(self) -> dict[str, Any] | None:
        """Return it as JSON: the step in seconds, and a row of numbers for the times and for each count."""
        if not self._pieces:
            return None
        step = STEPS_S[self._step]
        pieces = range(min(self._pieces), max(self._pieces) + 1)
        rows = [self._pieces.get(piece, [0] * len(COUNTED)) for piece in pieces]
        return {"step": step, "times": [piece * step for piece in pieces]} | {
            name: [row[column] for row in rows] for column, name in enumerate(COUNTED)
        }
