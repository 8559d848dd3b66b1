"""The lines of a folded part, put together from the readings of its messages."""

from collections.abc import Hashable, Sequence
from typing import Final

from gateway.context.choose import lines
from gateway.context.choose.tally import Tally
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Source
from gateway.context.write.readings import READ, SPOKEN_READ, earlier_of, first_read, reading_of
from gateway.wire.facts import Interned


def pool_of(source: Source, folded: Sequence[int], whole: frozenset[int] = frozenset()) -> LinePool:
    """Return the lines of the folded messages, each result with the name of its tool; ``whole`` ones are never skimmed."""
    messages = source.messages
    first = next((index for index, message in enumerate(messages) if message.get("role") == "user"), -1)
    callers = source.conversation.callers
    folded_messages = [messages[index] for index in folded]
    asked = [messages[callers[index]] for index in folded if index in callers]
    # A message seen before is the same object, and the pool keeps those it was made of, so that no other takes their place.
    key = (
        "pool",
        tuple(map(id, folded_messages)),
        tuple(map(id, asked)),
        tuple(folded),
        first,
        source.earlier_notes,
        whole,
    )
    found: tuple[object, LinePool] | None = source.memory.recall(key)
    if found is not None:
        return found[1]
    readings = list(earlier_of(source.earlier_notes, source.memory))
    newer, spoken = first_read(messages, folded, READ), first_read(messages, folded, SPOKEN_READ)
    for number, index in enumerate(folded):
        least = lines.skim if number >= spoken else lines.glance
        readings.append(reading_of(source, index, lines.read if number >= newer or index in whole else least))
    pool = LinePool(readings, first, _earlier(source))
    _, entry = source.memory.keep(key, ((folded_messages, asked), pool), bytes_of(pool))
    pool.grown = entry.grow
    if (name := _newest(source)) is not None:
        source.memory.keep(name, key, NEWEST_BYTES)
    return pool


def _earlier(source: Source) -> Tally | None:
    """Return what was counted for the pool that was made last of this conversation, while that is remembered."""
    name = _newest(source)
    key = source.memory.recall(name) if name is not None else None
    found: tuple[object, LinePool] | None = source.memory.recall(key) if key is not None else None
    return found[1].tally if found is not None else None


def _newest(source: Source) -> Hashable | None:
    """Return where the key of a conversation's newest pool is remembered; None for one whose messages are not."""
    opening = next((message for message in source.messages if message.get("role") == "user"), None)
    return ("newest pool", opening.number) if type(opening) is Interned and opening.number else None


NEWEST_BYTES: Final = 200
"""Bytes of the name of a pool's key; the key itself is the pool's."""


POOL_LINE_BYTES: Final = 150
"""Bytes that a pool takes for each of its lines, beside the line: what is known of it by position."""
POOL_WORD_BYTES: Final = 50
"""Bytes that a pool takes for each word in a line: its place in the facts of its message, and the share of its own tables."""


def bytes_of(pool: LinePool) -> int:
    """Return about how many bytes a pool will take once it was chosen from."""
    return POOL_LINE_BYTES * len(pool.lines) + POOL_WORD_BYTES * sum([len(line.words) for line in pool.lines])
