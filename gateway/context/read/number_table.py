"""A table of whole numbers by text. It has tens of thousands of words, and few of them are looked up.

It keeps the bytes of the file as they are, and beside them the positions of the rows. So it takes a quarter of the memory of a dict. A look-up
takes ten times as long.
"""

import re
from array import array
from typing import Final
from zlib import crc32

_TEXT: Final = re.compile(rb"^[^\t\n]++(?=\t)", re.M)
"""The text of a row."""


class NumberTable:
    """Numbers by text. Each row of ``rows`` has a text, a tab, and the number."""

    __slots__ = ("_mask", "_places", "_rows")

    def __init__(self, rows: bytes) -> None:
        self._rows = rows
        self._mask = 2 ** (2 * rows.count(b"\n")).bit_length() - 1
        """The largest index of `_places`: a power of two, less one."""
        self._places = array("I", bytes(4 * (self._mask + 1)))
        """A hash table: the end of each text in ``rows``, at the index that its checksum says. If that is taken, at the next free index. 0: free."""
        for row_text in _TEXT.finditer(rows):
            index = crc32(row_text[0]) & self._mask
            while self._places[index]:
                index = (index + 1) & self._mask
            self._places[index] = row_text.end()

    def get(self, text: str) -> int:
        """Return the number of a text; 0 for a text without one."""
        sought = text.encode("utf-8", "surrogatepass")
        index = crc32(sought) & self._mask
        while end := self._places[index]:
            start = end - len(sought)
            # The whole text of the row must be equal, so there is a line break before it, or nothing.
            if self._rows[max(start - 1, 0) : end].removeprefix(b"\n") == sought:
                return int(self._rows[end : self._rows.index(b"\n", end)])
            index = (index + 1) & self._mask
        return 0
