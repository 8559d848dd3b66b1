"""A message that asks for a response on a Responses socket: the states of its life, and the fields of its record that they decide.

The table of states is that of requests (`gateway.context.life.transitions`). A message has one place: the upstream of its socket.
"""

from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.config import Mode
from gateway.context.life.events import AttemptMade, Event, PlacesFound
from gateway.context.life.states import Life, Measured, Ready, Received, State
from gateway.context.life.transitions import advance
from gateway.serve.gateway import Gateway
from gateway.serve.request import outcome
from gateway.serve.request.contents import AttemptContents
from gateway.serve.request.decisions import DECISIONS, Decisions, make_first_attempt, run_decisions
from gateway.serve.request.place import Place
from gateway.wire.format import Conversation


class Asking(msgspec.Struct):
    """A message that asks for a response, until its answer begins. Implements `Decidable` for decisions."""

    gateway: Gateway
    request_id: str
    state: State
    contents: AttemptContents | None = None

    @property
    def ready(self) -> Ready:
        """The state, once it says what is sent."""
        assert isinstance(self.state, Ready)
        return self.state

    def fields(self) -> dict[str, Any]:
        """Return the fields of the record that describe what is sent."""
        found = outcome.of(self.state)
        return {
            "why": found.why,
            "action": found.action,
            "window": found.window,
            "refusals": self.state.life.refusals,
            "basis": "bytes" if found.bounded else "",
            **outcome.counts(found, self.contents),
        }


async def _make_first_attempt(asking: Asking, state: Measured) -> Event:
    """Make the first attempt. Also one that cannot fit is sent: the upstream refuses it with an event of its API."""
    made = await make_first_attempt(asking, state)
    return replace(made, cannot_fit=False) if isinstance(made, AttemptMade) else made


SOCKET_DECISIONS: Final[Decisions] = MappingProxyType({**DECISIONS, Measured: _make_first_attempt})
"""The decisions about a message. After each comes a form of it that can be sent, or the upstream's own refusal."""


async def ask(gateway: Gateway, conversation: Conversation, mode: Mode, place: Place) -> Asking:
    """Decide what is sent of a message."""
    asking = Asking(gateway, gateway.request_id(), advance(Received(Life(conversation, mode)), PlacesFound((place,))))
    asking.state = await run_decisions(asking, asking.state, SOCKET_DECISIONS)
    return asking
