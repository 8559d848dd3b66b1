"""The fate of every line of a request: whether it stands, is quoted, or is dropped, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.choose import lines
from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.layout import Layout, Source
from gateway.context.cut.policy import Policy
from gateway.context.cut.summary import Summary
from gateway.context.write.aside import with_room_for_quotes
from gateway.context.write.compress import source_of
from gateway.context.write.quotes import Written, write
from gateway.context.write.standing import standing_of
from gateway.wire.memory import Memory
from gateway.wire.message import PINNED_ROLES, Message, text_of

PINNED: Final = "pinned"
STANDS: Final = "stands as it came"
SHORTER: Final = "stands, made shorter"
QUOTED: Final = "quoted: bears on the question"
HOLDS: Final = "digest: the user wants it kept to"
FACTS: Final = "digest: new facts"
REPLACED: Final = "gone: said again, or replaced, later"
KNOWN: Final = "gone: its facts stand elsewhere"
NO_ROOM: Final = "gone: worth less than what is kept"
SUMMARISED: Final = "in the summary"


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of one line. ``index`` is its message's index; a standing message is one line."""

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
            _standing(index, message, PINNED if message.get("role") in PINNED_ROLES else STANDS)
            for index, message in enumerate(messages)
        )
    source = source_of(messages, budget, counter, policy, summary=summary, memory=memory)
    layout = with_room_for_quotes(source, source.layout)
    standing = standing_of(source, layout)
    written = write(source, layout, standing)
    fates = list(_folded(source, layout, written))
    for index, message in standing.items():
        why = (
            PINNED if message.get("role") in PINNED_ROLES else STANDS if message is source.messages[index] else SHORTER
        )
        fates.append(_standing(index, source.messages[index], why))
    return tuple(sorted(fates, key=lambda fate: fate.index))


def _standing(index: int, message: Message, why: str) -> Fate:
    text = text_of(message) or "\n".join(line.text for line in lines.read(message))
    return Fate(index, str(message.get("role")), text, kept=True, why=why)


def _folded(source: Source, layout: Layout, written: Written) -> Iterator[Fate]:
    pool = written.pool
    holds = set(pool.wishes.ranked)
    have = {word.key for place in written.taken | written.quoted for word in pool.lines[place].words}
    covered = source.summary.covers if source.summary and written.stage == "summary" else 0
    for place, (index, line) in enumerate(zip(pool.message_of, pool.lines, strict=True)):
        if index < 0:
            continue
        kept = place in written.taken or place in written.quoted
        if place in written.taken:
            why = HOLDS if place in holds else FACTS
        elif kept:
            why = QUOTED
        elif index < covered:
            why = SUMMARISED
        elif place in pool.gone:
            why = REPLACED
        else:
            why = KNOWN if have.issuperset([word.key for word in line.words]) else NO_ROOM
        yield Fate(index, pool.readings[index].role, line.text, kept, why)
