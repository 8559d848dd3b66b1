"""Write edits into a body of the Anthropic Messages format.

The views of one message are joined again. An unchanged message keeps its bytes; in a changed one, each unchanged block
keeps its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from gateway.wire import cache_marks, citations
from gateway.wire.cache_marks import SentBlock
from gateway.wire.format import Edits
from gateway.wire.message import Message, dumps
from gateway.wire.messages_blocks import edited_blocks, originals
from gateway.wire.messages_request import THINKING, BlockOrigin, MessagesRequest
from gateway.wire.raw_json import array
from gateway.wire.splice import splice, without_result
from gateway.wire.views import origin_of, texts_in

LEAST_THINKING: Final = 1024
"""Tokens; the smallest ``thinking.budget_tokens``: https://platform.claude.com/docs/en/build-with-claude/extended-thinking"""
THINKING_SHARE: Final = 0.75
"""Share of a lowered ``max_tokens`` for thinking: the API requires its budget below the limit, and an answer needs
room."""


class _SentMessage(msgspec.Struct):
    """One message to send."""

    at: int | None
    """The index of its original message in the body; None for a new message."""
    role: str
    blocks: list[SentBlock]
    raw: bytes | None = None
    """The bytes of the original message; None for a new message."""
    changed: bool = True


def encode(request: MessagesRequest, edits: Edits) -> bytes:
    """Write edits into a body; unchanged parts keep their bytes."""
    changes: dict[str, Any] = {}
    if edits.model is not None and edits.model != request.model:
        changes["model"] = edits.model
    if edits.output is not None:
        changes |= _lowered(request, edits.output)
    messages = edits.messages or request.views
    if not request.is_unchanged(messages) or not edits.keeps_thinking:
        changes |= _rewritten(request, messages, keeps_thinking=edits.keeps_thinking)
        if edits.may_drop_thinking and edits.keeps_thinking:
            changes |= _with_drop_permitted(request, changes)
    changes |= {name: value for name, value in edits.added.items() if name not in request.head}
    return splice(request.raw, changes) if changes else request.raw


def _lowered(request: MessagesRequest, output: int) -> dict[str, Any]:
    """Return a lower output limit, with the thinking budget below it; nothing when impossible."""
    if not request.output_limits or request.output_limits[0] <= output:
        return {}
    thinking = request.head.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or budget < output:
        return {"max_tokens": output}
    lower = max(int(output * THINKING_SHARE), LEAST_THINKING)
    return {"max_tokens": output, "thinking": {**thinking, "budget_tokens": lower}} if lower < output else {}


PREFIX_BINDING: Final = {"prefix_mismatch_behavior": "drop_block"}
BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
"""Lets the API drop thinking that it cannot verify behind a folded conversation:
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation
"""


def _with_drop_permitted(request: MessagesRequest, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Request that unverifiable thinking is dropped, unless the client chose another behaviour."""
    given = changes.get("thinking", request.head.get("thinking"))
    thinking = given if isinstance(given, dict) else {"type": "adaptive"}
    if thinking.get("type") == "disabled" or "block_binding" in thinking:
        return {}
    return {"thinking": {**thinking, "block_binding": PREFIX_BINDING}}


def _rewritten(request: MessagesRequest, messages: Sequence[Message], *, keeps_thinking: bool) -> dict[str, Any]:
    """Return the changed members: the messages to send and, if it changed, ``system``.

    Views of one message are joined. Then thinking is removed if it must be, and results and user messages get the order that the API
    demands. Cache marks of blocks that are not sent move to blocks that are sent.
    """
    changes: dict[str, Any] = {}
    sent = [_unchanged(request, at) for at in range(max(request.compacted[0], 0))]
    for message in messages:
        number = origin_of(message)
        origin = request.origins[number] if number is not None and number < len(request.origins) else None
        if number is None or origin is None:
            blocks = [SentBlock(dumps(part)) for part in texts_in(message.get("content"), "text")]
            sent.append(_SentMessage(None, _role(message), blocks))
        elif origin.at < 0:
            if message is not request.views[number]:
                changes["system"] = message["content"]
        else:
            _add_to_message(
                request, sent, origin, edited_blocks(request, number, message), kept=message is request.views[number]
            )
    for each in sent:
        if not keeps_thinking and any(block.kind in THINKING for block in each.blocks):
            each.blocks = [block for block in each.blocks if block.kind not in THINKING] or [_REMOVED_THINKING]
            each.changed = True
    if request.continues:
        sent = _expected_results_first(request, sent)
    sent = _with_cleared(request, sent)
    _set_changed(request, sent)
    sent = _user_first(request, sent)
    _drop_lost_citations(request, sent)
    marks = cache_marks.moved_marks(
        [block for each in sent for block in each.blocks],
        [(at, n, block.value) for at, each in enumerate(request.body_messages) for n, block in enumerate(each.blocks)],
        free=cache_marks.MOST_MARKS - cache_marks.marks_outside_messages(request.head),
    )
    rows = [_bytes_of(each, marks) for each in sent]
    return {**changes, "messages": array([row for row in rows if row])}


def _expected_results_first(request: MessagesRequest, sent: list[_SentMessage]) -> list[_SentMessage]:
    """Put the results of calls that only the server has first, also those that were left out: the server expects them before
    anything else."""
    expected = [n for n, block in enumerate(request.body_messages[0].blocks) if block.type == "tool_result"]
    if not expected:
        return sent
    first = next((each for each in sent if each.at == 0), _SentMessage(0, "user", []))
    kept = {block.origin[1] for block in first.blocks if block.origin is not None}
    blocks = request.body_messages[0].blocks
    left_out = [SentBlock(without_result(blocks[n].raw, "content"), (0, n)) for n in expected if n not in kept]
    first.blocks = [*left_out, *first.blocks]
    return [first, *[each for each in sent if each is not first]]


def _user_first(request: MessagesRequest, sent: list[_SentMessage]) -> list[_SentMessage]:
    """Move the first user message before system messages whose neighbours were folded."""
    if not sent or sent[0].role == "user" or request.body_messages[0].role != "user":
        return sent
    first = next((n for n, each in enumerate(sent) if each.role == "user"), 0)
    pinned = all(each.role == "system" for each in sent[:first])
    return [sent[first], *sent[:first], *sent[first + 1 :]] if pinned else sent


def _with_cleared(request: MessagesRequest, sent: list[_SentMessage]) -> list[_SentMessage]:
    """Add the cleared messages that follow a sent one and come before a sent user message. They have no views, because the
    model does not see them."""
    last_user = max((each.at for each in sent if each.at is not None and each.role == "user"), default=-1)
    joined: list[_SentMessage] = []
    for each in sent:
        joined.append(each)
        at = len(request.body_messages) if each.at is None else each.at + 1
        while at in request.cleared and at < last_user:
            joined.append(_unchanged(request, at))
            at += 1
    return joined


def _drop_lost_citations(request: MessagesRequest, sent: Sequence[_SentMessage]) -> None:
    """Remove the citations of sources that are not sent as they came."""
    given = [block.value for each in request.body_messages for block in each.blocks]
    if not any(map(citations.cites, given)):
        return
    before = citations.sources(given)
    values = [[_value(request, block) for block in each.blocks] for each in sent]
    after = citations.sources(value for row in values for value in row)
    for each, row in zip(sent, values, strict=True):
        for n, value in enumerate(row):
            if citations.cites(value):
                cited = value[citations.CITATIONS]
                left = citations.valid(cited, before, after)
                if len(left) < len(cited):
                    raw = splice(each.blocks[n].raw, {citations.CITATIONS: left or None})
                    each.blocks[n] = replace(each.blocks[n], raw=raw)
                    each.changed = True


def _value(request: MessagesRequest, block: SentBlock) -> Mapping[str, Any]:
    """Return the values of a block to send."""
    if block.origin is not None:
        given = request.body_messages[block.origin[0]].blocks[block.origin[1]]
        if block.raw is given.raw:
            return given.value
    value: dict[str, Any] = orjson.loads(block.raw)
    return value


def _role(message: Message) -> str:
    return "assistant" if message.get("role") == "assistant" else "user"


_REMOVED_THINKING: Final = SentBlock(b'{"type":"text","text":"[thinking removed]"}')
"""Replaces a message that was nothing but thinking."""


def _unchanged(request: MessagesRequest, at: int) -> _SentMessage:
    """Return a message without a view, unchanged."""
    each = request.body_messages[at]
    return _SentMessage(at, each.role, originals(request, at, range(len(each.blocks))), each.raw, changed=False)


def _add_to_message(
    request: MessagesRequest,
    sent: list[_SentMessage],
    origin: BlockOrigin,
    blocks: list[SentBlock],
    *,
    kept: bool,
) -> None:
    """Add the blocks of a view to its message in ``sent``; begin that message if this is its first view."""
    if sent and sent[-1].at == origin.at:
        sent[-1].blocks += blocks
        sent[-1].changed |= not kept
        return
    given = request.body_messages[origin.at]
    start = [n for n in range(len(given.blocks)) if (origin.at, n) < request.compacted]
    if start and origin.at == request.compacted[0]:
        blocks = [*originals(request, origin.at, start), *blocks]
    sent.append(_SentMessage(origin.at, given.role, blocks, given.raw, changed=not kept))


def _set_changed(request: MessagesRequest, sent: Sequence[_SentMessage]) -> None:
    """Set for each message whether it is changed. The blocks of an unchanged user message are put into their original order first:
    the views of its tool results were joined before the view of its words."""
    for each in sent:
        if each.at is None:
            continue
        given = request.body_messages[each.at]
        if given.content is not None:
            continue
        whole = [block.origin for block in each.blocks] == [(each.at, n) for n in range(len(given.blocks))]
        if each.role == "user" and not each.changed and not whole:
            each.blocks.sort(key=lambda block: block.origin or (-1, -1))
            whole = [block.origin for block in each.blocks] == [(each.at, n) for n in range(len(given.blocks))]
        each.changed = each.changed or not whole


def _bytes_of(each: _SentMessage, marks: Mapping[int, bytes]) -> bytes:
    """Return the bytes to send for a message: its own bytes when nothing changed."""
    marked = any(id(block) in marks for block in each.blocks)
    if each.raw is not None and not each.changed and not marked:
        return each.raw
    blocks = [marks.get(id(block), block.raw) for block in each.blocks]
    if not blocks:
        return b""
    if each.raw is None:
        return dumps({"role": each.role, "content": array(blocks)})
    return splice(each.raw, {"content": array(blocks)})
