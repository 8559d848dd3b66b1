"""Compaction on any backend: ``POST /v1/responses/compact`` and the item ``compaction_trigger``, by the upstream or by
our own digest.

The upstream is tried first, unless ``upstreams.NAME.compact`` is ``ours``. For the client our digest is a compaction
item like any other; when it comes back, it is opened (`gateway.wire.compaction`).
"""

import re
import time
from collections.abc import Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final

import orjson
from aiohttp import web

from gateway.serve import arrival as arrivals
from gateway.serve import key_limits, key_models
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer
from gateway.serve.endpoints import upstream_first
from gateway.serve.endpoints.passthrough import forward
from gateway.serve.gateway import Gateway
from gateway.serve.incoming import errors
from gateway.serve.request.missing_endpoint import MISSING_STATUSES
from gateway.upstream.streams import EVENTS
from gateway.wire.compaction import TRIGGER, item
from gateway.wire.format import Conversation
from gateway.wire.responses import RESPONSES
from gateway.wire.responses_reading import ResponsesRequest

PATH: Final = "/v1/responses/compact"
COMPACTION_SHARE: Final = 8
"""Share of the window that a compaction may take. Chosen: most of the window stays free for work."""
LARGEST_COMPACTION: Final = 12_000
"""Tokens. Chosen: a longer text is a conversation, not a memory of one."""
LONGEST_SEARCHED: Final = 2**20
"""Bytes of an answer in which a compaction item is looked for. Chosen: an item has the size of some pages, an answer without one seldom has more."""
_COMPACTION: Final = re.compile(rb'"type"\s{0,9}:\s{0,9}"compaction"')
"""A compaction item in an answer. Text that a model writes has escapes before the quotation marks."""
REFUSALS: Final = MISSING_STATUSES | {400, 422}
"""Statuses with which servers refuse an unknown item."""


def wants_compaction(conversation: Conversation) -> bool:
    """Return whether a request is for a compaction instead of an answer."""
    return (
        isinstance(conversation, ResponsesRequest)
        and bool(conversation.items)
        and conversation.items[-1].type == TRIGGER
    )


async def compact(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    """Answer ``POST /v1/responses/compact``. Raises UpstreamUnreachable when the upstream does not answer."""
    raw, conversation = await upstream_first.read_conversation(gateway, request, RESPONSES)
    if conversation is None:
        return await forward(gateway, request, raw)
    await key_models.check_conversation(gateway, request, conversation)
    await key_limits.reserve_for(gateway, arrivals.of(request), conversation, gateway.settings)
    return await compact_conversation(gateway, request, raw, conversation)


async def compact_conversation(
    gateway: Gateway, request: web.BaseRequest, raw: bytes, conversation: Conversation
) -> web.StreamResponse:
    """Forward a request for a compaction, which its key allows; if the upstream cannot make one, make it here. Raises ClientError
    and UpstreamUnreachable."""
    settings, record = gateway.settings, records.of(request)
    upstream_first.set_record(gateway, request, raw, conversation)
    record.why, record.attempts = "compacted", 0
    is_ours = settings.upstreams[settings.route(conversation.model).upstream].compact == "ours"
    if is_ours and not conversation.refers_elsewhere:
        return await _own_compaction(gateway, request, conversation)
    record.attempts = 1
    with await upstream_first.send(gateway, request, raw, conversation) as answer:
        if not await _cannot_compact(answer, conversation):
            return await upstream_first.forward_answer(gateway, request, answer)
    return await _own_compaction(gateway, request, conversation)


async def _cannot_compact(answer: Answer, conversation: Conversation) -> bool:
    """Return whether an answer shows that the upstream cannot compact, so that we do. If only the upstream has a part of the conversation, we
    cannot. Raises UpstreamUnreachable.

    A lenient server may ignore the item and answer the conversation. Codex would end its session at such an answer.
    """
    if conversation.refers_elsewhere:
        return False
    if answer.status == HTTPStatus.OK and wants_compaction(conversation):
        return not await upstream_first.has_sign(answer, _COMPACTION, LONGEST_SEARCHED)
    if answer.status not in REFUSALS:
        return False
    if answer.status in MISSING_STATUSES:
        return await upstream_first.lacks_endpoint(answer, conversation)
    return wants_compaction(conversation) and TRIGGER.encode() in await upstream_first.read_refusal(answer)


async def _own_compaction(gateway: Gateway, request: web.BaseRequest, conversation: Conversation) -> web.Response:
    """Return one compaction item with our digest, as a body or as events."""
    task = await upstream_first.count(gateway, request, conversation)
    tokens = min(task.window // COMPACTION_SHARE, LARGEST_COMPACTION)

    def made() -> tuple[str, str]:
        from gateway.context.write.compaction import compacted  # noqa: PLC0415  # loads the fold, which a start does not need

        return compacted(conversation.messages, tokens, task.counter, conversation.memory)

    texts = await gateway.threads.run(made, size_bytes=len(conversation.raw))
    identity = blake2b(orjson.dumps(texts), digest_size=12).hexdigest()
    written = sum(map(task.counter.text, texts))
    usage = {"input_tokens": task.prompt, "output_tokens": written, "total_tokens": task.prompt + written}
    response = {
        "id": f"resp_{identity}",
        "object": "response" if wants_compaction(conversation) else "response.compaction",
        "created_at": int(time.time()),
        "model": conversation.model,
        "status": "completed",
        "output": [item(texts, identity)],
        "usage": {
            **usage,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    record = records.of(request)
    record.set_outcome(200)
    headers = record.own_headers(gateway, "fold")
    if not conversation.stream:
        return web.Response(body=orjson.dumps(response), headers=headers, content_type=errors.JSON)
    body = b"".join(_event(number, event) for number, event in enumerate(_events(response)))
    return web.Response(body=body, headers=headers, content_type=EVENTS)


def _events(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The events of a response with one item: created, added, done, completed."""
    made = response["output"][0]
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": made},
        {"type": "response.output_item.done", "output_index": 0, "item": made},
        {"type": "response.completed", "response": response},
    ]


def _event(number: int, event: Mapping[str, Any]) -> bytes:
    data = orjson.dumps({**event, "sequence_number": number})
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), data)
