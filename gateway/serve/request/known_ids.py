"""The ids that only one upstream knows: a request that names one goes to the upstream that made it.

An upstream gives an id to what it stores: a response, a file, a container (``previous_response_id``, ``file_id``). Any other upstream answers
that it does not know the id. So the ids in each answer are remembered with their upstream.

With one upstream nothing is read and nothing is remembered. A failure here costs no request: it goes where it would go without an id.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from gateway.context.life.states import Answered
from gateway.serve.answers.answer import Answer, readable
from gateway.serve.answers.tail import last_events
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.callers import Identity
from gateway.serve.request.place import place_at
from gateway.serve.request.served import ServedRequest
from gateway.upstream.client import Target
from gateway.wire.format import Conversation
from providers.sse import Events

IdentityAt = Callable[[Target], Identity]
"""Returns the client's hashes at an upstream."""


async def upstream_of_ids(
    gateway: Gateway, identity_at: IdentityAt, targets: Iterable[Target], ids: tuple[str, ...]
) -> Target | None:
    """Return which of these upstreams made the first of the ids that is known; None if none is known."""
    if not ids:
        return None
    try:
        by_name = {target.name: target for target in targets}
        scopes = {name: identity_at(target).scope for name, target in by_name.items()}
        return by_name.get(await gateway.known_ids.find(ids, scopes))
    except Exception as error:  # noqa: BLE001  # promise 6
        gateway.failed("ids", error)
        return None


async def upstream_of_conversation(
    gateway: Gateway, identity_at: IdentityAt, targets: Sequence[Target], conversation: Conversation
) -> Target | None:
    """Return which of a model's own upstreams made the ids that a conversation names; None if none is known."""
    if len(targets) == 1:
        return None
    try:
        ids = conversation.format.ids.named(conversation)
    except Exception as error:  # noqa: BLE001  # promise 6
        gateway.failed("ids", error)
        return None
    return await upstream_of_ids(gateway, identity_at, targets, ids)


def may_have_new_ids(served: ServedRequest, state: Answered) -> bool:
    """Return whether an answer may have ids that must be remembered: only if there is another upstream, which does not know them."""
    conversation = state.life.conversation
    return len(served.setup.targets) > 1 and state.good and conversation.format.ids.may_make(conversation)


async def remember_before_delivery(served: ServedRequest, state: Answered) -> None:
    """Remember the ids in what has arrived of an answer. The client may use them at once, at another worker, so this waits until they are
    stored, but no longer than a request may wait for the store."""
    if writes := _remember(served, state, _first_texts(state.reply.handle)):
        await asyncio.wait(writes, timeout=served.setup.settings.store.timeout_s)


def remember_after_delivery(served: ServedRequest, state: Answered, tail: bytes) -> None:
    """Remember the ids at the end of an answer that arrived in pieces: those of its items."""
    if may_have_new_ids(served, state):
        _remember(served, state, last_events(tail) if state.reply.handle.is_stream else [tail])


def _remember(served: ServedRequest, state: Answered, texts: Iterable[bytes]) -> list[asyncio.Task[None]]:
    """Remember the ids in the texts of an answer; return the writes."""
    try:
        made = dict.fromkeys(chain.from_iterable(map(state.life.conversation.format.ids.made, texts)))
        return served.gateway.known_ids.add(made, place_at(state.visit).caller.scope)
    except Exception as error:  # noqa: BLE001  # promise 6
        served.gateway.failed("ids", error)
        return []


def _first_texts(answer: Answer) -> list[bytes]:
    """Return what has arrived of an answer: its text, or of a stream the first event and the last ones."""
    if not answer.is_stream:
        return [answer.text] if answer.complete else []
    text = readable(answer.response, answer.held)
    first = next(iter(Events().feed(text)), None)
    return [
        event
        for event in (first.data if first is not None else b"", *(last_events(text) if answer.complete else ()))
        if event
    ]
