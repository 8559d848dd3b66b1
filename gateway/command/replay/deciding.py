"""Decide about one past request as the gateway would: the same count, the same fold, no call."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from gateway.command.replay.logs import Batch, body_in
from gateway.config import Settings
from gateway.context.life import identity, ladder
from gateway.context.life.attempt import Attempt
from gateway.context.life.task import Task
from gateway.serve.admin.explain import task_of
from gateway.serve.gateway import Gateway
from gateway.serve.record import LONGEST_NAME
from gateway.serve.request.contents import lost_by, parts_of
from gateway.state.store import open_store
from gateway.wire.formats import recognise
from gateway.wire.message import Message


class Decided(NamedTuple):
    """The outcome that one request would have had. Counts are tokens."""

    format: str
    model: str
    conversation: str
    window: int
    reserve: int
    before: int
    after: int
    action: str
    """``none``, ``fold`` or ``error``, as in the answer's header."""
    too_long: bool
    """Whether the unchanged request and its requested output exceed the window: the upstream would have refused it."""
    exact: bool
    turns: int
    lost: tuple[int, ...]
    """As in `gateway.observe.exchange.Lost`."""
    parts: tuple[int, ...]
    """As in `gateway.observe.exchange.Parts`."""
    steps: tuple[tuple[str, int], ...]
    given: tuple[tuple[bytes, int], ...]
    """A short hash and the tokens of each message of the client: these decide what a prompt cache has."""
    sent: tuple[tuple[bytes, int], ...]
    """The same of each message as it would have been sent."""


class Results(NamedTuple):
    """The outcomes of one batch of lines."""

    decided: tuple[Decided, ...]
    unreadable: int
    """Lines without a request."""
    failed: int
    """Requests for which our own code failed."""
    read: int
    """Bytes of the file."""


class Decider:
    """Decides about batches in one process. It keeps facts about messages, so that a grown conversation costs only its new messages."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._gateway = self._loop.run_until_complete(_opened(settings))

    def decide(self, batch: Batch) -> Results:
        """Decide about each line."""
        return self._loop.run_until_complete(self._decide(batch))

    def close(self) -> None:
        """End the process's gateway."""
        self._loop.run_until_complete(self._gateway.close())
        self._loop.close()

    async def _decide(self, batch: Batch) -> Results:
        decided: list[Decided] = []
        unreadable = failed = 0
        for line in batch.lines:
            if not line.strip():
                continue
            try:
                found = await self._one(line)
            except Exception:  # noqa: BLE001  # promise 6: one strange request is counted, and the others go on
                failed += 1
                continue
            if found is None:
                unreadable += 1
            else:
                decided.append(found)
        return Results(tuple(decided), unreadable, failed, batch.read)

    async def _one(self, line: bytes) -> Decided | None:
        body = body_in(line)
        request = recognise(body, self._gateway.memory) if body is not None else None
        if request is None:
            return None
        _, task = await task_of(self._gateway, request)
        attempt = ladder.first_attempt(task)
        refused = ladder.certainly_too_long(task, attempt)
        return Decided(
            format=request.format.name,
            model=request.model[:LONGEST_NAME],
            conversation=identity.name_of("", request.opening),
            window=task.window,
            reserve=task.reserve,
            before=task.prompt,
            after=task.prompt if refused else attempt.prompt,
            action="error" if refused else "fold" if attempt.altered else "none",
            too_long=task.prompt + (task.output_limit or 0) > task.window,
            exact=task.basis == "exact",
            turns=0 if refused else attempt.turns_folded,
            lost=() if refused else tuple(lost_by(task, attempt)),
            parts=() if refused else tuple(parts_of(task, attempt)),
            steps=() if refused else tuple((step.stage, step.saved) for step in attempt.steps),
            given=_prefix(task, request.messages, None),
            sent=_prefix(task, task.messages_of(attempt), attempt),
        )


async def _opened(settings: Settings) -> Gateway:
    return Gateway(settings, open_store("memory://"))


def _prefix(task: Task, messages: Sequence[Message], attempt: Attempt | None) -> tuple[tuple[bytes, int], ...]:
    draft = attempt.draft if attempt is not None else None
    costs = draft.costs if draft is not None else tuple(map(task.counter.message, messages))
    return ((b"", task.fixed), *zip(map(identity.hash_of, messages), costs, strict=True))
