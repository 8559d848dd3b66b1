"""The model that a client's path names, written into the body: from there on the request is like any other.

At Azure the path alone decides, and clients send a body that names another model, or none.
"""

from aiohttp import web
from multidict import CIMultiDict

from gateway.config.values import Server
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import READS_FASTER, decompress
from gateway.serve.incoming.errors import ClientError
from gateway.wire.model_name import FORMS, is_ambiguous, model_in
from gateway.wire.splice import splice


def is_form(request: web.BaseRequest) -> bool:
    """Return whether the body is a form, such as one with a file."""
    return request.headers.get("Content-Type", "").lower().startswith(FORMS)


async def with_model(
    gateway: Gateway, request: web.BaseRequest, raw: bytes, model: str
) -> tuple[web.BaseRequest, bytes]:
    """Return a request and its body so that the body names ``model``. A body that names it already, or is no JSON object, stays.

    A body that is changed loses its content encoding. Raises ClientError for one that cannot be read, or that names two models.
    """
    limits = gateway.settings.server
    named = await gateway.pool.run(lambda: _named(request, raw, model, limits), size_bytes=len(raw) // READS_FASTER)
    if named is raw or "Content-Encoding" not in request.headers:
        return request, named
    headers = CIMultiDict(request.headers)
    headers.popall("Content-Encoding")
    return request.clone(headers=headers), named


def _named(request: web.BaseRequest, raw: bytes, model: str, limits: Server) -> bytes:
    """Return the body with the model, decompressed if it had to be changed."""
    text = decompress(request, raw, limits.max_body)
    if model_in(text, "application/json") == model:
        return raw
    try:
        if is_ambiguous(text):
            raise _unreadable("names two models")
        return splice(text, {"model": model})
    except (ValueError, RecursionError):
        if text is raw and request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise _unreadable("is packed in a way that this gateway cannot read") from None
        return raw


def _unreadable(problem: str) -> ClientError:
    message = f"The body {problem}, and the path names one. Send JSON, uncompressed or with gzip, whose model is that of the path."
    return ClientError(400, message, code="model_unreadable")
