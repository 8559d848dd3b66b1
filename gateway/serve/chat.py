"""POST /v1/chat/completions: the whole life of a request, on one page."""

import asyncio
import time

from aiohttp import web

from gateway.serve import errors, lessons, memory, record
from gateway.serve.body import read, understood
from gateway.serve.passthrough import forward
from gateway.serve.relay import relay, usage_in, worth_keeping
from gateway.serve.sender import Sender
from gateway.serve.shared import Gateway
from gateway.serve.story import Story, mode_of
from gateway.upstream.client import UpstreamUnreachable
from gateway.wire.format import Format


async def chat(gateway: Gateway, request: web.BaseRequest, format: Format) -> web.StreamResponse:
    """Measure, fold where it must be, send, retry what is refused, relay, learn, and tell every observer."""
    started = time.perf_counter()
    limits = gateway.settings.server
    raw = await read(request, limits)
    asked = await understood(request, raw, format, limits, gateway.pool)
    if asked is None:
        return await forward(gateway, request, raw)
    setup = gateway.setup
    story = Story(gateway.request_id(), asked, mode_of(request, setup.settings.route(asked.model)), started)
    status, usage = 499, None
    try:
        sender = Sender(gateway, request, raw, story, setup)
        outcome = await sender.send()
        story.first_byte = time.perf_counter()
        if outcome.answer is None:
            status, story.error = 400, "context_length_exceeded"
            return web.Response(status=400, body=outcome.refusal, headers=story.headers(), content_type=errors.JSON)
        answer = outcome.answer
        status = answer.status
        good = answer.status == 200 and not outcome.too_long
        if good and answer.complete:
            usage = usage_in(answer, answer.held)
            await lessons.from_answer(gateway, story, usage, sender.headers)
        relayed = await relay(request, answer, story.headers(), keep=worth_keeping(answer))
        if good and not answer.complete:
            usage = usage_in(answer, relayed.tail)
            await lessons.from_answer(gateway, story, usage, sender.headers)
        story.error = "upstream_broke_off" if relayed.broken else ""
        if good:
            memory.consider(gateway, setup, story, sender.headers)
        return relayed.response
    except UpstreamUnreachable as error:
        status, story.error, story.gave_up = error.status, error.code, True
        return errors.response(error, story.headers())
    except (asyncio.CancelledError, ConnectionResetError):
        story.error = "client_gone"
        raise
    finally:
        record.of(request).done = True
        gateway.observe(story.exchange(status, usage))
