"""The models of client keys: which models a request names, and whether its key is for them."""

from collections.abc import Collection
from typing import Final

import orjson
from aiohttp import web

from gateway.serve import arrival as arrivals
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.incoming.errors import ClientError
from gateway.wire.format import Conversation
from gateway.wire.model_name import differs, models_in_message, other_models

BATCHES: Final = frozenset({"/v1/batches", "/v1/messages/batches"})
"""Where a batch of requests is started."""


def must_know_model(setup: Setup, request: web.BaseRequest) -> bool:
    """Return whether a request's model must be known before it is sent: it decides the upstream, or whether the key allows it."""
    return len(setup.targets) > 1 or is_restricted(request)


def is_restricted(request: web.BaseRequest) -> bool:
    """Return whether a request's key allows only some models."""
    key = arrivals.of(request).key
    return key is not None and bool(key.models)


def allows_model(request: web.BaseRequest, model: str) -> bool:
    """Return whether a request's key allows a model."""
    key = arrivals.of(request).key
    return key is None or key.may_use(model)


def check_model(request: web.BaseRequest, model: str) -> None:
    """Refuse a model that the request's key does not allow. Raises ClientError."""
    key = arrivals.of(request).key
    if key is None or key.may_use(model):
        return
    named = "names no model" if not model else "names a model that this key is not for"
    raise ClientError(
        403,
        f"The request {named}. The key is for: {', '.join(key.models)}.",
        code="model_not_allowed",
        type_="permission_error",
    )


def check_batch(request: web.BaseRequest) -> None:
    """Refuse to start a batch with a key that is limited to some models: its requests name their models in a file or inside the body,
    whatever model the body names beside them. Raises ClientError."""
    if request.method == "POST" and request.rel_url.raw_path.rstrip("/").lower() in BATCHES and is_restricted(request):
        raise ClientError(
            403,
            "A key that is limited to some models cannot start a batch, because each request of a batch names a model of its own. "
            "Send the requests one by one, or use a key for all models.",
            code="model_not_allowed",
            type_="permission_error",
        )


def check_models(request: web.BaseRequest, models: Collection[str] | None) -> None:
    """Refuse models that the request's key does not allow, and None: models that cannot be read. Raises ClientError."""
    for model in [""] if models is None else models:
        check_model(request, model)


async def check_other_models(gateway: Gateway, request: web.BaseRequest, body: bytes) -> None:
    """Refuse a JSON body, decompressed, that names models beside its own which the request's key does not allow. Raises ClientError."""
    if not is_restricted(request):
        return
    check_models(request, await gateway.threads.run(lambda: other_models(body), size_bytes=len(body) // READS_FASTER))


async def check_conversation(gateway: Gateway, request: web.BaseRequest, conversation: Conversation) -> None:
    """Refuse a conversation that names a model, its own or another, which the request's key does not allow. Raises ClientError."""
    check_model(request, conversation.model)
    await check_other_models(gateway, request, conversation.raw)


def allows_message(request: web.BaseRequest, text: str, *, names_model: bool) -> bool:
    """Return whether a WebSocket message names only models that the key allows.

    With ``names_model`` a message that begins an answer must name a model: the URL of its socket does not say which one is used.
    """
    raw = text.encode("utf-8", "surrogatepass")
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(message, dict) or differs(raw, ("type",)):
        return False
    models = models_in_message(raw)
    if not models:
        return models is not None and not (names_model and message.get("type") == "response.create")
    return all(allows_model(request, model) for model in models)
