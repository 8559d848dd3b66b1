"""The lessons of a bill for a request that was not counted, because its size proved that it fits. If the server's window is smaller than
configured, it may have truncated the request all the same."""

from typing import Final

from msgspec.structs import replace

from gateway.context.count import fixed_cost, message_cost, tokens
from gateway.context.life import identity, lessons
from gateway.context.life.bills import SentCount
from gateway.context.life.lessons import BilledPrompt, Learned, Sent
from gateway.serve.gateway import Gateway
from gateway.serve.request.place import Place, error_of
from gateway.wire.format import Conversation

SUSPICIOUS_BYTES_PER_TOKEN: Final = 8
"""Bytes of the body for each billed token from which a bill is suspiciously small. Ordinary text has 3 to 5."""
MOST_COUNTED_BYTES: Final = 2**17
"""Bytes. A longer body is not counted to judge its bill. Chosen: a few milliseconds."""


def needs_count(size_bytes: int, bill: BilledPrompt) -> bool:
    """Return whether a bill is so small that the request must be counted to judge it."""
    return size_bytes <= MOST_COUNTED_BYTES and bill.prompt * SUSPICIOUS_BYTES_PER_TOKEN <= size_bytes


def lessons_of(gateway: Gateway, place: Place, conversation: Conversation, bill: BilledPrompt) -> Learned:
    """Return the lessons of the bill. The request is counted only if the bill is suspiciously small."""
    size = len(conversation.raw)
    if not needs_count(size, bill):
        return Learned((lessons.PromptRead(place.target.name, place.route.name, min(bill.prompt, size)),))
    return lessons.from_answer(_count_sent(gateway, place, conversation), bill)


def _count_sent(gateway: Gateway, place: Place, conversation: Conversation) -> Sent:
    """Count a request that was sent, with what is known of its conversation."""
    counter = message_cost.counter(place.family, place.images, conversation.memory)
    counted = sum(map(counter.message, conversation.messages)) + fixed_cost.fixed_cost(
        conversation.body, place.family, conversation.memory
    )
    has_upper_bounds = tokens.has_upper_bounds(conversation.messages)
    count = SentCount(
        conversation=conversation, messages=conversation.messages, counter=counter, counted=counted, prompt=counted, error=error_of(place),
        folded=False, has_upper_bounds=has_upper_bounds,
    )  # fmt: skip
    upstream, model, scope = place.target.name, place.route.name, place.caller.scope
    sent = Sent(upstream=upstream, model=model, scope=scope, count=count, window=place.window)
    last_request = gateway.learning.conversations.last_request(identity.chain(conversation.messages, scope, model))
    return replace(
        sent, last_request=last_request, has_erratic_bills=bool(gateway.learning.calibration(place.owner).ignored_bills)
    )
