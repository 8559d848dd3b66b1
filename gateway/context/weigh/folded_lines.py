"""The lines of a folded part: the members of `LinePool` that the other files of this folder use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from gateway.context.read.line import SENTENCE, Line, MessageLines
from gateway.context.weigh.tally import Tally


class FoldedLines(Protocol):
    """A `gateway.context.weigh.line_pool.LinePool`, as far as the files that it imports need it: they cannot import it themselves."""

    readings: dict[int, MessageLines]
    lines: tuple[Line, ...]
    message_of: list[int]
    positions: dict[int, range]
    tally: Tally
    first_user_message: int

    @property
    def message_order(self) -> Sequence[int]: ...
    @property
    def rank(self) -> Mapping[int, int]: ...
    @property
    def has_many_calls(self) -> bool: ...
    @property
    def autonomous(self) -> bool: ...
    @property
    def rarity(self) -> Mapping[str, float]: ...
    @property
    def use_factors(self) -> Mapping[str, float]: ...
    @property
    def envelope(self) -> frozenset[int]: ...
    @property
    def outdated(self) -> frozenset[int]: ...


def user_messages_of(pool: FoldedLines) -> list[MessageLines]:
    """Return the messages of the user."""
    return [reading for reading in pool.readings.values() if reading.role == "user"]


def sentences_of(pool: FoldedLines, reading: MessageLines) -> Iterator[tuple[int, Line]]:
    """Yield the sentences of a message, each with its position; none of a message with so many lines that their share is below 1, because that is
    mostly pasted (`line.FULL_SHARE_LINES`)."""
    for position, line in zip(pool.positions[reading.message], reading.lines, strict=True):
        if line.kind is SENTENCE and line.share == 1.0:
            yield position, line


def reply_to(pool: FoldedLines, message: int) -> MessageLines | None:
    """Return the assistant's message right after a message; None if the next message is another speaker's, or if there is no next one."""
    rank = pool.rank[message] + 1
    after = pool.readings[pool.message_order[rank]] if rank < len(pool.message_order) else None
    return after if after is not None and after.role == "assistant" else None
