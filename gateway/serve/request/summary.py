"""The summary that a model writes of a conversation: read before a fold, and requested after an answer.

There are summaries only if the operator configured a summariser. No request waits until a summary is made.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import msgspec
from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.config import SummarySettings
from gateway.context.count import message_cost
from gateway.context.cut.foresight import messages_before_cut
from gateway.context.cut.source import Source
from gateway.context.life import identity, ladder
from gateway.context.life.states import Answered
from gateway.context.life.task import Task
from gateway.context.write.folding import source_of
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.callers import CREDENTIALS, identity_of
from gateway.serve.request.place import Place, place_at, place_of
from gateway.serve.request.served import ServedRequest
from gateway.state.summariser import AskModel, SummaryJob
from gateway.state.threads import QueueFull
from gateway.upstream.client import Target, UpstreamCall, UpstreamUnreachable
from gateway.upstream.response import read_body
from gateway.wire.message import Message, dumps

LONGEST_ANSWER: Final = 2**20
"""Bytes. A longer answer is no summary, which has one page."""


async def with_summary(gateway: Gateway, place: Place, task: Task) -> Task:
    """Return the task with the newest summary of the messages that will be folded, if there is one.

    The layout that says which messages will be folded stays with the task: the fold is made from it. Long conversations are laid out in
    a thread.
    """
    if not place.route.summary.model or task.fits:
        return task
    source, chain = await gateway.threads.run(lambda: _source_and_chain(task), size_bytes=len(task.conversation.raw))
    summary = await gateway.summariser.find(chain) if chain else None
    return replace(task, summary=summary, prepared=replace(source, summary=summary))


def _source_and_chain(task: Task) -> tuple[Source, list[str]]:
    """Return the source of the fold, and the chained hashes of the messages before its cut."""
    source = _source(task)
    cut = messages_before_cut(source)
    return source, identity.chain(source.sent[:cut], task.scope) if cut else []


def consider(served: ServedRequest, state: Answered) -> None:
    """Request a summary if the conversation will soon need one. A failure is only logged."""
    try:
        request_if_needed(served.gateway, served.setup, state, served.headers)
    except Exception as error:  # noqa: BLE001  # promise 6: this conversation has no summary
        served.gateway.failed("summary", error)


def request_if_needed(gateway: Gateway, setup: Setup, state: Answered, headers: CIMultiDict[str]) -> None:
    """Request a summary in the background if the conversation will soon need one."""
    task, attempt = state.visit.task, state.attempt
    if task is None or attempt.rung > 1:
        return
    place = place_at(state.visit)
    settings = place.route.summary
    if not settings.model:
        return
    if attempt.draft is not None:
        used = 1.0  # after a fold the room is full
    else:
        used = max(attempt.prompt - task.fixed, 0) / max(ladder.budget_of(task).rounded_room, 1)
    if used >= settings.at:
        gateway.tasks.start(_start_job(gateway, _Wanted(setup, place, task, used, headers)), "summary")


class _Wanted(msgspec.Struct, frozen=True):
    """A conversation that may need a summary."""

    setup: Setup
    place: Place
    task: Task
    used: float
    """Share of the room that was in use; 1 when something was folded."""
    headers: CIMultiDict[str]


async def _start_job(gateway: Gateway, wanted: _Wanted) -> None:
    """Prepare the job of a summary, and give it to the summariser."""
    place, task = wanted.place, wanted.task
    settings = place.route.summary
    summariser = _summariser(gateway, wanted.setup, settings)
    source = task.prepared
    try:
        if source is None:
            source = await gateway.threads.run_later(lambda: _source(task), size_bytes=len(task.conversation.raw))
    except QueueFull:
        return  # the next request of this conversation asks again
    job = SummaryJob(
        scope=task.scope,
        source=source,
        used=wanted.used,
        at=settings.at,
        model=summariser.route.name,
        window=summariser.window,
        count=message_cost.counter(summariser.family, memory=gateway.memory).text,
        deadline_s=settings.deadline_s,
        tokens_per_hour=settings.tokens_per_hour,
        payer="" if summariser.target.endpoint.key else identity_of(summariser.target, wanted.headers, "").key,
    )
    gateway.summariser.make_if_needed(job, _ask(gateway, summariser.target, place.target, wanted.headers))


def _source(task: Task) -> Source:
    return source_of(
        task.conversation.messages, ladder.budget_of(task), task.counter, task.policy, memory=task.conversation.memory
    )


def _summariser(gateway: Gateway, setup: Setup, settings: SummarySettings) -> Place:
    route = setup.settings.route(settings.model)
    return place_of(gateway, setup, route, setup.targets[settings.upstream or route.upstream])


def _ask(gateway: Gateway, summariser: Target, answered: Target, headers: CIMultiDict[str]) -> AskModel:
    """Return how to call the summariser: with its configured key, or the client's if it is the client's own upstream."""
    own = CIMultiDict({"Content-Type": "application/json"})
    if summariser.name == answered.name:
        own.extend((name, value) for name, value in headers.items() if name.lower() in CREDENTIALS)
    authorised = summariser.authorised(own)

    async def ask(model: str, messages: Sequence[Message]) -> bytes | None:
        call = UpstreamCall("POST", "/chat/completions", "", model)
        body = dumps({"model": model, "messages": list(messages)})
        try:
            response = await gateway.client.send(summariser, call, CIMultiDict(authorised), body)
        except UpstreamUnreachable:
            return None
        with closing(response):
            answer = await read_body(response, LONGEST_ANSWER + 1)
            return answer if response.status == 200 and len(answer) <= LONGEST_ANSWER else None

    return ask
