"""The places of a request: the models and upstreams that may answer it, in order.

Facts about a model are fetched when they are due. Upstreams that failed lately come last.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.config import Route
from gateway.context.life.events import Event, PartFailed, PlacesFound
from gateway.context.life.states import Received
from gateway.serve.request import model_lists
from gateway.serve.request.known_ids import upstream_of_conversation
from gateway.serve.request.place import SOURCES_OF_UNKNOWN_MODELS, Place, place_of, window_at
from gateway.serve.request.served import ServedRequest
from gateway.upstream.client import Target
from gateway.wire.format import Conversation
from gateway.wire.message import text_of

SHORT_BODY: Final = 4096
"""Bytes. A body this short fits every server, so the window of a running server need not be read yet."""


async def find_places(served: ServedRequest, state: Received) -> Event:
    """Return the places to try in order, with the models that may be tried if the request is too long for all of them."""
    conversation = state.life.conversation
    try:
        own = [served.setup.targets[name] for name, _ in served.route.choices]
        await _fetch_facts(served, own)
        # With one upstream nothing is to be chosen.
        holder = (
            await upstream_of_conversation(served.gateway, served.identity_at, own, conversation)
            if len(own) > 1
            else None
        )
        places = places_for(served, conversation, holder)
        larger = _larger_places(served, conversation, places, stays=_must_stay(conversation, holder))
        return PlacesFound(tuple(places), tuple(_that_serve(conversation, larger)))
    except Exception as error:  # noqa: BLE001  # promise 6: the request is passed through
        served.gateway.failed("places", error)
        return PartFailed()


async def _fetch_facts(served: ServedRequest, targets: Iterable[Target]) -> None:
    """Fetch what the store and the model lists of these upstreams say about the model, where that is due."""
    learning = served.gateway.learning
    for target in targets:
        owner = target.name, served.route.name, served.identity_at(target).learner
        if learning.owners.is_due(owner):
            await learning.owners.fetch(owner)
        if learning.lists.is_due(target.name) and _needs_list(served, target):
            await model_lists.ask_windows(served.gateway, target, served.headers)


def _needs_list(served: ServedRequest, target: Target) -> bool:
    """Return whether an upstream's model list is needed: it may state the model's window or its vocabulary, and the request may be too
    long.

    The operator of a server may give any model this name, so only a vendor's name of a model proves its window and its vocabulary.
    """
    name_proves_nothing = not target.vendor and len(served.raw) > SHORT_BODY
    if served.route.window is not None:
        return name_proves_nothing and served.route.tokenizer == "auto" and len(served.raw) > served.route.window
    _, source = window_at(served.gateway, served.setup, served.route, target)
    return source in SOURCES_OF_UNKNOWN_MODELS or name_proves_nothing


def places_for(served: ServedRequest, conversation: Conversation, holder: Target | None = None) -> list[Place]:
    """Return the places that may answer, in order: the model's own upstreams, then its fallbacks, each with its own window.

    ``holder`` is the upstream that made what the conversation names by an id, if one is known. Then no other upstream is asked: it would
    answer that it does not know the id, and the client would take that for the end of its conversation instead of trying again.
    """
    own = [
        _place_for_client(served, conversation, served.route, name)
        for name in _own_upstreams(served, conversation, holder)
    ]
    fallbacks = [
        _place_for_client(served, conversation, other, other.upstream)
        for other in served.setup.settings.fallbacks(served.route)
    ]
    if fallbacks and _must_stay(conversation, holder):
        own_names = {place.upstream for place in own}
        fallbacks = [place for place in fallbacks if place.upstream in own_names]
    found, balance = _that_serve(conversation, [*own, *fallbacks]), served.gateway.balance
    if len(found) > 1:
        found.sort(key=lambda place: balance.resting(place.owner))
    return found


def _that_serve(conversation: Conversation, places: Iterable[Place]) -> list[Place]:
    """Return the places whose upstreams have the endpoint of a request."""
    path = conversation.format.path
    return [place for place in places if place.target.serves("POST", path)]


def _must_stay(conversation: Conversation, holder: Target | None) -> bool:
    """Return whether only an upstream of the client's own model can serve a request, because it names something by an id."""
    return conversation.continues or holder is not None


def _larger_places(
    served: ServedRequest, conversation: Conversation, places: Sequence[Place], *, stays: bool
) -> Iterator[Place]:
    """Yield the places of the models with a larger window, configured as ``on_overflow``; a request that ``stays`` only goes to upstreams
    of ``places``."""
    larger = served.setup.settings.larger(served.route)
    usual_names = {place.upstream for place in places} if larger else frozenset()
    for other in larger:
        order = served.gateway.balance.order(other.choices, resting=_resting(served, other))
        if stays:
            order = [name for name in order if name in usual_names]
        if order:
            yield _place_for_client(served, conversation, other, order[0])


def _place_for_client(served: ServedRequest, conversation: Conversation, route: Route, upstream: str) -> Place:
    """Return a model at an upstream as a place for this client."""
    target, asked_window = served.setup.targets[upstream], conversation.asked_window
    return place_of(served.gateway, served.setup, route, target, served.identity_at(target), asked_window=asked_window)


def _own_upstreams(served: ServedRequest, conversation: Conversation, holder: Target | None) -> list[str]:
    """Return the names of the model's own upstreams, or only of ``holder``, if there is one. All requests of a conversation go to the same
    upstream, as long as it works."""
    if holder is not None:
        return [holder.name]
    choices = served.route.choices
    if len(choices) == 1:
        return [name for name, _ in choices]
    same_in_all_turns = served.session.encode("utf-8", "surrogatepass") or _beginning_of(conversation)
    return served.gateway.balance.order(choices, same_in_all_turns, _resting(served, served.route))


def _resting(served: ServedRequest, route: Route) -> frozenset[str]:
    """Return the upstreams of a model that rest for this client."""
    balance, targets = served.gateway.balance, served.setup.targets
    names = [name for name, _ in route.choices]
    return frozenset(
        name for name in names if balance.resting((name, route.name, served.identity_at(targets[name]).learner))
    )


def _beginning_of(conversation: Conversation) -> bytes:
    """Return the part of a conversation that stays the same in all turns, so that all its requests go to one upstream. Empty
    for a first request, which may go to any."""
    if not any(message.get("role") == "assistant" for message in conversation.messages):
        return b""
    opening = [text_of(message)[:1000] for message in conversation.messages[:3]]
    return "\n".join(opening).encode("utf-8", "surrogatepass")
