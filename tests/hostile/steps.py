"""Counts the steps that a backtracking matcher takes, as Python's `re` is one but does not tell.

The matcher follows `re`'s own parse tree without any of its shortcuts, so that it takes at least as many steps. A step is one look at a
character, or one more way to go on that is tried.
"""

import re
from collections.abc import Callable
from re import _compiler, _constants, _parser  # the only place where Python shows how it reads a pattern
from typing import Any

Go = Callable[[int], int | None]
UNBOUNDED = int(_constants.MAXREPEAT)
MARKS = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN}


class TooManySteps(Exception):
    """The matcher has taken more steps than it was allowed."""


class Matcher:
    """One pattern, and the steps it has taken so far."""

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.tree = _parser.parse(pattern, flags)
        self.flags = flags | self.tree.state.flags
        self.steps = 0
        self._most = 0
        self._text: str | bytes = ""
        self._atoms: dict[int, re.Pattern[Any]] = {}

    def count(self, text: str | bytes, most: int, *, anchored: bool = False) -> int:
        """Find all matches, or try at the beginning only, and return the steps it took. Raises TooManySteps."""
        self.steps, self._most, self._text = 0, most, text
        start = 0
        while start <= len(text):
            end = self._run(list(self.tree), 0, start, lambda position: position)
            if anchored:
                break
            start = start + 1 if end is None else max(end, start + 1)
        return self.steps

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._most:
            raise TooManySteps

    def _fits(self, node: Any, position: int) -> int | None:
        """Where the one character or the place that a node stands for ends."""
        self._step()
        atom = self._atoms.get(id(node))
        if atom is None:
            single = _parser.SubPattern(self.tree.state, [node])
            atom = self._atoms[id(node)] = _compiler.compile(single, self.flags)
        found = atom.match(self._text, position)
        return found.end() if found else None

    def _run(self, nodes: list[Any], index: int, position: int, go: Go) -> int | None:
        """Match the nodes from ``index`` on, then go on with what follows."""
        if index == len(nodes):
            self._step()
            return go(position)
        node = nodes[index]
        kind, value = node
        after: Go = lambda at: self._run(nodes, index + 1, at, go)  # noqa: E731
        if kind in MARKS or kind in (_constants.AT, _constants.GROUPREF):
            end = self._fits(node, position) if kind is not _constants.GROUPREF else position
            return None if end is None else after(end)
        if kind is _constants.SUBPATTERN:
            return self._run(list(value[3]), 0, position, after)
        if kind is _constants.BRANCH:
            for way in value[1]:
                if (end := self._run(list(way), 0, position, after)) is not None:
                    return end
            return None
        if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            if value[0] < 0:  # what a look behind covers has a fixed length
                end = self._fits(node, position)
                return None if end is None else after(position)
            found = self._run(list(value[1]), 0, position, lambda at: at) is not None
            return after(position) if found == (kind is _constants.ASSERT) else None
        if kind is _constants.ATOMIC_GROUP:
            end = self._run(list(value), 0, position, lambda at: at)
            return None if end is None else after(end)
        least, most, inner = value
        if kind is _constants.POSSESSIVE_REPEAT:
            ends = self._ends(list(inner), position, most)
            return after(ends[-1]) if len(ends) > least else None
        if len(inner) == 1 and inner[0][0] in MARKS:
            return self._repeat_one(inner[0], least, most, position, after, greedy=kind is _constants.MAX_REPEAT)
        return self._repeat(list(inner), least, most, position, after, greedy=kind is _constants.MAX_REPEAT)

    def _repeat_one(self, node: Any, least: int, most: int, position: int, after: Go, *, greedy: bool) -> int | None:
        ends = [position]
        if greedy:
            while len(ends) <= most and (end := self._fits(node, ends[-1])) is not None:
                ends.append(end)
            for end in reversed(ends[least:]):
                if (found := after(end)) is not None:
                    return found
            return None
        while True:
            if len(ends) > least and (found := after(ends[-1])) is not None:
                return found
            if len(ends) > most or (end := self._fits(node, ends[-1])) is None:
                return None
            ends.append(end)

    def _repeat(self, inner: list[Any], least: int, most: int, position: int, after: Go, *, greedy: bool) -> int | None:
        def again(count: int, at: int, before: int) -> int | None:
            self._step()
            if count >= least and (at == before and count):
                return after(at)
            more = count < most
            if not greedy and count >= least and (found := after(at)) is not None:
                return found
            if more and (found := self._run(inner, 0, at, lambda end: again(count + 1, end, at))) is not None:
                return found
            return after(at) if greedy and count >= least else None

        return again(0, position, -1)

    def _ends(self, inner: list[Any], position: int, most: int) -> list[int]:
        ends = [position]
        while len(ends) <= most:
            end = self._run(inner, 0, ends[-1], lambda at: at)
            if end is None or end == ends[-1]:
                break
            ends.append(end)
        return ends
