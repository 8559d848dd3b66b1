"""The model-written summary of a conversation: looked up before a fold, asked for once an answer has gone out.

Only where the operator named a summariser. No request waits for one to be made.
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

# A summary is a page; an answer far beyond that is no summary.
LONGEST_ANSWER: Final = 2**20


async def recalled(gateway: Gateway, place: Place, task: Task) -> Task:
    """Give the task the newest summary that covers what will be folded, where there is one."""
    if not place.route.summary.model or task.fits:
        return task
    source = _source(task)
    cut = cut_of(source)
    summary = await gateway.summarizer.find(identity.chain(source.messages[:cut], task.scope.encode())) if cut else None
    return replace(task, summary=summary) if summary else task


def consider(gateway: Gateway, setup: Setup, state: Answered, headers: CIMultiDict[str]) -> None:
    """Start a summary in the background where the conversation will soon need one."""
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
        count=tokens.counter(summariser.family).text,
        deadline_s=chosen.deadline_s,
        tokens_per_hour=chosen.tokens_per_hour,
        payer="" if summariser.target.endpoint.key else plan.key_of(summariser.target, headers),
    )
    gateway.summarizer.consider(job, _ask(gateway, summariser.target, place.target, headers))


def _source(task: Task) -> Source:
    return source_of(task.request.messages, ladder.budget_of(task), task.counter, task.policy)


def _summariser(gateway: Gateway, setup: Setup, chosen: SummarySettings) -> Place:
    route = setup.settings.route(chosen.model)
    return plan.place_of(gateway, setup, route, setup.targets[chosen.upstream or route.upstream])


def _ask(gateway: Gateway, summariser: Target, answered: Target, headers: CIMultiDict[str]) -> Ask:
    """How the summariser is called: with its configured key, or the client's where it is the client's own upstream."""
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
