"""The elements of a text: what stands between ``<name>`` and ``</name>``, as programs and prompts write it. A text need not be valid XML."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

_TAG: Final = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w.-]{0,60})(?P<rest>[= ][^<>\n]{0,200})?>")


class Element(NamedTuple):
    """An element: its name, what its opening tag says behind the name, and where it and its content begin and end."""

    name: str
    rest: str
    start: int
    inner_start: int
    inner_end: int
    end: int

    def inner(self, text: str) -> str:
        """Return its content."""
        return text[self.inner_start : self.inner_end]


def elements_of(text: str) -> Iterator[Element]:
    """Yield the outermost elements of a text, in order. A tag that is never closed begins no element."""
    if "</" not in text:
        return
    tags = list(_TAG.finditer(text))
    ends: dict[str, list[int]] = {}
    for number, tag in enumerate(tags):
        if tag["end"]:
            ends.setdefault(tag["name"], []).append(number)
    number = 0
    while number < len(tags):
        tag = tags[number]
        closing = ends.get(tag["name"], []) if not tag["end"] else []
        at = bisect_left(closing, number)
        if at == len(closing):
            number += 1
            continue
        last = tags[closing[at]]
        yield Element(tag["name"], tag["rest"] or "", tag.start(), tag.end(), last.start(), last.end())
        number = closing[at] + 1
