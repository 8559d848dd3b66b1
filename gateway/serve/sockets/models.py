"""The models that the URL and the messages of a socket name.

The client's key and the upstream must be for them, and the upstream gets its own names of them.
"""

from functools import partial

from aiohttp import web

from gateway.serve import key_models
from gateway.serve.endpoints.named_model import model_of_url
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.sockets.events import NotServed
from gateway.serve.sockets.fold import speaks_responses
from gateway.upstream.client import Target
from gateway.wire.model_name import models_in_message, with_names


def check_url(gateway: Gateway, request: web.BaseRequest) -> str:
    """Return the model in the URL of a socket, or "". Raises ClientError for one that the client's key does not allow."""
    model = model_of_url(gateway.setup, request)
    if model or not speaks_responses(request):  # a Responses socket names the model in each message
        key_models.check_model(request, model)
    return model


async def check_message(gateway: Gateway, request: web.BaseRequest, target: Target, text: str) -> None:
    """Check that the client's key and the upstream of the socket are for all models in a message. Raises NotServed."""
    in_thread = partial(gateway.threads.run, size_bytes=len(text) // READS_FASTER)
    if key_models.is_restricted(request):
        # Of a Responses socket the upstream reads no model in the URL.
        allows = partial(key_models.allows_message, request, text, names_model=speaks_responses(request))
        if not await in_thread(allows):
            raise NotServed("model_not_allowed")
    if speaks_responses(request) and len(gateway.setup.targets) > 1:
        await in_thread(partial(_check_upstream, gateway, target, text))


async def with_names_at(gateway: Gateway, target: Target, text: str) -> str:
    """Return a message with the upstream's names of the models in it."""
    if not gateway.setup.has_aliases or '"model"' not in text:
        return text
    return await gateway.threads.run(partial(_with_names, gateway, target, text), size_bytes=len(text) // READS_FASTER)


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
