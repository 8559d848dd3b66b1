"""The lines of a folded part, as the searches in them see them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway.context.read.line import Line, MessageLines
from gateway.context.weigh.tally import Tally


class FoldedLines(Protocol):
    """The lines of a folded part: see `gateway.context.weigh.line_pool.LinePool`."""

    readings: dict[int, MessageLines]
    lines: tuple[Line, ...]
    message_of: list[int]
    positions: dict[int, range]
    tally: Tally

    @property
    def order(self) -> Sequence[int]: ...
    @property
    def rank(self) -> Mapping[int, int]: ...
    @property
    def has_many_calls(self) -> bool: ...
    @property
    def rarity(self) -> Mapping[str, float]: ...
    @property
    def outdated(self) -> frozenset[int]: ...
