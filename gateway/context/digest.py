"""The digest: the lines of the folded part that are worth their tokens, chosen by new facts per token."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gateway.context.lines import Sort
from gateway.context.worth import Entry, Pool

GAP: Final = 3
"""About how many tokens it takes to open the line of one more message."""
FULL: Final = 0.97
BOUND: Final = 0.3
"""Share of a digest that is kept for what the user said that is to hold."""

SOME: Final = 0.5
"""What any line that bears on a question is worth, even where its facts are known."""

Count = Callable[[str], int]


def choose(
    pool: Pool,
    tokens: int,
    count: Count,
    *,
    known: frozenset[str] = frozenset(),
    relevance: Mapping[int, float] | None = None,
) -> list[int]:
    """Choose the lines worth the most new facts per token; answers their positions in order.

    ``known`` facts stand elsewhere in the request. With ``relevance`` only the lines it names are looked at, and their
    worth is multiplied by how much they bear on a question.
    """
    greedy = _Greedy(pool, known, relevance)
    if relevance is None:
        greedy.take(pool.bound, tokens * BOUND * min(0.5 + tokens / 800, 1.0))
    fill = float(tokens)
    chosen: list[int] = []
    for _ in range(4):
        before = len(chosen)
        greedy.grow(fill)
        chosen = list(greedy.chosen)
        if len(chosen) == before:
            break
        spent = count(render(pool.entries, sorted(chosen)))
        if spent > tokens * FULL:
            break
        fill = greedy.used + (tokens - spent) * max(greedy.used / max(spent, 1), 0.5)
    while chosen and (spent := count(render(pool.entries, sorted(chosen)))) > tokens:
        del chosen[min(int(len(chosen) * tokens / spent), len(chosen) - 1) :]
    return sorted(chosen)


class _Greedy:
    """Lazy greedy choice: what is best now is taken, what it makes known counts no more for the others."""

    def __init__(self, pool: Pool, known: frozenset[str], relevance: Mapping[int, float] | None) -> None:
        self.entries = pool.entries
        self.pool = pool
        self.relevance = relevance
        self.have: set[str] = set(known)
        self.open: set[tuple[int, int]] = set()
        self.messages: set[int] = set()
        self.chosen: list[int] = []
        self.taken: set[int] = set()
        self.used = 0.0
        # What a line is worth alone is a bound of what it is worth beside others: it is looked at again when its turn comes.
        most, entries = pool.most, pool.entries
        if relevance is None:
            self.heap = [(-worth, position) for position, worth in enumerate(most) if position not in pool.gone]
        else:
            self.heap = [
                (-(most[position] + SOME / entries[position].line.size) * bearing, position)
                for position, bearing in relevance.items()
                if position not in pool.replaced
            ]
        heapq.heapify(self.heap)

    def grow(self, tokens: float) -> None:
        """Choose until about so many tokens are taken."""
        heap = self.heap
        skipped: list[tuple[float, int]] = []
        while heap and self.used < tokens:
            before, position = heapq.heappop(heap)
            if position in self.taken:
                continue
            now = -self._gain(position)
            if now > -1e-9:
                continue
            if heap and now > heap[0][0] and now > before:
                heapq.heappush(heap, (now, position))
                continue
            cost = self._cost(position)
            if self.used + cost > tokens:
                skipped.append((now, position))
                if len(skipped) > 24:
                    break
                continue
            self._take(position, cost)
        for item in skipped:
            heapq.heappush(heap, item)

    def take(self, positions: Sequence[int], tokens: float) -> None:
        """Take lines in the order given, as many as fit into so many tokens."""
        for position in positions:
            cost = self._cost(position)
            if self.used + cost <= tokens and not self.have.issuperset(
                [word.key for word in self.entries[position].line.words]
            ):
                self._take(position, cost)

    def _take(self, position: int, cost: float) -> None:
        entry = self.entries[position]
        self.used += cost
        self.chosen.append(position)
        self.taken.add(position)
        self.have.update([word.key for word in entry.line.words])
        self.messages.add(entry.message)
        self.open.add((entry.message, entry.line.group))

    def _gain(self, position: int) -> float:
        gain = self.pool.worth(position, self.have)
        if self.relevance is not None:
            gain = (gain + SOME) * self.relevance[position]
        return gain / self._cost(position)

    def _cost(self, position: int) -> float:
        entry = self.entries[position]
        line = entry.line
        if (entry.message, line.group) in self.open:
            return line.size
        if entry.message not in self.messages:
            return line.size + 1 + GAP + len(entry.tool) / 4
        return line.size + (2 if line.label else 1)


SPEAKERS: Final = {"user": "user: ", "assistant": "assistant: "}


def render(entries: Sequence[Entry], positions: Sequence[int]) -> str:
    """Write chosen lines in the order of the conversation, one line a message."""
    written: list[str] = []
    index = group = -1
    label = ""
    called = ""
    for position in positions:
        entry = entries[position]
        line = entry.line
        if entry.message != index:
            written.append(f"\n{_opener(entry, called)}{line.text}")
        elif line.group == group:
            written.append(f" {line.text}")
        elif line.sort is Sort.OUTPUT:
            written.append(f"\n{line.text}")
        else:
            head = f"{line.label}: " if line.label and line.label != label else ""
            written.append(f"; {head}{line.text}")
        index, group, label = entry.message, line.group, line.label
        if not entry.tool:
            called = line.text if line.sort is Sort.CALL else ""
    return "".join(written).lstrip("\n")


def _opener(entry: Entry, called: str) -> str:
    """Who speaks; for a result the tool that gave it, unless its call stands right in front of it."""
    if entry.line.sort in (Sort.RECORD, Sort.OUTPUT):
        label = f"{entry.line.label}: " if entry.line.label else ""
        return f"-> {label}" if called.startswith(entry.tool) and called else f"{entry.tool} -> {label}"
    return SPEAKERS.get(entry.role, "")
