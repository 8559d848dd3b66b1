"""The cache of drafts: the same messages under the same limits are folded once, however often they are sent."""

from collections.abc import Hashable, Sequence
from sys import getsizeof
from typing import Final, NamedTuple

from msgspec.structs import replace

from gateway.context.count.counter import Counter
from gateway.context.write.draft import Draft
from gateway.wire.derived import Interned
from gateway.wire.memory import Memory
from gateway.wire.message import Message, text_of

DRAFT_BYTES: Final = 2000
"""Bytes of a draft and its key, without its messages (``sys.getsizeof``, CPython 3.11)."""
INDEX_BYTES: Final = 24
"""Bytes for each message of the request and of the draft: a number, an index and a cost (``sys.getsizeof``)."""
MESSAGE_BYTES: Final = 400
"""Bytes of a message that the fold made, without its text (``sys.getsizeof``)."""


class CachedDraft(NamedTuple):
    """A draft without its messages, and these: the index of a message of the request, or a message that the fold made."""

    draft: Draft
    messages: tuple[int | Message, ...]


def key_of(messages: Sequence[Message], counter: Counter, *limits: Hashable) -> Hashable | None:
    """Return everything that a draft depends on; None if a message or the counter has no permanent name."""
    numbers = tuple([message.number if type(message) is Interned else 0 for message in messages])
    return ("draft", numbers, counter.name, *limits) if counter.name and 0 not in numbers else None


def find(key: Hashable | None, messages: Sequence[Message], memory: Memory | None) -> Draft | None:
    """Return the draft that was made of these messages before; None without one."""
    if key is None or memory is None:
        return None
    cached: CachedDraft | None = memory.get(key)
    if cached is None:
        return None
    draft, parts = cached
    return replace(draft, messages=tuple([messages[part] if isinstance(part, int) else part for part in parts]))


def store(key: Hashable | None, messages: Sequence[Message], draft: Draft, memory: Memory | None) -> None:
    """Store a draft. The request's own messages are stored as their index, so that they are not kept alive."""
    if key is None or memory is None:
        return
    index_of = {id(message): index for index, message in enumerate(messages)}
    made = [message for message in draft.messages if id(message) not in index_of]
    if any(isinstance(message.get("content"), list) for message in made):
        return  # it may contain media
    parts = tuple([index_of.get(id(message), message) for message in draft.messages])
    size = DRAFT_BYTES + INDEX_BYTES * (len(messages) + len(parts))
    size += sum([MESSAGE_BYTES + getsizeof(text_of(message)) for message in made])
    memory.put(key, CachedDraft(replace(draft, messages=()), parts), size)
