"""The conversation in a request's body. A large body is parsed off the event loop."""

from functools import partial

from aiohttp import hdrs, web

from gateway.config import Server
from gateway.serve import key_models
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.admission import free_later, hold
from gateway.serve.incoming.body import READS_FASTER, decompress, reading_size
from gateway.serve.incoming.encoding import can_decode, is_unreadable
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.limits import check_request, check_text
from gateway.state.freeing import take_apart
from gateway.state.threads import INLINE
from gateway.wire.format import Conversation, Format
from gateway.wire.memory import Memory
from gateway.wire.model_name import is_ambiguous


async def conversation_in(
    gateway: Gateway, setup: Setup, request: web.BaseRequest, raw: bytes, format: Format
) -> Conversation | None:
    """Parse a body in a format; None when it is not valid, or longer than ``server.max_folded``: then the upstream judges it.

    If its model must be known, a body that names two models is refused, and one in an unknown encoding is not read: a server may read
    another model in it. Raises ClientError for such a body, and for one that is too large when decompressed or too complex to inspect.
    """
    limits, must_know_model = setup.settings.server, key_models.must_know_model(setup, request)
    if must_know_model and is_unreadable(request.headers):
        return None
    text = raw
    if hdrs.CONTENT_ENCODING in request.headers and can_decode(request.headers):
        text = await gateway.threads.run(
            lambda: decompress(request, raw, limits.max_body), size_bytes=reading_size(request, raw)
        )
        if text is not raw:
            hold(request, len(text))
    if len(text) > limits.max_folded:
        return None
    parsed = partial(_parse_checked, text, format, limits, gateway.memory, must_know_model=must_know_model)
    size_bytes = len(text) // READS_FASTER
    if size_bytes < INLINE:
        return parsed()
    conversation = await gateway.threads.run(parsed, size_bytes=size_bytes)
    if conversation is not None:
        free_later(request, conversation, len(text))
    return conversation


def _parse_checked(
    text: bytes, format: Format, limits: Server, memory: Memory, *, must_know_model: bool
) -> Conversation | None:
    """Parse a decompressed body, and check that it is not too complex. Raises ClientError."""
    check_text(text, limits)
    if must_know_model and is_ambiguous(text):
        message = "The body names its model twice, or not as `model`, so it is not clear which upstream it is for. Name it once, as `model`."
        raise ClientError(400, message, code="model_unreadable")
    conversation = format.read(text, memory)
    if conversation is None:
        return None
    try:
        check_request(conversation, limits)
    except ClientError as problem:
        parts = [conversation]
        del conversation  # the error holds this frame, and is dropped on the event loop
        take_apart(parts.pop())
        raise problem.with_traceback(None) from None
    return conversation
