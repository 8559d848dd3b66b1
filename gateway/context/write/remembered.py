"""Drafts remembered: the same messages under the same limits are folded once, however often they are sent."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from sys import getsizeof
from typing import Final, NamedTuple

from gateway.context.count.counter import Counter
from gateway.context.write.draft import Draft
from gateway.wire.facts import Interned
from gateway.wire.memory import Memory
from gateway.wire.message import Message, text_of

DRAFT_BYTES: Final = 2000
"""Bytes of a draft and its key, beside what follows (``sys.getsizeof``, CPython 3.11)."""
PLACE_BYTES: Final = 24
"""Bytes for each message of the request and for each of the draft: a number, a place and a cost, the same way."""
MESSAGE_BYTES: Final = 400
"""Bytes of a message that the fold made, beside its text, the same way."""


class RememberedDraft(NamedTuple):
    """A draft, and its messages: those that the fold made, and the index of each that is the request's own."""

    draft: Draft
    places: tuple[int | Message, ...]


def key_of(messages: Sequence[Message], counter: Counter, *limits: Hashable) -> Hashable | None:
    """Return everything a draft depends on; None where a message or the counter has no name that stays its own."""
    numbers = tuple([message.number if type(message) is Interned else 0 for message in messages])
    return ("draft", numbers, counter.name, *limits) if counter.name and 0 not in numbers else None


def recall(key: Hashable | None, messages: Sequence[Message], memory: Memory | None) -> Draft | None:
    """Return the draft that was made of these messages before; None without one."""
    if key is None or memory is None:
        return None
    found: RememberedDraft | None = memory.recall(key)
    if found is None:
        return None
    draft, places = found
    return replace(draft, messages=tuple([messages[at] if isinstance(at, int) else at for at in places]))


def keep(key: Hashable | None, messages: Sequence[Message], draft: Draft, memory: Memory | None) -> None:
    """Remember a draft. The request's own messages are remembered by their index, so that they can be forgotten."""
    if key is None or memory is None:
        return
    index_of = {id(message): index for index, message in enumerate(messages)}
    made = [message for message in draft.messages if id(message) not in index_of]
    if any(isinstance(message.get("content"), list) for message in made):
        return  # it may hold media
    places = tuple([index_of.get(id(message), message) for message in draft.messages])
    size = DRAFT_BYTES + PLACE_BYTES * (len(messages) + len(places))
    size += sum([MESSAGE_BYTES + getsizeof(text_of(message)) for message in made])
    memory.keep(key, RememberedDraft(replace(draft, messages=()), places), size)
