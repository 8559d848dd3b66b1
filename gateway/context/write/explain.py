"""The fate of every line of a request in its fold: whether it is kept, quoted, or dropped, and why."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.cut.source import Source
from gateway.context.cut.summary import Summary
from gateway.context.read import lines
from gateway.context.write.folding import source_of
from gateway.context.write.pools import pool_of
from gateway.context.write.sketch import Sketch
from gateway.context.write.stages import last_sketch
from gateway.wire.memory import Memory
from gateway.wire.message import PINNED_ROLES, Message, text_of

PINNED: Final = "pinned"
UNCHANGED: Final = "kept as it came"
SHORTENED: Final = "kept, shortened"
QUOTED: Final = "quoted: relevant to the question"
WISH: Final = "digest: a standing wish of the user"
FACTS: Final = "digest: new facts"
OUTDATED: Final = "dropped: repeated or replaced later"
REDUNDANT: Final = "dropped: its facts are kept elsewhere"
NO_ROOM: Final = "dropped: worth less than the lines that are kept"
SUMMARISED: Final = "in the summary"


class Fate(msgspec.Struct, frozen=True):
    """The fate of one line. ``index`` is its message's index. A kept message counts as one line."""

    index: int
    role: str
    text: str
    kept: bool
    why: str


def explain_lines(
    messages: Sequence[Message],
    budget: Budget,
    counter: Counter,
    policy: Policy,
    *,
    summary: Summary | None = None,
    memory: Memory | None = None,
) -> tuple[Fate, ...]:
    """Return for each line whether a fold keeps it, in the order of the conversation."""
    if sum(map(counter.message, messages)) <= budget.room and policy.max_turns is None:
        return tuple(
            _fate_of_kept(index, message, PINNED if message.get("role") in PINNED_ROLES else UNCHANGED)
            for index, message in enumerate(messages)
        )
    source = source_of(messages, budget, counter, policy, summary=summary, memory=memory)
    sketch = last_sketch(source)
    fates = list(_fates_of_lines(source, sketch))
    for index, message in sketch.kept.items():
        why = UNCHANGED if message is source.messages[index] else SHORTENED
        if message.get("role") in PINNED_ROLES:
            why = PINNED
        fates.append(_fate_of_kept(index, source.messages[index], why))
    return tuple(sorted(fates, key=lambda fate: fate.index))


def _fate_of_kept(index: int, message: Message, why: str) -> Fate:
    text = text_of(message) or "\n".join(line.text for line in lines.read(message))
    return Fate(index, str(message.get("role")), text, kept=True, why=why)


def _fates_of_lines(source: Source, sketch: Sketch) -> Iterator[Fate]:
    """Yield the fate of each line of the messages that are left out."""
    written = sketch.replacement
    pool = written.pool if written else pool_of(source, sketch.layout.left_out)
    in_note, in_quotes = (written.in_note, written.in_quotes) if written else (frozenset(), frozenset())
    wishes = set(pool.wishes.ranked)
    shown = {word.key for position in in_note | in_quotes for word in pool.lines[position].words}
    covered = source.summary.covers if source.summary and written and written.stage == "summary" else 0
    for position, (index, line) in enumerate(zip(pool.message_of, pool.lines, strict=True)):
        if index < 0:
            continue
        if position in in_note:
            why = WISH if position in wishes else FACTS
        elif position in in_quotes:
            why = QUOTED
        elif index < covered:
            why = SUMMARISED
        elif position in pool.outdated:
            why = OUTDATED
        else:
            why = REDUNDANT if shown.issuperset([word.key for word in line.words]) else NO_ROOM
        kept = position in in_note or position in in_quotes
        yield Fate(index, pool.readings[index].role, line.text, kept, why)
