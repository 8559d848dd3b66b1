"""Decide whether counting a request would block the event loop, and load vocabularies before they are needed."""

from collections.abc import Iterable
from typing import Final

from gateway.context.count.families import family_of
from gateway.context.count.message_cost import arguments, counter, counts_of
from gateway.context.count.vocabularies import loaded
from gateway.context.count.vocabularies import preload as load_vocabulary
from gateway.wire.derived import derived_of
from gateway.wire.format import Conversation
from gateway.wire.message import texts, tool_calls

BLOCKING_BYTES: Final = 48_000
"""Bytes of text without a cached count. In the worst case they take about 50 ms; more is counted in a thread."""


def blocks_event_loop(conversation: Conversation, family: str, images: str = "") -> bool:
    """Return whether counting would block the event loop: it has much text without a cached count, or a vocabulary must be
    loaded."""
    row = family_of(family)
    if not loaded(row.vocabulary):
        return True
    if len(conversation.raw) <= BLOCKING_BYTES:
        return False
    cached_counts = counts_of(row.vocabulary, conversation.memory)
    name = counter(family, images, conversation.memory).name
    size = 0
    for message in conversation.messages:
        if name not in derived_of(message).costs:
            size += sum(_bytes(value) for value in texts(message.get("content")) if value not in cached_counts)
            if "tool_calls" in message:
                of_calls = map(arguments, tool_calls(message))
                size += sum(_bytes(value) for value in of_calls if len(value) > 2000 and value not in cached_counts)
            if size > BLOCKING_BYTES:
                return True
    return False


def _bytes(text: str) -> int:
    """Return at most how many bytes a text has, without encoding it."""
    return len(text) if text.isascii() else 3 * len(text)


def preload(families: Iterable[str]) -> None:
    """Load the vocabularies of families now, so that no request waits for them."""
    for vocabulary in {family_of(family).vocabulary for family in families}:
        load_vocabulary(vocabulary)
