"""The model-written summary of a conversation: read before a fold, requested after an answer.

Only if the operator configured a summariser. No request waits for a summary to be made.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from multidict import CIMultiDict

from gateway.config import SummarySettings
from gateway.context.count import tokens
from gateway.context.cut.foresight import cut_of
from gateway.context.cut.layout import Source
from gateway.context.cut.replay import rounded_room
from gateway.context.life import identity, ladder
from gateway.context.life.ladder import Task
from gateway.context.life.states import Answered
from gateway.context.write.compress import source_of
from gateway.serve import plan
from gateway.serve.plan import Place
from gateway.serve.shared import Gateway, Setup
from gateway.state.summariser import Ask, Job
from gateway.upstream.client import Call, Target, UpstreamUnreachable
from gateway.wire.chat import Message, dumps

# Bytes. A summary is a page; a far longer answer is not a summary.
LONGEST_ANSWER: Final = 2**20


async def recalled(gateway: Gateway, place: Place, task: Task) -> Task:
    """Give the task the newest summary that covers the part to be folded, if there is one."""
    if not place.route.summary.model or task.fits:
        return task
    source = _source(task)
    cut = cut_of(source)
    summary = await gateway.summarizer.find(identity.chain(source.messages[:cut], task.scope.encode())) if cut else None
    return replace(task, summary=summary) if summary else task


def consider(gateway: Gateway, setup: Setup, state: Answered, headers: CIMultiDict[str]) -> None:
    """Start a summary in the background when the conversation will soon need one."""
    place, task, attempt = plan.place_at(state.visit), state.visit.task, state.attempt
    if task is None or not place.route.summary.model or attempt.rung > 1:
        return
    chosen = place.route.summary
    summariser = _summariser(gateway, setup, chosen)
    source = _source(task)
    share = max(attempt.prompt - task.fixed, 0) / max(rounded_room(source.budget), 1)
    job = Job(
        scope=task.scope,
        source=source,
        used=share if attempt.draft is None else 1.0,
        at=chosen.at,
        model=summariser.route.name,
        window=summariser.window,
        count=tokens.counter(summariser.family, memory=gateway.memory).text,
        deadline_s=chosen.deadline_s,
        tokens_per_hour=chosen.tokens_per_hour,
        payer="" if summariser.target.endpoint.key else plan.key_of(summariser.target, headers),
    )
    gateway.summarizer.consider(job, _ask(gateway, summariser.target, place.target, headers))


def _source(task: Task) -> Source:
    return source_of(
        task.request.messages, ladder.budget_of(task), task.counter, task.policy, memory=task.request.memory
    )


def _summariser(gateway: Gateway, setup: Setup, chosen: SummarySettings) -> Place:
    route = setup.settings.route(chosen.model)
    return plan.place_of(gateway, setup, route, setup.targets[chosen.upstream or route.upstream])


def _ask(gateway: Gateway, summariser: Target, answered: Target, headers: CIMultiDict[str]) -> Ask:
    """Return how to call the summariser: with its configured key, or the client's if it is the client's own upstream."""
    own = CIMultiDict({"Content-Type": "application/json"})
    if summariser.name == answered.name:
        own.extend((name, value) for name, value in headers.items() if name.lower() in plan.CREDENTIALS)
    authorised = summariser.authorised(own)

    async def ask(model: str, messages: Sequence[Message], _: float) -> bytes | None:
        call = Call("POST", "/chat/completions", "", model)
        body = dumps({"model": model, "messages": list(messages)})
        try:
            response = await gateway.client.send(summariser, call, CIMultiDict(authorised), body)
        except UpstreamUnreachable:
            return None
        async with response:
            answer = bytearray()
            async for chunk in response.content.iter_any():
                answer += chunk
                if len(answer) > LONGEST_ANSWER:
                    return None
            return bytes(answer) if response.status == 200 else None

    return ask
