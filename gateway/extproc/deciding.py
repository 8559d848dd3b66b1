"""Decide what Envoy sends in one attempt, and whether a smaller attempt can follow a refused one.

The table of states is the gateway's (`gateway.context.life.transitions`). Envoy chooses the server and sends the request, so a request has
one place here. The next attempt may reach another processor, so each attempt goes through all states from the beginning.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.config import Mode, Route
from gateway.context.life.events import AttemptMade, Event, PlacesFound, ReplyCame
from gateway.context.life.replies import Reply
from gateway.context.life.states import Life, Ready, Received, Refused, State
from gateway.context.life.transitions import advance
from gateway.extproc.carried import CarriedRefusal
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.callers import Identity, identity_of
from gateway.serve.request.contents import AttemptContents
from gateway.serve.request.decisions import DECISIONS, Decisions, run_decisions
from gateway.serve.request.place import place_of
from gateway.wire.format import Conversation


@dataclass(slots=True)
class EnvoyRequest:
    """One request from Envoy, and the configuration at its start."""

    gateway: Gateway
    setup: Setup
    route: Route
    conversation: Conversation
    mode: Mode
    headers: CIMultiDict[str]
    request_id: str
    address: str
    """The client's address, as Envoy states it; else empty."""
    contents: AttemptContents | None = None

    @property
    def identity(self) -> Identity:
        """The hashes of the caller at the model's upstream."""
        return identity_of(self.setup.targets[self.route.upstream], self.headers, self.address)


async def decide(served: EnvoyRequest, refused: tuple[CarriedRefusal, ...]) -> State:
    """Return what to send: `Ready`, or `TooLarge` when no form can fit. ``refused`` are the refusals of earlier attempts.

    A refusal of a larger body than the one that would be sent now is only counted: its lesson is already used.
    """
    state = await run_decisions(served, await _start(served))
    for each in refused:
        if not isinstance(state, Ready):
            break
        if len(state.attempt.body) >= each.sent:
            state = await run_decisions(served, advance(state, ReplyCame(Reply(400, each.refusal))), LEARNED_BEFORE)
        else:
            life = replace(state.life, calls=state.life.calls + 1, refusals=(*state.life.refusals, each.sign))
            state = replace(state, life=life)
    return state


async def after(served: EnvoyRequest, state: Ready, reply: Reply) -> State:
    """Return the state after an answer: `Ready` with a smaller attempt, or `Answered` when the client gets this answer."""
    return await run_decisions(served, advance(state, ReplyCame(reply)))


async def _start(served: EnvoyRequest) -> State:
    """Return the first state of a request, at its one place; facts about its model are fetched if they are due."""
    gateway, route = served.gateway, served.route
    target = served.setup.targets[route.upstream]
    owner = target.name, route.name, served.identity.learner
    await gateway.learning.owners.fetch_if_due(owner)
    asked_window = served.conversation.asked_window
    place = place_of(gateway, served.setup, route, target, served.identity, asked_window=asked_window)
    return advance(Received(Life(served.conversation, served.mode)), PlacesFound((place,)))


async def _make_smaller_attempt(served: EnvoyRequest, state: Refused) -> Event:
    """Make a smaller attempt after a refusal that an earlier attempt has learned from."""
    return AttemptMade(
        await served.gateway.threads.run(state.make_smaller_attempt, size_bytes=len(served.conversation.raw))
    )


LEARNED_BEFORE: Final[Decisions] = MappingProxyType({**DECISIONS, Refused: _make_smaller_attempt})
"""The decisions about refusals of earlier attempts: nothing is learned from them a second time."""
