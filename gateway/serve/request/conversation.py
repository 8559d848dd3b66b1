"""The conversation in a request's body."""

from collections.abc import Awaitable

from aiohttp import web

from gateway.serve import key_models
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.body import parse
from gateway.wire.format import Conversation, Format


def conversation_in(
    gateway: Gateway, setup: Setup, request: web.BaseRequest, raw: bytes, format: Format
) -> Awaitable[Conversation | None]:
    """Parse the body of a request; None if it is no conversation in this format. Raises ClientError."""
    must_know_model, limits = key_models.must_know_model(setup, request), setup.settings.server
    return parse(request, raw, format, limits, gateway.threads, memory=gateway.memory, must_know_model=must_know_model)
