"""The lines that say what a long result is: the header of a mail, the title of a page. A passage of it is quoted with them."""

import re
from collections import Counter
from itertools import takewhile
from math import sqrt
from typing import Final

from gateway.context.read.line import RECORD
from gateway.context.weigh.line_pool import LinePool

HEADER_TOKENS: Final = 80
"""The most tokens of a header."""
SEARCHED_LINES: Final = 12
"""Lines at the beginning of a result among which its header or title is. Menus and notices are around a title."""
TITLE_TOKENS: Final = 40
"""The most tokens of a title."""
MOST_REPEATS: Final = 3
"""In how many other lines of the page a word of a title counts."""
OTHER_RARITY: Final = 0.5
"""Rarity of a number or an identifier in a title."""

_HEADER_ROW: Final = re.compile(r"[\w-]{2,20}: \S")


def title_lines(pool: LinePool, message: int) -> list[int]:
    """Return the positions of the header or the title of a result that has several passages. The list is empty for records, and for what
    people say."""
    positions = pool.positions[message]
    if not pool.readings[message].tool or pool.lines[positions.start].kind is RECORD or len(pool.passages(message)) < 2:
        return []
    header = list(takewhile(lambda at: _HEADER_ROW.match(pool.lines[at].text), positions[:SEARCHED_LINES]))
    if len(header) < 2:
        return _title(pool, positions)
    while sum([pool.lines[at].size for at in header]) > HEADER_TOKENS:
        header.pop()
    return header


def _title(pool: LinePool, positions: range) -> list[int]:
    """Return the position of the title of a page, if it has one: for its size, no other line at the beginning has so many words that
    the rest of the page repeats and other messages seldom have."""
    lines_with = Counter(key for at in positions for key in {word.key for word in pool.lines[at].words})
    best, most = -1, 0.0
    for at in positions[:SEARCHED_LINES]:
        line = pool.lines[at]
        if line.size > TITLE_TOKENS:
            continue
        repeats = {word.key: min(lines_with[word.key] - 1, MOST_REPEATS) for word in line.words}
        points = sum([pool.rarity.get(key, OTHER_RARITY) * repeats[key] for key in repeats]) / sqrt(line.size)
        if points > most:
            best, most = at, points
    return [best] if best >= 0 else []
