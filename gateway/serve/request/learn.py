"""Learn from a good answer, for the next request.

A failure here is only logged: the client gets its answer all the same.
"""

import asyncio

import structlog
from msgspec.structs import replace

from gateway.context.life.lessons import BilledPrompt, Learned
from gateway.context.life.states import Answered
from gateway.serve.request import uncounted_bill
from gateway.serve.request.outcome import Delivery
from gateway.serve.request.place import place_at
from gateway.serve.request.served import ServedRequest
from gateway.state.threads import INLINE
from providers.record import Usage

log = structlog.get_logger(__name__)


async def learn_after_delivery(served: ServedRequest, state: Answered) -> Delivery:
    """Learn from a delivered answer. This goes on if the client leaves meanwhile."""
    delivery = served.delivery
    learning = served.gateway.tasks.start(learn(served, state, delivery.usage), "learn", must_finish=True)
    return delivery if learning is None else replace(delivery, warning=await asyncio.shield(learning))


async def learn(served: ServedRequest, state: Answered, usage: Usage | None) -> str:
    """Learn from an answer; return the warning that it causes, or an empty text."""
    gateway, size_bytes = served.gateway, len(state.life.conversation.raw)
    try:
        if size_bytes < INLINE or _is_quick(state, usage):
            learned = _lessons_of(served, state, usage)
        else:
            learned = await gateway.threads.run(lambda: _lessons_of(served, state, usage), size_bytes=size_bytes)
        gateway.learning.learn(learned.lessons, place_at(state.visit).caller.learner)
    except Exception as error:  # noqa: BLE001  # promise 6: nothing is learned from this answer
        gateway.failed("learning", error)
        return ""
    if learned.warning:
        log.warning("truncated_silently", request_id=served.request_id, upstream=state.visit.place.upstream,
                    told=learned.warning)  # fmt: skip
    return learned.warning


def _is_quick(state: Answered, usage: Usage | None) -> bool:
    """Return whether learning reads no messages: of an uncounted request, with an ordinary bill or none."""
    return state.visit.task is None and (
        usage is None
        or not uncounted_bill.needs_count(len(state.life.conversation.raw), BilledPrompt(usage.prompt, usage.cached))
    )


def _lessons_of(served: ServedRequest, state: Answered, usage: Usage | None) -> Learned:
    """Return the lessons of an answer. A request that was not counted may be counted now. Slow for a long conversation."""
    bill = BilledPrompt(usage.prompt, usage.cached) if usage else None
    if not state.visit.fit_proven or state.visit.task is not None or bill is None:
        return state.find_lessons(bill)
    return uncounted_bill.lessons_of(served.gateway, place_at(state.visit), state.life.conversation, bill)
