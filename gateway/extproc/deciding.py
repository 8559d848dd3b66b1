"""What is sent in one attempt of Envoy's, and whether a refused one can be followed by a smaller one.

The same table of states as in the gateway (`gateway.context.life.transitions`) decides. Envoy chooses the server and sends, so a request has
one place here, and the states before a retry are gone through again: the next attempt may come to another processor.
"""

from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.config import Mode, Route
from gateway.context.life.events import AttemptMade, Event, PlacesFound, ReplyCame
from gateway.context.life.replies import Reply
from gateway.context.life.states import Ended, Life, Ready, Received, Refused, State, Undecided
from gateway.context.life.transitions import advance
from gateway.extproc.carried import CarriedRefusal
from gateway.serve.incoming.callers import Identity, identity_of
from gateway.serve.request import decisions
from gateway.serve.request.places import place_of
from gateway.serve.request.window import AttemptContents
from gateway.serve.shared import Gateway, Setup
from gateway.state.pool import LARGE
from gateway.wire.format import Conversation


@dataclass(slots=True)
class Asked:
    """One request that Envoy asks about, and the configuration at its start."""

    gateway: Gateway
    setup: Setup
    route: Route
    request: Conversation
    mode: Mode
    headers: CIMultiDict[str]
    request_id: str
    address: str
    """The client's address, as Envoy tells it; empty where it does not."""
    contents: AttemptContents | None = None

    @property
    def identity(self) -> Identity:
        """The hashes of the caller at the model's upstream."""
        return identity_of(self.setup.targets[self.route.upstream], self.headers, self.address)


async def decide(asked: Asked, refused: tuple[CarriedRefusal, ...]) -> State:
    """Return what to send: `Ready`, or `TooLarge` when no form can fit. ``refused`` are the refusals of earlier attempts.

    A refusal of something larger than what would be sent now is only counted: what it taught is already used.
    """
    state = await _settled(asked, await _placed(asked))
    for each in refused:
        if not isinstance(state, Ready):
            break
        if len(state.attempt.body) >= each.sent:
            state = await _settled(asked, advance(state, ReplyCame(Reply(400, each.refusal))), again=True)
        else:
            life = replace(state.life, calls=state.life.calls + 1, refusals=(*state.life.refusals, each.sign))
            state = replace(state, life=life)
    return state


async def after(asked: Asked, state: Ready, reply: Reply) -> State:
    """Return what follows an answer: `Ready` with a smaller attempt, or `Answered` when the client gets this answer."""
    return await _settled(asked, advance(state, ReplyCame(reply)))


async def _placed(asked: Asked) -> State:
    gateway, route = asked.gateway, asked.route
    target, learner = asked.setup.targets[route.upstream], asked.identity.learner
    owner = target.name, route.name, learner
    if gateway.learning.is_due(owner):
        await gateway.learning.fetch(owner)
    place = place_of(gateway, asked.setup, route, target, learner)
    return advance(Received(Life(asked.request, asked.mode)), PlacesFound((place,)))


async def _settled(asked: Asked, state: State, *, again: bool = False) -> State:
    """Go from state to state until something can be sent or has to be answered. ``again``: an earlier attempt learned from it."""
    while not isinstance(state, Ready | Ended):
        event = await _event(asked, state, again=again)
        size_bytes = len(asked.request.raw)  # writing another model's name into a large body would delay the event loop
        state = await asked.gateway.pool.run(
            partial(advance, state, event), size_bytes=size_bytes if size_bytes >= LARGE else 0
        )
    return state


async def _event(asked: Asked, state: Received | Undecided, *, again: bool) -> Event:
    """Do the work of a state."""
    if isinstance(state, Received):
        return PlacesFound(state.life.places)
    if again and isinstance(state, Refused):
        return AttemptMade(await asked.gateway.pool.run(state.work, size_bytes=len(asked.request.raw)))
    return await decisions.decide(asked, state)
