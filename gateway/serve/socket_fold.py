"""The websocket mode of Responses: each stateless ``response.create`` message is folded like a request.

A message that continues an earlier response by its id passes unchanged, and so does everything else. The client sees
refusals: an answer on a socket cannot be taken back.
"""

from typing import Final

import structlog
from aiohttp import web

from gateway.context.life import ladder
from gateway.context.life.ladder import Attempt
from gateway.serve import keys, plan
from gateway.serve import record as records
from gateway.serve.mode import mode_of
from gateway.serve.shared import Gateway
from gateway.upstream.client import Target
from gateway.wire.responses import PATH, RESPONSES
from gateway.wire.views import event_type

log = structlog.get_logger(__name__)

CREATE: Final = "response.create"


def folds(request: web.BaseRequest) -> bool:
    """Return whether the socket speaks Responses."""
    return request.rel_url.raw_path == PATH


async def folded(gateway: Gateway, request: web.BaseRequest, target: Target, message: str) -> str:
    """Return the message for the upstream. After a failure of our own it is the client's message, unchanged."""
    try:
        return await _folded(gateway, request, target, message)
    except Exception as error:  # noqa: BLE001  # promise 6
        gateway.failed("fold", error)
        return message


async def _folded(gateway: Gateway, request: web.BaseRequest, target: Target, message: str) -> str:
    raw = message.encode()
    if event_type(raw) != CREATE:
        return message
    asked = RESPONSES.parse(raw, gateway.memory)
    if asked is None or asked.refers_elsewhere:
        return message
    route = gateway.setup.settings.route(asked.model)
    headers = keys.forwarded(request)
    place = plan.place_of(
        gateway, gateway.setup, route, target, plan.learner_of(target, headers, records.of(request).client)
    )
    if mode_of(request, route) != "enforce" or (plan.proven(gateway, place, asked) and route.name == asked.model):
        return message
    task = await plan.task_for(gateway, place, asked, plan.scope_of(place, headers))

    def made() -> Attempt:
        return ladder.first_attempt(task)

    attempt = await gateway.pool.run(made, size_bytes=len(raw))
    if attempt.draft is None and attempt.output is None and not asked.rewritten and route.name == asked.model:
        return message
    log.info("message_folded", upstream=target.name, tokens_before=task.prompt, tokens_after=attempt.prompt,
             turns_folded=attempt.turns_folded)  # fmt: skip
    return attempt.body.decode()
