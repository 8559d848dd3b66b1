"""Which upstream has what a request's path names: a response, a file, a batch. Such a request names no model."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
from aiohttp import web

from gateway.serve import arrival as arrivals
from gateway.serve import key_models, keys
from gateway.serve.answers.answer import Answer
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.request.known_ids import upstream_of_ids
from gateway.upstream.client import Target
from gateway.wire.server_ids import MOST, made_in

ROOTS: Final = frozenset(
    {
        "assistants", "batches", "chat", "chatkit", "containers", "conversations", "evals", "files", "fine_tuning", "messages", "realtime",
        "responses", "skills", "threads", "uploads", "vector_stores", "videos",
    }
)  # fmt: skip
"""First parts of paths below ``/v1`` under which servers keep things."""
LONGEST_WORD: Final = 24
"""Characters. Longer parts of a path are ids, and so are those with a digit: no word of an API is or has that."""
DIGITS: Final = frozenset("0123456789")
CALL: Final = "call_id"
"""The member of the query by which a socket joins a call of Realtime: https://platform.openai.com/docs/guides/realtime-server-controls."""
MISSING: Final = 404
"""The status with which servers say that they do not know an id."""


class Destinations(msgspec.Struct, frozen=True):
    """The upstreams to which a request may be sent, and what it names there."""

    targets: tuple[Target, ...]
    """The upstream to ask, and those that may be asked after it has said that it does not know the id."""
    ids: tuple[str, ...] = ()
    """The ids that the path names."""


async def destinations_of(gateway: Gateway, setup: Setup, request: web.BaseRequest, model: str) -> Destinations:
    """Return where a request is sent: to the upstream that has what its path names; if none is known, to that of its model or the
    default one.

    A model that the request names has precedence: its upstreams alone are asked. Only reading is tried at a second upstream, because any
    other request might have been carried out at the first one.
    """
    usual = setup.target_of(model)
    if len(setup.targets) == 1 or not (ids := _ids_in(request)):
        return Destinations((usual,))
    names = [name for name, _ in setup.settings.route(model).choices] if model else list(setup.targets)
    identity_at = partial(arrivals.of(request).identity_at, headers=keys.forwarded(request))
    found = await upstream_of_ids(gateway, identity_at, map(setup.targets.__getitem__, names), ids)
    if found is not None:
        return Destinations((found,), ids)
    return Destinations((usual, *_others(setup, request, usual, model)), ids)


def _ids_in(request: web.BaseRequest) -> tuple[str, ...]:
    """Return the parts of a path that may be ids, the last one first: what is inside another thing is where that is."""
    root, *parts = _parts(request)
    if root not in ROOTS:
        return ()
    named = [part for part in reversed(parts) if len(part) > LONGEST_WORD or not DIGITS.isdisjoint(part)]
    if root == "realtime" and (call := request.rel_url.query.get(CALL)):
        named.append(call)
    return tuple(named[:MOST])


def _parts(request: web.BaseRequest) -> list[str]:
    """Return the parts of a path below ``/v1``; the first one says what kind of thing it is about."""
    return request.rel_url.raw_path.partition("/v1/")[2].split("/")


def _others(setup: Setup, request: web.BaseRequest, usual: Target, model: str) -> Sequence[Target]:
    """Return the upstreams that may have what a request only reads: those that serve a model together with the usual one, so that the
    client's key may reach them. None for a key that is held to some models."""
    if request.method != "GET" or request.can_read_body or key_models.is_restricted(request):
        return ()
    settings = setup.settings
    routes = [settings.route(model)] if model else [settings.route(name) for name in settings.models]
    together = [dict(route.choices) for route in routes if usual.name in dict(route.choices)]
    names = dict.fromkeys(name for choices in together for name in choices if name != usual.name)
    return [setup.targets[name] for name in names]


def remember(
    gateway: Gateway, request: web.BaseRequest, destinations: Destinations, answer: Answer, text: bytes
) -> None:
    """Remember the ids that a successful answer shows an upstream to have: those of the path, and that of what a POST has made. ``text``
    is the answer, as far as it was kept."""
    identity = arrivals.of(request).identities.get(answer.target.name)
    if len(gateway.setup.targets) == 1 or identity is None or answer.status >= 300 or _parts(request)[0] not in ROOTS:
        return
    try:
        made = [*made_in(text), answer.response.headers.get("Location", "").rpartition("/")[2]]
        found = [*destinations.ids[-1:], *(filter(None, made) if request.method == "POST" else ())]
        gateway.known_ids.add(found, identity.scope)
    except Exception as error:  # noqa: BLE001  # promise 6
        gateway.failed("ids", error)
