"""A simulated prompt cache: what one provider would read, write and process for a sequence of requests.

A prompt is a list of blocks in the order in which the provider renders them: tools, system, messages. The simulation is
pure: it takes a cache and a request and returns the next cache and the bill.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from gateway.context.cache.rules import CacheRule, Matching


class Block(msgspec.Struct, frozen=True):
    """One part of a rendered prompt: a tool list, a message or one of its content parts."""

    section: str
    """``tools``, ``system``, ``user``, ``assistant`` or ``tool``."""
    tokens: tuple[int, ...]
    """Token ids, or any numbers that are equal exactly when the tokens are."""
    mark_s: float = 0.0
    """Lifetime, in seconds, of the entry that the client requests at the end of this block; 0 for no entry."""


class Bill(msgspec.Struct, frozen=True):
    """The tokens of one request, by price."""

    read: int = 0
    written: int = 0
    written_long: int = 0
    fresh: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.read + self.written + self.written_long + self.fresh

    def __add__(self, other: "Bill") -> "Bill":
        return Bill(
            self.read + other.read,
            self.written + other.written,
            self.written_long + other.written_long,
            self.fresh + other.fresh,
        )

    def cost(self, rule: CacheRule) -> float:
        """Return the price, in uncached input tokens."""
        return self.read * rule.read + self.written * rule.written + self.written_long * rule.written_long + self.fresh


class Entry(msgspec.Struct, frozen=True):
    """One prompt prefix in the cache."""

    tokens: tuple[int, ...]
    used_s: float
    lifetime_s: float


class Cache(msgspec.Struct, frozen=True):
    """The entries of one provider, the most recently used first."""

    rule: CacheRule
    entries: tuple[Entry, ...] = ()


def send(cache: Cache, blocks: Sequence[Block], now_s: float, *, managed: bool = True) -> tuple[Cache, Bill]:
    """Send one request: return the cache after it, and the bill.

    ``now_s`` must not decrease from one request to the next. ``managed`` is whether the provider sets a breakpoint of its own
    after the newest message; a request may tell it not to.
    """
    rule = cache.rule
    alive = tuple(entry for entry in cache.entries if now_s - entry.used_s <= entry.lifetime_s)
    prompt = tuple(token for block in blocks for token in block.tokens)
    if len(prompt) < rule.least_prompt:
        return replace(cache, entries=alive), Bill(fresh=len(prompt))
    if rule.matching is Matching.PREFIX:
        return _send_by_prefix(replace(cache, entries=alive), prompt, now_s)
    return _send_by_entries(replace(cache, entries=alive), blocks, prompt, now_s, managed=managed)


def common_prefix(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return the number of tokens in the common prefix of two prompts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _send_by_prefix(cache: Cache, prompt: tuple[int, ...], now_s: float) -> tuple[Cache, Bill]:
    rule = cache.rule
    shared = [common_prefix(entry.tokens, prompt) for entry in cache.entries]
    best = max(shared, default=0)
    read = best // rule.step * rule.step
    read = read if read >= rule.least_prompt else 0
    # The last token is always processed: prediction starts from it.
    read = min(read, len(prompt) - 1)
    # The new prompt replaces an entry that it continues.
    others = tuple(e for e, n in zip(cache.entries, shared, strict=True) if n < len(e.tokens))
    entries = (Entry(prompt, now_s, rule.lifetime_s), *others)
    return replace(cache, entries=_within(entries, rule.capacity)), Bill(read=read, fresh=len(prompt) - read)


def _within(entries: tuple[Entry, ...], capacity: int) -> tuple[Entry, ...]:
    """Drop the least recently used entries until the rest fit; the newest always stays."""
    if not capacity:
        return entries
    totals = accumulate(len(entry.tokens) for entry in entries)
    return tuple(
        entry
        for number, (entry, total) in enumerate(zip(entries, totals, strict=True))
        if not number or total <= capacity
    )


def _send_by_entries(
    cache: Cache, blocks: Sequence[Block], prompt: tuple[int, ...], now_s: float, *, managed: bool
) -> tuple[Cache, Bill]:
    rule = cache.rule
    ends = list(accumulate(len(block.tokens) for block in blocks))
    writes = dict(_writes(rule, blocks, ends, managed=managed))
    known = {entry.tokens for entry in cache.entries}
    read = next((end for end in _searched(rule, blocks, ends, writes) if prompt[:end] in known), 0)
    written = long = 0
    start = read
    entries = {entry.tokens: entry for entry in cache.entries}
    for end, lifetime_s in sorted(writes.items()):
        if end < rule.least_prompt:
            continue
        if end > start:
            if rule.lifetime_long_s and lifetime_s >= rule.lifetime_long_s:
                long += end - start
            else:
                written += end - start
            start = end
        entries[prompt[:end]] = Entry(prompt[:end], now_s, lifetime_s)
    if read:
        entries[prompt[:read]] = replace(entries[prompt[:read]], used_s=now_s)
    newest_first = tuple(sorted(entries.values(), key=lambda entry: -entry.used_s))
    bill = Bill(read, written, long, len(prompt) - read - written - long)
    return replace(cache, entries=newest_first), bill


def _writes(
    rule: CacheRule, blocks: Sequence[Block], ends: Sequence[int], *, managed: bool
) -> Iterator[tuple[int, float]]:
    """Yield the ends at which entries are written, and the lifetimes of these entries."""
    marked = [(end, block.mark_s) for block, end in zip(blocks, ends, strict=True) if block.mark_s]
    if rule.matching is Matching.MARKED:
        yield from marked[: rule.marks]
        return
    own = rule.marks - managed
    yield from ((end, rule.lifetime_s) for end, _ in marked[max(len(marked) - own, 0) :])
    newest = [end for block, end in zip(blocks, ends, strict=True) if block.section in ("user", "tool")]
    if newest and managed:
        yield newest[-1], rule.lifetime_s


def _searched(rule: CacheRule, blocks: Sequence[Block], ends: Sequence[int], writes: dict[int, float]) -> Iterator[int]:
    """Yield the ends at which older entries are searched, the longest first."""
    if rule.matching is Matching.BOUNDARY:
        kinds = ("user", "tool")
        able = [end for block, end in zip(blocks, ends, strict=True) if block.section in kinds or block.mark_s]
        yield from reversed(able[-rule.lookback :])
        return
    found: set[int] = set()
    for number, end in enumerate(ends):
        if end in writes:
            found.update(ends[max(number - rule.lookback, 0) : number + 1])
    yield from sorted(found, reverse=True)
