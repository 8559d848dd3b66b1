"""The places of a request: the models and upstreams that may answer it, in order.

Facts about a model are fetched when they are due. Upstreams that failed lately come last.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.config import Route
from gateway.context.life.events import Event, PartFailed, PlacesFound
from gateway.context.life.states import Received
from gateway.serve.request import model_lists
from gateway.serve.request.known_ids import upstream_in
from gateway.serve.request.place import UNKNOWN, Place, place_of, window_at
from gateway.serve.request.served import ServedRequest
from gateway.upstream.client import Target
from gateway.wire.format import Conversation
from gateway.wire.message import text_of

SHORT_BODY: Final = 4096
"""Bytes. A body this short fits every server, so the window of a running server need not be read yet."""


async def find_places(served: ServedRequest, state: Received) -> Event:
    """Return the places to try in order, with the models that may be tried if the request is too long for all of them.

    First, what the store and the upstreams' model lists say about the model is fetched, where that is due.
    """
    request = state.life.request
    learning = served.gateway.learning
    try:
        own = [served.setup.targets[name] for name, _ in served.route.choices]
        for target in own:
            owner = target.name, served.route.name, served.identity_at(target).learner
            if learning.is_due(owner):
                await learning.fetch(owner)
            if learning.lists.is_due(target.name) and _needs_list(served, target):
                await model_lists.ask_windows(served.gateway, target, served.headers)
        if len(own) > 1:
            served.known_at = await upstream_in(served.gateway, served.identity_at, own, request)
        places = places_for(served, request)
        return PlacesFound(tuple(places), tuple(_larger_places(served, request, places)))
    except Exception as error:  # noqa: BLE001  # promise 6: the request is passed through
        served.gateway.failed("places", error)
        return PartFailed()


def _needs_list(served: ServedRequest, target: Target) -> bool:
    """Return whether an upstream's model list may tell more about the window or the vocabulary, and the request could be too
    long."""
    names_prove_nothing = not target.vendor and len(served.raw) > SHORT_BODY
    if served.route.window is not None:
        return names_prove_nothing and served.route.tokenizer == "auto" and len(served.raw) > served.route.window
    _, source = window_at(served.gateway, served.setup, served.route, target)
    return source in UNKNOWN or names_prove_nothing


def places_for(served: ServedRequest, request: Conversation) -> list[Place]:
    """Return the places that may answer, in order: the model's own upstreams, then its fallbacks, each with its own window.

    If only the upstream has what the request names, no other upstream is asked. It would answer that it does not know this, and the
    client would take that for the end of its conversation instead of trying again.
    """
    own = [_place_for_client(served, served.route, name) for name in _own_upstreams(served, request)]
    fallbacks = [
        _place_for_client(served, other, other.upstream) for other in served.setup.settings.fallbacks(served.route)
    ]
    if fallbacks and _needs_own_upstream(served, request):
        known = {place.upstream for place in own}
        fallbacks = [place for place in fallbacks if place.upstream in known]
    found, balance = [*own, *fallbacks], served.gateway.balance
    if len(found) > 1:
        found.sort(key=lambda place: balance.resting(place.owner))
    return found


def _needs_own_upstream(served: ServedRequest, request: Conversation) -> bool:
    """Return whether only an upstream of the model has what the request names."""
    return request.continues or served.known_at is not None


def _larger_places(served: ServedRequest, request: Conversation, places: Sequence[Place]) -> Iterator[Place]:
    """Yield the places of the models with a larger window, configured as ``on_overflow``; at other upstreams than those of ``places``
    only if these can serve the request."""
    larger = served.setup.settings.larger(served.route)
    known = {place.upstream for place in places} if larger else frozenset()
    for other in larger:
        order = served.gateway.balance.order(other.choices, resting=_resting(served, other))
        if _needs_own_upstream(served, request):
            order = [name for name in order if name in known]
        if order:
            yield _place_for_client(served, other, order[0])


def _place_for_client(served: ServedRequest, route: Route, upstream: str) -> Place:
    """Return a model at an upstream as a place for this client."""
    target = served.setup.targets[upstream]
    return place_of(served.gateway, served.setup, route, target, served.identity_at(target))


def _own_upstreams(served: ServedRequest, request: Conversation) -> list[str]:
    """Return the names of the model's own upstreams. All requests of a conversation go to the same one, as long as it works; those that
    name what one upstream has go to that one."""
    if served.known_at is not None:
        return [served.known_at.name]
    choices = served.route.choices
    if len(choices) == 1:
        return [name for name, _ in choices]
    conversation = served.session.encode("utf-8", "surrogatepass") or _beginning_of(request)
    return served.gateway.balance.order(choices, conversation, _resting(served, served.route))


def _resting(served: ServedRequest, route: Route) -> frozenset[str]:
    """Return the upstreams of a model that rest for this client."""
    balance, targets = served.gateway.balance, served.setup.targets
    names = [name for name, _ in route.choices]
    return frozenset(
        name for name in names if balance.resting((name, route.name, served.identity_at(targets[name]).learner))
    )


def _beginning_of(request: Conversation) -> bytes:
    """Return the part of a conversation that stays the same in all turns, so that all its requests go to one upstream. Empty
    for a first request, which may go to any."""
    if not any(message.get("role") == "assistant" for message in request.messages):
        return b""
    opening = [text_of(message)[:1000] for message in request.messages[:3]]
    return "\n".join(opening).encode("utf-8", "surrogatepass")
