"""What answers teach: the window a refusal states, the count an upstream bills, the silence about a cut-off head."""

import asyncio
from contextlib import suppress
from typing import Final

import structlog
from multidict import CIMultiDict

from gateway.context.count import families, tokens
from gateway.context.count.calibration import truncated
from gateway.context.count.tokens import Anchor
from gateway.context.life import ladder
from gateway.context.life.ladder import Attempt, Reading
from gateway.serve.plan import ANCHORED, Place
from gateway.serve.shared import Gateway
from gateway.serve.story import Story
from gateway.state.learning import conversation
from gateway.upstream.client import Call, Target, UpstreamUnreachable
from gateway.wire.format import Conversation
from gateway.wire.message import Message
from providers.record import OutputTooLarge, Overflow, Refusal, Usage

log = structlog.get_logger(__name__)

TRUNCATED: Final = "truncated"
# Ordinary text has 3 to 5 bytes a token; a bill so far below that is looked at though nothing was counted.
SUSPICIOUS: Final = 8
# Such a look is taken on the event loop, so only at bodies that are counted in a few milliseconds.
LONGEST_LOOK: Final = 2**17
# How long the first request for a model of unknown window waits for the upstream's model list.
LIST_PATIENCE_S: Final = 1.0
LONGEST_LIST: Final = 2**23


def from_refusal(gateway: Gateway, story: Story, place: Place, attempt: Attempt, refusal: Refusal) -> None:
    """Learn the numbers of a refusal, so that the next request is right the first time."""
    task = story.task
    if isinstance(refusal, OutputTooLarge) or task is None:
        return
    upstream, model = place.target.name, place.route.name
    if refusal.limit is not None and refusal.limit < place.window:
        gateway.learning.note_window(upstream, model, refusal.limit, stated=True)
    prompt = ladder.stated_prompt(reading_of(refusal), attempt, task.output_of(attempt))
    story.unsized = (refusal.limit is None, prompt is None)
    sent = task.sent_by(attempt)
    if prompt is not None and not tokens.has_bounds(sent):
        gateway.learning.note_count(upstream, model, _unscaled(place, task.request, sent), prompt)


def reading_of(refusal: Overflow) -> Reading:
    """A refusal's numbers as the ladder reads them."""
    return Reading(refusal.limit, refusal.prompt, refusal.completion, refusal.total, refusal.exact, refusal.excess)


def from_answer(gateway: Gateway, story: Story, usage: Usage | None) -> None:
    """Learn from a good answer: what was billed, and what size is accepted after a refusal that stated none."""
    place, task, attempt = story.place, story.task, story.attempt
    if place is None or attempt is None or story.mode == "off":
        return
    if task is None:
        _look_at_unproven(gateway, story, place, usage)
        return
    upstream, model = place.target.name, place.route.name
    no_limit, no_prompt = story.unsized
    if usage is None:
        if no_limit or no_prompt:
            gateway.learning.note_window(upstream, model, attempt.prompt + task.reserve + task.kept, stated=False)
        return
    if task.anchored is not None and usage.prompt < task.anchored / 1.05 and attempt.draft is None:
        return  # less than a part of it was billed before: this server reports only what its cache did not hold
    if not usage.cached and truncated(attempt.prompt, _error(place), usage.prompt):
        _warn(gateway, story, place, attempt.prompt, usage.prompt)
        return
    if no_limit:
        gateway.learning.note_window(upstream, model, usage.prompt + task.reserve + task.kept, stated=False)
    sent = task.sent_by(attempt)
    if not tokens.has_bounds(sent):
        gateway.learning.note_count(upstream, model, _unscaled(place, task.request, sent), usage.prompt)
    if attempt.draft is None and sent and usage.prompt > ANCHORED * task.window:
        key = task.key or conversation(story.scope, model, sent)[-1]
        gateway.learning.note_usage(story.scope, key, Anchor(len(sent), usage.prompt, task.fixed))


async def ask_windows(gateway: Gateway, target: Target, headers: CIMultiDict[str]) -> None:
    """Ask an upstream for its model list where that is due, with the credentials of the request at hand.

    Waits a moment at most; a list that comes later is remembered all the same, one that does not come is no matter.
    """
    if not gateway.learning.wants_list(target.name):
        return
    task = gateway.tasks.start(_read_list(gateway, target, headers), "model_list")
    if task is not None:
        await asyncio.wait([task], timeout=LIST_PATIENCE_S)


async def _read_list(gateway: Gateway, target: Target, headers: CIMultiDict[str]) -> None:
    wanted = {"authorization", *target.provider.credential_headers}
    own = CIMultiDict((name, value) for name, value in headers.items() if name.lower() in wanted)
    with suppress(UpstreamUnreachable):
        response = await gateway.client.send(target, Call("GET", "/models", "", ""), target.authorised(own), None)
        async with response:
            if response.status == 200:
                body = await response.content.read(LONGEST_LIST)
                gateway.learning.note_list(target.name, target.provider.read_windows(body))


def _look_at_unproven(gateway: Gateway, story: Story, place: Place, usage: Usage | None) -> None:
    """A request that fitted by its size alone may still have been cut by a server with a much smaller window."""
    size = len(story.request.raw)
    if usage is None or usage.cached or not story.bounded or size > LONGEST_LOOK or usage.prompt * SUSPICIOUS > size:
        return
    counted = _unscaled(place, story.request, story.request.messages)
    if truncated(counted, _error(place), usage.prompt):
        _warn(gateway, story, place, counted, usage.prompt)


def _warn(gateway: Gateway, story: Story, place: Place, sent: int, billed: int) -> None:
    story.warning = f"{TRUNCATED}; sent={sent}; read={billed}"
    log.warning("truncated_silently", request_id=story.request_id, upstream=place.target.name, sent=sent, read=billed)
    gateway.learning.note_window(place.target.name, place.route.name, billed, stated=False)


def _unscaled(place: Place, request: Conversation, messages: tuple[Message, ...]) -> int:
    message = tokens.counter(place.family, place.images).message
    return sum(map(message, messages)) + tokens.fixed_cost(request.body, place.family)


def _error(place: Place) -> float:
    return families.family_of(place.family).error
