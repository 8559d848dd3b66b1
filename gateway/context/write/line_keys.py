"""The keys of lines: names of lines that are the same in every pool. The position of a line is not, because pools have different messages."""

from collections import Counter
from collections.abc import Iterable, Iterator

from gateway.context.read.line import Line
from gateway.context.weigh.line_pool import LinePool

LineKey = tuple[int, str, int]
"""The index of the line's message, the line's text, and how many lines before it in the message have the same text."""


def line_keys(pool: LinePool, positions: Iterable[int]) -> frozenset[LineKey]:
    """Return the keys of the lines at these positions of a pool."""
    wanted = frozenset(positions)
    messages = {pool.message_of[position] for position in wanted}
    return frozenset([key for position, key in _keyed_positions(pool, messages) if position in wanted])


def positions_of(pool: LinePool, wanted: Iterable[LineKey]) -> frozenset[int]:
    """Return the positions in a pool of the lines with these keys. Lines that the pool does not have are left out."""
    keys = frozenset(wanted)
    messages = {message for message, _, _ in keys}
    return frozenset([position for position, key in _keyed_positions(pool, messages) if key in keys])


def _keyed_positions(pool: LinePool, messages: Iterable[int]) -> Iterator[tuple[int, LineKey]]:
    """Yield the positions of messages' lines in a pool, each with the key of its line."""
    for message in messages:
        if reading := pool.readings.get(message):
            yield from zip(pool.positions[message], keys_of(message, reading.lines), strict=True)


def keys_of(message: int, of_message: Iterable[Line]) -> list[LineKey]:
    """Return the keys of a message's lines."""
    keys: list[LineKey] = []
    seen: Counter[str] = Counter()
    for line in of_message:
        keys.append((message, line.text, seen[line.text]))
        seen[line.text] += 1
    return keys
