"""The model that a request without a conversation names: in its URL, or in its body."""

from collections.abc import Callable
from typing import TypeVar

from aiohttp import web

from gateway.serve import arrival as arrivals
from gateway.serve import key_models
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.body import decompress, reading_size
from gateway.serve.incoming.encoding import is_unreadable
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.limits import check_name
from gateway.serve.incoming.paths import CLIENT_SECRETS, models_in
from gateway.wire.model_name import NO_MODEL, model_in, model_of_session

Found = TypeVar("Found")


def model_of_url(setup: Setup, request: web.BaseRequest) -> str:
    """Return the model that a request's URL names, or "". Raises ClientError for a URL that names two, if the model must be known."""
    named, deployment = models_in(request.rel_url), arrivals.of(request).deployment
    if deployment:
        named.add(deployment)
    if len(named) <= 1:
        return check_name(named.pop()) if named else NO_MODEL
    if key_models.must_know_model(setup, request):
        raise unclear("The URL names two models")
    return check_name(deployment)


def unclear(problem: str) -> ClientError:
    """Return the refusal of a request that names two models."""
    return ClientError(
        400, f"{problem}, so it is not clear which upstream it is for. Name one.", code="model_unreadable"
    )


async def model_of_body(gateway: Gateway, request: web.BaseRequest, body: bytes) -> str:
    """Return the model in a body, "" when it names none. Raises ClientError when it cannot be read."""
    readable = not is_unreadable(request.headers)
    model = await find_in_body(gateway, request, body, _model_reader(request)) if readable else None
    if model is None:
        raise ClientError(
            400,
            "The model that this body names cannot be read, so it is not clear which upstream it is for. "
            "Send JSON or a form with the field `model` as text, uncompressed or with gzip.",
            code="model_unreadable",
        )
    return check_name(model)


async def aliased_model(setup: Setup, gateway: Gateway, request: web.BaseRequest, body: bytes) -> str:
    """Return the model in a body if it has another name at its upstream, else "". A body in which none is found is sent as it came."""
    try:
        model = await find_in_body(gateway, request, body, _model_reader(request))
    except ClientError:
        return NO_MODEL
    return model if model and setup.settings.route(model).name != model else NO_MODEL


async def find_in_body(
    gateway: Gateway, request: web.BaseRequest, body: bytes, find: Callable[[bytes, str], Found]
) -> Found:
    """Return what ``find`` finds in a body, decompressed, of a content type. Raises ClientError when it is too large."""
    kind = request.headers.get("Content-Type", "")

    def found() -> Found:
        return find(decompress(request, body, gateway.settings.server.max_body), kind)

    return await gateway.threads.run(found, size_bytes=reading_size(request, body))


def _model_reader(request: web.BaseRequest) -> Callable[[bytes, str], str | None]:
    """Return the function that finds the model in a body of this endpoint."""
    return model_of_session if request.rel_url.raw_path == CLIENT_SECRETS else model_in
