"""The pool of lines of a folded part, made from the readings of its messages."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from gateway.context.cut.source import Source
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weigh.tally import Tally
from gateway.context.write.readings import (
    FULLY_READ_CHARACTERS,
    USER_READ_CHARACTERS,
    reading_of,
    readings_of_notes,
    skimmed_messages,
)
from gateway.wire.facts import Interned

POOL_KEY_BYTES: Final = 200
"""Bytes of the entry that names a conversation's newest pool; the named key itself is counted with the pool."""
POOL_LINE_BYTES: Final = 150
"""Bytes that a pool takes for each of its lines besides the line: its tables by position."""
POOL_WORD_BYTES: Final = 50
"""Bytes that a pool takes for each word of a line: its place in the facts of its message, and in the pool's tables."""


def pool_of(source: Source, folded: Sequence[int], read_in_full: frozenset[int] = frozenset()) -> LinePool:
    """Return the lines of the folded messages, each tool result with its call. Those in ``read_in_full`` are never
    skimmed."""
    messages = source.messages
    first_question = next((index for index, message in enumerate(messages) if message.get("role") == "user"), -1)
    callers = source.structure.callers
    folded_messages = [messages[index] for index in folded]
    callers_of_results = [messages[callers[index]] for index in folded if index in callers]
    # A message that was seen before is the same object. The entry keeps these objects alive, so no other gets their ids.
    ids = tuple(map(id, folded_messages)), tuple(map(id, callers_of_results))
    key = ("pool", *ids, tuple(folded), first_question, source.earlier_notes, read_in_full)
    cached: tuple[object, LinePool] | None = source.memory.get(key)
    if cached is not None:
        return cached[1]
    notes = readings_of_notes(source.earlier_notes, source.memory)
    pool = LinePool([*notes, *_readings(source, folded, read_in_full)], first_question, _newest_tally(source))
    _, entry = source.memory.put(key, ((folded_messages, callers_of_results), pool), bytes_of(pool))
    pool.add_bytes = entry.grow
    if (name := _newest_pool_name(source)) is not None:
        source.memory.put(name, key, POOL_KEY_BYTES)
    return pool


def _readings(source: Source, folded: Sequence[int], read_in_full: frozenset[int]) -> Iterator[MessageLines]:
    """Yield the folded messages with their lines: old ones are skimmed, very old ones even if they are the user's."""
    skimmed = skimmed_messages(source.messages, folded, FULLY_READ_CHARACTERS)
    skimmed_even_of_user = skimmed_messages(source.messages, folded, USER_READ_CHARACTERS)
    for number, index in enumerate(folded):
        if number >= skimmed or index in read_in_full:
            read = lines.read
        else:
            read = lines.skim_unless_user if number >= skimmed_even_of_user else lines.skim
        yield reading_of(source, index, read)


def _newest_tally(source: Source) -> Tally | None:
    """Return the tally of this conversation's newest pool; None when it is not remembered."""
    name = _newest_pool_name(source)
    key = source.memory.get(name) if name is not None else None
    cached: tuple[object, LinePool] | None = source.memory.get(key) if key is not None else None
    return cached[1].tally if cached is not None else None


def _newest_pool_name(source: Source) -> Hashable | None:
    """Return the name under which the key of this conversation's newest pool is remembered; None when its messages are
    not remembered."""
    opening = next((message for message in source.messages if message.get("role") == "user"), None)
    return ("newest pool", opening.number) if type(opening) is Interned and opening.number else None


def bytes_of(pool: LinePool) -> int:
    """Return about how many bytes a pool will take once lines were chosen from it."""
    return POOL_LINE_BYTES * len(pool.lines) + POOL_WORD_BYTES * sum([len(line.words) for line in pool.lines])
