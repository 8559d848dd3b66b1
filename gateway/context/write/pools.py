"""The pool of lines of a folded part, made from the readings of its messages."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gateway.context.cut.source import Source
from gateway.context.read import lines
from gateway.context.read.line import Line
from gateway.context.weigh.line_pool import LinePool
from gateway.context.write.readings import (
    FULLY_READ_CHARACTERS,
    USER_READ_CHARACTERS,
    ShownCalls,
    number_skimmed,
    reading_of,
    readings_of_notes,
)
from gateway.wire.derived import Interned
from gateway.wire.memory import Memory
from gateway.wire.message import Message

POOL_KEY_BYTES: Final = 200
"""Bytes of the entry that names a conversation's newest pool; the named key itself is counted with the pool."""
POOL_LINE_BYTES: Final = 150
"""Bytes that a pool takes for each of its lines besides the line: its tables by position."""
POOL_MESSAGE_BYTES: Final = 150
"""Bytes that a remembered pool takes for each of its messages: its origin, and its entry in the table of origins (``sys.getsizeof``, CPython
3.11)."""
POOL_WORD_BYTES: Final = 50
"""Bytes that a pool takes for each word of a line: its entry in the facts of its message, and in the pool's tables."""

ReadMessage = Callable[[Message, Memory], tuple[Line, ...]]
"""Reads a message in full, or skims it."""
_Origin = tuple[Message, Message | None, ReadMessage]
"""A message, the message with its call, and the function that read it. The same origin gives the same lines."""


class _CachedPool(NamedTuple):
    """A pool in the memory, with what it was made of."""

    pool: LinePool
    origins: Mapping[int, _Origin]
    """The origin of each message, by its index. It keeps the messages alive, so that no others get their ids."""


def pool_of(source: Source, folded: Sequence[int], read_in_full: frozenset[int] = frozenset()) -> LinePool:
    """Return the lines of the folded messages, each tool result with its call. Those in ``read_in_full`` are never
    skimmed."""
    messages = source.messages
    first_question = next((index for index, message in enumerate(messages) if message.get("role") == "user"), -1)
    callers = source.structure.callers
    folded_messages = [messages[index] for index in folded]
    callers_of_results = [messages[callers[index]] for index in folded if index in callers]
    # A message that was seen before is the same object.
    ids = tuple(map(id, folded_messages)), tuple(map(id, callers_of_results))
    key = ("pool", *ids, tuple(folded), first_question, source.earlier_notes, read_in_full)
    cached: _CachedPool | None = source.memory.get(key)
    if cached is not None:
        return cached.pool
    earlier = _newest_pool(source)
    origins: dict[int, _Origin] = {}
    readings = list(readings_of_notes(source.earlier_notes, source.memory))
    shown: ShownCalls = {}
    for index, read in zip(folded, _ways_to_read(source, folded, read_in_full), strict=True):
        origin = origins[index] = messages[index], messages[callers[index]] if index in callers else None, read
        known = earlier.pool.readings.get(index) if earlier and earlier.origins.get(index) == origin else None
        readings.append(known or reading_of(source, index, read, shown))
    pool = LinePool(readings, first_question, earlier.pool.tally if earlier is not None else None)
    _, entry = source.memory.put(key, _CachedPool(pool, origins), bytes_of(pool) + POOL_MESSAGE_BYTES * len(origins))
    pool.choices.add_bytes = entry.grow
    if (name := _newest_pool_name(source)) is not None:
        source.memory.put(name, key, POOL_KEY_BYTES)
    return pool


def _ways_to_read(source: Source, folded: Sequence[int], read_in_full: frozenset[int]) -> Iterator[ReadMessage]:
    """Yield how each folded message is read: old ones are skimmed, very old ones even if they are the user's."""
    skimmed = number_skimmed(source.messages, folded, FULLY_READ_CHARACTERS)
    skimmed_even_of_user = number_skimmed(source.messages, folded, USER_READ_CHARACTERS)
    for number, index in enumerate(folded):
        if number >= skimmed or index in read_in_full:
            yield lines.read
        else:
            yield lines.skim_unless_user if number >= skimmed_even_of_user else lines.skim


def _newest_pool(source: Source) -> _CachedPool | None:
    """Return this conversation's newest pool; None when it is not remembered."""
    name = _newest_pool_name(source)
    key = source.memory.get(name) if name is not None else None
    return source.memory.get(key) if key is not None else None


def _newest_pool_name(source: Source) -> Hashable | None:
    """Return the name under which the key of this conversation's newest pool is remembered; None when its messages are
    not remembered."""
    opening = next((message for message in source.messages if message.get("role") == "user"), None)
    return ("newest pool", opening.number) if type(opening) is Interned and opening.number else None


def bytes_of(pool: LinePool) -> int:
    """Return about how many bytes a pool will take once lines were chosen from it."""
    return POOL_LINE_BYTES * len(pool.lines) + POOL_WORD_BYTES * sum([len(line.words) for line in pool.lines])
