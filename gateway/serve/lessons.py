"""Between a request's story and what is learned from it: hands refusals and bills to `gateway.context.life.lessons`, and lists to `Lists`."""

import asyncio
from dataclasses import replace
from typing import Final

import aiohttp
import structlog
from multidict import CIMultiDict

from gateway.context.count import tokens
from gateway.context.life import identity, lessons
from gateway.context.life.evidence import Measured
from gateway.context.life.ladder import Attempt, Reading
from gateway.context.life.lessons import Bill, Learned, Sent
from gateway.serve.plan import Place, error_of, scope_of
from gateway.serve.shared import Gateway
from gateway.serve.story import Story
from gateway.upstream.client import Call, Target, UpstreamUnreachable
from providers.openai import join
from providers.record import OutputTooLarge, Overflow, Refusal, Usage
from providers.windows import running_windows, says_props

log = structlog.get_logger(__name__)

# Ordinary text has 3 to 5 bytes a token; a bill so far below that is looked at though nothing was counted.
SUSPICIOUS: Final = 8
# Such a look is taken on the event loop, so only at bodies that are counted in a few milliseconds.
LONGEST_LOOK: Final = 2**17
# How long the first request for a model of unknown window waits for the upstream's model list.
LIST_PATIENCE_S: Final = 1.0
LONGEST_LIST: Final = 2**23


def from_refusal(gateway: Gateway, story: Story, attempt: Attempt, refusal: Refusal, said: bytes) -> None:
    """Learn from a refusal, so that the next request is right the first time. ``said`` is its body, decoded."""
    task, place = story.task, story.place
    if isinstance(refusal, OutputTooLarge) or task is None or place is None:
        return
    reading = reading_of(refusal)
    sent = lessons.sent_by(task, attempt, place.target.name, story.scope)
    found = lessons.from_refusal(sent, attempt, reading, refusal.sign, said)
    believed = any(isinstance(each, lessons.StatedWindow) for each in found)
    story.unsized = refusal.limit is None or (refusal.limit < attempt.window and not believed)
    gateway.learning.learn(found)


def reading_of(refusal: Overflow) -> Reading:
    """A refusal's numbers as the ladder reads them."""
    return Reading(refusal.limit, refusal.prompt, refusal.completion, refusal.total, refusal.exact, refusal.excess)


async def from_answer(gateway: Gateway, story: Story, usage: Usage | None, headers: CIMultiDict[str]) -> None:
    """Learn from a good answer. Whatever goes wrong here is counted and logged: the answer is not spoilt by it."""
    try:
        size_bytes = len(story.request.raw)
        learned = await gateway.pool.run(lambda: _from_answer(gateway, story, usage, headers), size_bytes=size_bytes)
        gateway.learning.learn(learned.lessons)
    except Exception as error:  # noqa: BLE001  # promise 6: a bug in learning never costs the client its answer
        gateway.failed("learning", error)
        return
    if learned.warning:
        story.warning = learned.warning
        where = story.place.target.name if story.place else ""
        log.warning("truncated_silently", request_id=story.request_id, upstream=where, told=learned.warning)


def _from_answer(gateway: Gateway, story: Story, usage: Usage | None, headers: CIMultiDict[str]) -> Learned:
    place, task, attempt = story.place, story.task, story.attempt
    if place is None or attempt is None or story.mode == "off":
        return lessons.NOTHING
    bill = Bill(usage.prompt, usage.cached) if usage else None
    if task is not None:
        sent = lessons.sent_by(task, attempt, place.target.name, story.scope)
        return lessons.from_answer(sent, bill, unsized=story.unsized)
    if bill is None:
        return lessons.NOTHING
    size = len(story.request.raw)
    if not story.bounded or size > LONGEST_LOOK or bill.prompt * SUSPICIOUS > size:
        return Learned((lessons.PromptRead(place.target.name, place.route.name, min(bill.prompt, size)),))
    story.scope = scope_of(place, headers)
    return lessons.from_answer(_unproven(gateway, story, place), bill)


def _unproven(gateway: Gateway, story: Story, place: Place) -> Sent:
    """A request that fitted by its size alone, counted now: a server with a much smaller window may still have cut it."""
    request, counter = story.request, tokens.counter(place.family, place.images)
    counted = sum(map(counter.message, request.messages)) + tokens.fixed_cost(request.body, place.family)
    bounded = tokens.has_bounds(request.messages)
    measured = Measured(request, request.messages, counter, counted, counted, error_of(place), False, bounded)
    upstream, model = place.target.name, place.route.name
    sent = Sent(upstream, model, story.scope, measured, place.window)
    before = gateway.learning.before(identity.conversation(story.scope, model, request.messages))
    return replace(sent, before=before, erratic=bool(gateway.learning.calibration(upstream, model).absurd))


async def ask_windows(gateway: Gateway, target: Target, headers: CIMultiDict[str]) -> None:
    """Ask an upstream for its model list where that is due, with the credentials of the request at hand.

    Waits a moment at most; a list that comes later is remembered all the same. Failures are ignored.
    """
    own = _credentials(target, headers)
    key = identity.key_hash(own.values())
    if not gateway.learning.lists.wants(target.name, key):
        return
    task = gateway.tasks.start(_read_list(gateway, target, own, key), "model_list")
    if task is not None:
        await asyncio.wait([task], timeout=LIST_PATIENCE_S)


def _credentials(target: Target, headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """The credentials that are sent to an upstream: the configured key, or the client's own."""
    wanted = {"authorization", *target.provider.credential_headers}
    return target.authorised(CIMultiDict((name, value) for name, value in headers.items() if name.lower() in wanted))


async def _read_list(gateway: Gateway, target: Target, headers: CIMultiDict[str], key: str) -> None:
    lists = gateway.learning.lists
    try:
        status, body = await _get(gateway, target, "/models", headers)
        if status in (401, 403):
            lists.refused(target.name, key)
            return
        if status != 200:
            lists.failed(target.name, f"status {status}")
            return
        running = running_windows(body)
        if says_props(body):
            root = replace(target.endpoint, base_url=target.endpoint.base_url.rstrip("/").removesuffix("/v1"))
            own = replace(target, endpoint=root, provider=replace(target.provider, locate=join), _urls={})
            status, props = await _get(gateway, own, "/props", headers)
            running |= running_windows(props) if status == 200 else {}
        lists.read(target.name, target.provider.read_windows(body), running)
    except (UpstreamUnreachable, aiohttp.ClientError, OSError) as error:
        lists.failed(target.name, type(error).__name__)


async def _get(gateway: Gateway, target: Target, path: str, headers: CIMultiDict[str]) -> tuple[int, bytes]:
    """Read an answer whole, in however many packets it comes; one beyond all measure is cut, and then no JSON."""
    response = await gateway.client.send(target, Call("GET", path, "", ""), CIMultiDict(headers), None)
    async with response:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > LONGEST_LIST:
                break
        return response.status, bytes(body)
