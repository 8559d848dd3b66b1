"""A conversation compacted on request: the digest of all of it, and the last question, in full if it is not too long."""

from collections.abc import Sequence
from typing import Final

from gateway.context import frames
from gateway.context.choose import digest, rows
from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.shrink.text import shrink_text
from gateway.context.write.folding import source_of
from gateway.context.write.pools import pool_of
from gateway.wire.memory import Memory
from gateway.wire.message import Message, text_of

LAST_QUESTION_SHARE: Final = 0.25
"""Share of a compaction that the last question may take."""


def compacted(
    messages: Sequence[Message], tokens: int, counter: Counter, memory: Memory | None = None
) -> tuple[str, str]:
    """Return the digest, framed as data, and the last question. The same conversation gives the same texts."""
    source = source_of(messages, Budget(tokens, 0, 0, 0), counter, Policy(), memory=memory)
    pinned = set(source.structure.pinned)
    folded = [index for index in range(len(source.messages)) if index not in pinned]
    questions = [text_of(source.messages[index]) for index in folded if source.messages[index].get("role") == "user"]
    question = shrink_text(questions[-1], int(tokens * LAST_QUESTION_SHARE), counter.text) if questions else ""
    pool = pool_of(source, folded)
    room = tokens - counter.text(question) - frames.frame_tokens(frames.DIGEST, counter.text)
    note = rows.render(pool, digest.choose(pool, room, counter.text)) if pool.lines and room > 0 else ""
    return frames.framed(frames.DIGEST, note) if note else frames.NOTICE, question
