"""Write the name of a model into the body: the name in an Azure client's path, or the upstream's own name.

At Azure the path alone decides, and clients send a body that names another model, or none. With the name in its body the request is like
any other.
"""

from functools import partial

from aiohttp import web
from multidict import CIMultiDict

from gateway.config.values import Server
from gateway.serve import key_models
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.admission import Overloaded, hold
from gateway.serve.incoming.body import decompress, reading_size
from gateway.serve.incoming.errors import ClientError
from gateway.upstream.client import Target
from gateway.wire.model_name import FORMS, is_ambiguous, model_in, with_model_in, with_names
from gateway.wire.multipart import MULTIPART


def is_multipart(request: web.BaseRequest) -> bool:
    """Return whether the body is a form that may have files."""
    return _kind(request).startswith(MULTIPART)


def takes_model(request: web.BaseRequest) -> bool:
    """Return whether a model can be written into the body: JSON, or a form that may have files."""
    return is_multipart(request) or not _kind(request).startswith(FORMS)


def path_decides(gateway: Gateway, request: web.BaseRequest, model: str) -> bool:
    """Return whether the upstream of a deployment gets it in its URL, so that a body which cannot be read may be sent as it came.

    Not for a key that is held to some models: a relay of Azure's API may read the body.
    """
    return gateway.setup.target_of(model).model_in_url and not key_models.is_restricted(request)


async def with_model(
    gateway: Gateway, request: web.BaseRequest, raw: bytes, model: str
) -> tuple[web.BaseRequest, bytes]:
    """Return a request and its body so that the body names ``model``. A body that names it already, or cannot name one, stays.

    A body that is changed loses its content encoding. Raises ClientError for one that cannot be read, or that names two models, unless
    the path decides, and when there is no room for what it is decompressed to.
    """
    limits = gateway.settings.server
    try:
        named = await gateway.threads.run(
            lambda: _named(request, raw, model, limits), size_bytes=reading_size(request, raw)
        )
    except ClientError:
        if path_decides(gateway, request, model):
            return request, raw
        raise
    return _with_body(request, raw, named)


async def renamed(gateway: Gateway, request: web.BaseRequest, raw: bytes, model: str) -> tuple[web.BaseRequest, bytes]:
    """Like `with_model`, with the upstream's name of a model; a body in which it cannot be written stays. Raises Overloaded."""
    try:
        return await with_model(gateway, request, raw, model) if takes_model(request) else (request, raw)
    except Overloaded:
        raise
    except ClientError:
        return request, raw


async def renamed_session(
    gateway: Gateway, setup: Setup, request: web.BaseRequest, raw: bytes, target: Target
) -> tuple[web.BaseRequest, bytes]:
    """Return a request about a Realtime session and its body with an upstream's names of all models in it; a body that is not strict JSON
    stays. Raises Overloaded."""

    def named() -> bytes:
        text = decompress(request, raw, setup.settings.server.max_body)
        changed = with_names(text, partial(setup.name_at, target))
        return raw if changed is text else changed

    try:
        body = await gateway.threads.run(named, size_bytes=reading_size(request, raw))
    except ClientError:
        return request, raw
    return _with_body(request, raw, body)


def _with_body(request: web.BaseRequest, raw: bytes, body: bytes) -> tuple[web.BaseRequest, bytes]:
    """Return a request with another body, which is not compressed. Raises Overloaded."""
    if body is raw or "Content-Encoding" not in request.headers:
        return request, body
    hold(request, max(len(body) - len(raw), 0))
    headers = CIMultiDict(request.headers)
    headers.popall("Content-Encoding")
    return request.clone(headers=headers), body


def _kind(request: web.BaseRequest) -> str:
    return request.headers.get("Content-Type", "").lower()


def _named(request: web.BaseRequest, raw: bytes, model: str, limits: Server) -> bytes:
    """Return the body with the model, decompressed if it had to be changed."""
    text = decompress(request, raw, limits.max_body)
    kind = request.headers.get("Content-Type", "") if is_multipart(request) else "application/json"
    if model_in(text, kind) == model:
        return raw
    try:
        if not is_multipart(request) and is_ambiguous(text):
            raise _unreadable("names its model twice, or not as `model`")
        return with_model_in(text, kind, model)
    except (ValueError, RecursionError):
        if text is raw and request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise _unreadable("is packed in a way that this gateway cannot read") from None
        return raw


def _unreadable(problem: str) -> ClientError:
    message = f"The body {problem}, and the path names one. Send JSON, uncompressed or with gzip, whose model is that of the path."
    return ClientError(400, message, code="model_unreadable")
