"""Explain what would be done to a request and why: the same decisions as in serving, without calling an upstream."""

from typing import TYPE_CHECKING, Any, Final

import orjson

from gateway.context.life import ladder
from gateway.context.life.attempt import Attempt
from gateway.context.life.task import Task
from gateway.serve.gateway import Gateway
from gateway.serve.request import measure
from gateway.serve.request.place import Place, place_of
from gateway.wire.chat import CHAT
from gateway.wire.format import Conversation

if TYPE_CHECKING:
    from gateway.context.write.explain import Fate

ASKED: Final = "the request"
"""The source of a window that the request itself asks for."""


async def explain(gateway: Gateway, conversation: Conversation) -> dict[str, Any]:
    """Return the documented explanation of one request; sizes in tokens, ``messages`` as they would be sent.

    It always counts, while serving may prove the fit by size alone.
    """
    place, task = await task_of(gateway, conversation)
    # Beside the event loop: a fold of megabytes takes seconds.
    return await gateway.threads.run(lambda: _explained(conversation, place, task), size_bytes=len(conversation.raw))


def _explained(conversation: Conversation, place: Place, task: Task) -> dict[str, Any]:
    attempt = ladder.first_attempt(task)
    refused = ladder.certainly_too_long(task, attempt)
    return {
        "model": conversation.model,
        "format": conversation.format.name,
        "upstream": place.target.name,
        "window": task.window,
        "window_from": ASKED if place.configured_window == conversation.asked_window else place.window_source,
        "reserve": task.reserve,
        "margin": task.margin,
        "prompt_tokens": task.prompt,
        "messages_tokens": task.message_tokens,
        "tools_tokens": task.prompt - task.message_tokens,
        "basis": task.basis,
        "fits": task.fits,
        "action": "error" if refused else "fold" if attempt.altered else "none",
        "prompt_tokens_after": attempt.prompt,
        "max_tokens_after": attempt.output,
        "turns_folded": attempt.turns_folded,
        "steps": [{"stage": step.stage, "saved": step.saved, "detail": step.detail} for step in attempt.steps],
        "messages": _sent(conversation, attempt),
    }


def _sent(conversation: Conversation, attempt: Attempt) -> list[Any]:
    """Return the messages or items that would be sent, in the format of the request."""
    if conversation.format is CHAT:
        return list(attempt.draft.messages if attempt.draft else conversation.messages)
    found = conversation.format.parse(attempt.body)
    name = "input" if conversation.format.name == "responses" else "messages"
    items = orjson.loads(found.raw)[name] if found is not None else []
    return items if isinstance(items, list) else [items]


async def fates(gateway: Gateway, conversation: Conversation) -> "tuple[Fate, ...]":
    """Return for every line whether a fold keeps it, and why."""
    _, task = await task_of(gateway, conversation)
    budget = ladder.budget_of(task)
    from gateway.context.write.explain import explain_lines  # noqa: PLC0415  # loads the fold, which a start does not need

    return explain_lines(conversation.messages, budget, task.counter, task.policy, memory=conversation.memory)


async def task_of(gateway: Gateway, conversation: Conversation) -> tuple[Place, Task]:
    """Return where a request would go, and what it must fit there. It is always counted."""
    setup = gateway.setup
    route = setup.settings.route(conversation.model)
    target, asked_window = setup.targets[route.upstream], conversation.asked_window
    place = place_of(gateway, setup, route, target, asked_window=asked_window)
    return place, await measure.task_for(gateway, place, conversation)
