"""The attempts of one request: to one place after another, smaller and smaller, until one is answered."""

import re
import time
from dataclasses import dataclass, replace
from typing import Final

import structlog
from aiohttp import web
from multidict import CIMultiDict

from gateway.context.count.tokens import self_contained
from gateway.context.life import ladder
from gateway.context.life.ladder import Attempt, Task
from gateway.serve import errors, lessons, memory, plan
from gateway.serve import headers as http
from gateway.serve.answer import Answer, look
from gateway.serve.encoding import readable_encodings
from gateway.serve.plan import Place
from gateway.serve.shared import Gateway, Setup
from gateway.serve.story import Story
from gateway.upstream.client import UpstreamUnreachable, call_of
from providers.record import OutputTooLarge, Overflow, Refusal

log = structlog.get_logger(__name__)

# Statuses that speak of the server's health or patience, not of the request: another upstream may do better.
FAULTS: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
# Bytes. A request so short fits every server there is, so what a running server tells of its window may wait.
SHORT: Final = 4096
# Those that speak of one key's quota: the upstream rests for its owner alone.
OF_ONE_KEY: Final = frozenset({429})
# An empty stream means "too long" where the request was folded, or is at least this near to its window (case 123).
NEAR: Final = 0.8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one place: the upstream's answer, or our own refusal where no upstream need be asked."""

    answer: Answer | None
    too_long: bool = False
    refusal: bytes = b""


class Sender:
    """Sends one request until somebody answers it. Lives as long as the request does."""

    def __init__(self, gateway: Gateway, request: web.BaseRequest, raw: bytes, story: Story, setup: Setup) -> None:
        self.gateway = gateway
        self.setup = setup
        self.raw = raw
        self.story = story
        self.route = setup.settings.route(story.request.model)
        self.url = request.rel_url
        self.headers = http.forwarded(request.headers)
        if "Accept-Encoding" in self.headers:
            self.headers["Accept-Encoding"] = readable_encodings(self.headers["Accept-Encoding"])

    async def send(self) -> Outcome:
        """Ask the places in order; where all that is left is too long, ask those with a larger window.

        Raises UpstreamUnreachable when nobody answers at all.
        """
        outcome = await self._first_healthy()
        if outcome.too_long and self.story.mode == "enforce":
            for place in plan.larger(self.gateway, self.setup, self.route):
                better = await self._at(place)
                if not better.too_long:
                    return better
            self.story.gave_up = True
        return outcome

    async def _first_healthy(self) -> Outcome:
        balance = self.gateway.balance
        places = await self._places()
        earlier: Outcome | None = None
        for number, place in enumerate(places, 1):
            try:
                outcome = await self._at(place)
            except UpstreamUnreachable as error:
                balance.failed(place.target.name)
                log.warning("upstream_failed", upstream=place.target.name, reason=str(error))
                if number < len(places):
                    continue
                if earlier is None:
                    raise
                return earlier
            if outcome.answer is None or outcome.too_long or outcome.answer.status not in FAULTS:
                balance.succeeded(place.target.name, self._caller(place))
                return outcome
            whose = self._caller(place) if outcome.answer.status in OF_ONE_KEY else ""
            balance.failed(place.target.name, _retry_after(outcome.answer), whose)
            earlier = earlier or outcome
        assert earlier is not None
        return earlier

    async def _places(self) -> list[Place]:
        """Where to ask, in order, those who rest last. What is known of a place is fetched when it is first used."""
        learning = self.gateway.learning
        for name, _ in self.route.choices:
            if learning.is_new(name, self.route.name):
                await learning.know(name, self.route.name)
            if learning.lists.due(name) and self._wants_list(name):
                await lessons.ask_windows(self.gateway, self.setup.targets[name], self.headers)
        places = list(plan.places(self.gateway, self.setup, self.route, self.story.request, self._own_caller()))
        if len(places) > 1:
            balance = self.gateway.balance
            places.sort(key=lambda place: balance.resting(place.target.name, self._caller(place)))
        return places

    def _wants_list(self, name: str) -> bool:
        """Whether an upstream's model list may tell more of the window than is known, and the request could be too long for it."""
        if self.route.window is not None:
            return False
        place = plan.place_of(self.gateway, self.setup, self.route, self.setup.targets[name])
        return place.entry in plan.UNKNOWN or (not place.target.vendor and len(self.raw) > SHORT)

    def _own_caller(self) -> str:
        """The hash of the client's key at the model's own upstream."""
        target = self.setup.targets[self.route.upstream]
        if len(self.route.choices) == 1 or target.endpoint.key:
            return ""
        return plan.key_of(target, self.headers)

    def _caller(self, place: Place) -> str:
        """Whose failure a used-up quota is: the hash of the key that is sent, the client's or the configured one."""
        return "" if place.target.endpoint.key else plan.key_of(place.target, self.headers)

    async def _at(self, place: Place) -> Outcome:
        """All attempts at one place. Raises UpstreamUnreachable when it gives no answer."""
        story = self.story
        story.place, story.unsized = place, False
        attempt = await self._first_attempt(place)
        if attempt is None:
            return Outcome(None, too_long=True, refusal=self._honest_refusal())
        while True:
            story.attempt = attempt
            answer = await self._call(place, attempt)
            refusal = self._refusal(answer, attempt)
            if refusal is None:
                return Outcome(answer)
            story.refusals.append(refusal.sign)
            following = await self._next_attempt(place, attempt, refusal, answer)
            if following is None:
                return Outcome(answer, too_long=isinstance(refusal, Overflow))
            answer.drop()
            attempt = following

    async def _call(self, place: Place, attempt: Attempt) -> Answer:
        headers = CIMultiDict(self.headers)
        if all(place.target.name != name for name, _ in self.route.choices):
            # The client gave its key to the model it named, not to whoever steps in for it.
            for name in plan.CREDENTIALS:
                headers.popall(name, None)
        body = attempt.body
        if body is self.story.request.raw:
            body = self.raw  # as it came, in the encoding it came in
        else:
            headers.popall("Content-Encoding", None)
        headers = place.target.authorised(headers)
        self.story.attempts += 1
        call = call_of("POST", self.url, place.route.name)
        response = await self.gateway.client.send(place.target, call, headers, body)
        return await look(place.target, response)

    async def _first_attempt(self, place: Place) -> Attempt | None:
        """What to send first, or None where even the smallest form is too long beyond doubt."""
        story, request = self.story, self.story.request

        def as_it_came(prompt: int = 0) -> Attempt:
            return ladder.as_it_came(request, place.route.name, place.window, prompt)

        proven = story.mode != "off" and plan.proven(self.gateway, place, request)
        if proven or story.mode == "off":
            story.bounded = proven or self_contained(request)
            story.task = None
            return as_it_came()
        try:
            task = await self._counted(place)
            story.task = task = await memory.recalled(self.gateway, place, task, story.scope)
            attempt = await self.gateway.pool.run(lambda: ladder.first_attempt(task), size_bytes=len(request.raw))
            story.decided = time.perf_counter()
        except Exception as error:  # noqa: BLE001  # promise 6: a bug of ours never costs the client its answer
            self.gateway.failed("fold", error)
            return as_it_came()
        broken = next((step.detail for step in attempt.steps if step.stage == "failed"), "")
        if broken:
            self.gateway.degraded("fold", broken, "gateway.context")
            return as_it_came(task.prompt)
        if story.mode == "observe":
            story.planned = attempt
            return as_it_came(task.prompt)
        if await self.gateway.pool.run(lambda: ladder.hopeless(task, attempt), size_bytes=len(request.raw)):
            story.attempt = attempt
            return None
        return attempt

    async def _next_attempt(self, place: Place, attempt: Attempt, refusal: Refusal, answer: Answer) -> Attempt | None:
        """What to send after a refusal; None when nothing smaller is left, or no more may be tried."""
        story = self.story
        if story.mode == "off":
            return None
        try:
            if story.task is None:
                story.task = await self._counted(place)
                attempt = replace(attempt, prompt=story.task.prompt)
            task = story.task
            lessons.from_refusal(self.gateway, story, attempt, refusal, answer.text)
            log.info("attempt_refused", request_id=story.request_id, upstream=place.target.name, sign=refusal.sign,
                     limit=refusal.limit, rung=attempt.rung, prompt=attempt.prompt)  # fmt: skip
            if story.mode != "enforce" or story.attempts > place.route.max_retries:
                return None
            size_bytes = len(story.request.raw)
            return await self.gateway.pool.run(lambda: _following(task, attempt, refusal), size_bytes=size_bytes)
        except Exception as error:  # noqa: BLE001  # promise 6: the upstream's own answer is still there to hand on
            self.gateway.failed("ladder", error)
            return None

    async def _counted(self, place: Place) -> Task:
        """Count the request for a place. Only from here on is anything remembered of who asks."""
        self.story.scope = plan.scope_of(place, self.headers)
        return await plan.task_for(self.gateway, place, self.story.request, self.story.scope)

    def _refusal(self, answer: Answer, attempt: Attempt) -> Refusal | None:
        """What the answer says about size, what its silence says included."""
        if answer.empty_stream:
            near = self.story.task is not None and attempt.prompt >= NEAR * attempt.window
            return Overflow(sign="empty_stream") if near or attempt.draft is not None else None
        refusal = answer.refusal
        if isinstance(refusal, OutputTooLarge) and refusal.limit == 0:
            # "max_tokens must be at least 1, got 0": the prompt fills the window, unless the client itself asked for nothing.
            nothing = any(limit < 1 for limit in self.story.request.output_limits)
            return None if nothing else Overflow(sign=refusal.sign)
        return refusal

    def _honest_refusal(self) -> bytes:
        task, attempt = self.story.task, self.story.attempt
        assert task is not None and attempt is not None
        return errors.too_long(attempt.window, attempt.prompt, task.reserve, plan.largest_parts(task))


def _following(task: Task, attempt: Attempt, refusal: Refusal) -> Attempt | None:
    if isinstance(refusal, OutputTooLarge):
        return ladder.lower_output(task, attempt, refusal.limit)
    return ladder.next_attempt(task, attempt, lessons.reading_of(refusal))


def _retry_after(answer: Answer) -> float | None:
    """Seconds the upstream asks to be left alone; an HTTP date is not worth a clock here."""
    value = answer.response.headers.get("Retry-After", "").strip()
    return float(value) if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", value) else None
