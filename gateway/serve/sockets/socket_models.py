"""The models that a socket's message names: its key and its upstream must be for them, and the upstream gets its own names of them."""

from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from gateway.serve import keys
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.sockets.socket_events import NotServed
from gateway.serve.sockets.socket_fold import Message, speaks_responses
from gateway.upstream.client import Target
from gateway.wire.model_name import models_in_message, with_names

Edit = Callable[[str], Awaitable[Message]]
"""Turns a client's message into the message for the upstream. May raise NotServed."""


async def check_and_name(gateway: Gateway, request: web.BaseRequest, target: Target, edit: Edit, text: str) -> Message:
    """Edit a message whose models are allowed; if it stays unchanged, an alias in it is replaced. Raises NotServed for other models."""
    in_pool = partial(gateway.pool.run, size_bytes=len(text) // READS_FASTER)
    if keys.is_restricted(request):
        # Of a Responses socket the upstream reads no model in the URL.
        allows = partial(keys.allows_message, request, text, names_model=speaks_responses(request))
        if not await in_pool(allows):
            raise NotServed("model_not_allowed")
    if speaks_responses(request) and len(gateway.setup.targets) > 1:
        await in_pool(partial(_check_upstream, gateway, target, text))
    message = await edit(text)
    if message.text is not text or not gateway.setup.has_aliases or '"model"' not in text:
        return message
    return message._replace(text=await in_pool(partial(_with_names, gateway, target, text)))


def _check_upstream(gateway: Gateway, target: Target, text: str) -> None:
    """Raise NotServed for a message whose model belongs to another upstream: no upstream may get another one's conversations."""
    models = models_in_message(text.encode("utf-8", "surrogatepass"))
    if models is None:  # also one that is named twice
        raise NotServed("model_unreadable")
    if not all(gateway.setup.has_at(target, model) for model in models):
        raise NotServed("model_of_another_upstream")


def _with_names(gateway: Gateway, target: Target, text: str) -> str:
    named = with_names(text.encode("utf-8", "surrogatepass"), partial(gateway.setup.name_at, target))
    return named.decode("utf-8", "surrogatepass")
