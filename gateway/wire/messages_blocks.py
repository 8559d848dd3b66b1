"""The blocks of a view as they are sent: unchanged ones keep their bytes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from gateway.wire import hosted
from gateway.wire.cache_marks import SentBlock
from gateway.wire.message import CACHE_CONTROL, Message, dumps
from gateway.wire.messages_request import CALLS, THINKING, BlockOrigin, MessagesRequest
from gateway.wire.splice import splice
from gateway.wire.views import Opaque, Piece, changed_arguments, texts_in


def originals(request: MessagesRequest, at: int, numbers: Sequence[int]) -> list[SentBlock]:
    blocks = request.body_messages[at].blocks
    return [SentBlock(blocks[n].raw, (at, n)) for n in numbers]


def edited_blocks(request: MessagesRequest, number: int, message: Message) -> list[SentBlock]:
    """Return the edited form of a view as blocks; blocks that it still has keep their bytes."""
    origin, before = request.origins[number], request.views[number]
    if origin.blocks is None:
        if message is before:
            return []
        return [SentBlock(dumps(part)) for part in texts_in(message.get("content"), "text")]
    if message is before:
        return originals(request, origin.at, origin.blocks)
    if message.get("role") == "tool":
        return _changed_result(request, origin, before, message)
    return list(_changed_words(request, origin, before, message))


def _changed_result(
    request: MessagesRequest, origin: BlockOrigin, before: Message, message: Message
) -> list[SentBlock]:
    """Return a tool result with another content or a cache mark; its other members, and the blocks after it, stay."""
    assert origin.blocks is not None
    block = request.body_messages[origin.at].blocks[origin.blocks[0]]
    if block.type in hosted.BLOCKS:
        result = hosted.with_texts(block.raw, before, message)
    else:
        result = splice(block.raw, _changed_content(block, before, message))
    if CACHE_CONTROL in message:
        result = splice(result, {CACHE_CONTROL: message[CACHE_CONTROL]})
    return [
        SentBlock(result, (origin.at, origin.blocks[0])),
        *originals(request, origin.at, origin.blocks[1:]),
    ]


def _changed_content(block: Piece, before: Message, message: Message) -> dict[str, Any]:
    """Return the content of a changed result of the client's tool, as the member to write; nothing if it is the same."""
    content = message.get("content")
    if content is before.get("content"):
        return {}
    if isinstance(content, list):
        content = [part for part in content if type(part) is not Opaque]
        if isinstance(block.value.get("content"), str) and all("text" in part for part in content):
            content = "\n".join(part["text"] for part in content)
    return {"content": content}


def _changed_words(
    request: MessagesRequest, origin: BlockOrigin, before: Message, message: Message
) -> Iterator[SentBlock]:
    """Yield the blocks of a changed view that is no tool result: parts that are unchanged keep their bytes, calls their places."""
    assert origin.blocks is not None
    given = request.body_messages[origin.at].blocks
    calls = [n for n in origin.blocks if given[n].type in CALLS]
    arguments = {calls[number]: text for number, text in changed_arguments(before, message).items()}
    thinks = "reasoning" in message or "reasoning" not in before
    numbers = _part_numbers(origin, given, before)
    waiting = [n for n in origin.blocks if given[n].type in CALLS or (given[n].type in THINKING and thinks)]
    waiting = [n for n in waiting if n not in numbers]
    parts = texts_in(message.get("content"), "text")
    for part, n in zip(parts, _original_numbers(parts, before.get("content") or (), numbers), strict=True):
        while waiting and n is not None and waiting[0] < n:
            yield _sent_call(origin, given, waiting.pop(0), arguments)
        same = n is not None and any(part is each for each in before["content"])
        raw = given[n].raw if same and n is not None else dumps(part)
        yield SentBlock(raw, None if n is None else (origin.at, n))
    for n in waiting:
        yield _sent_call(origin, given, n, arguments)


def _original_numbers(
    parts: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], numbers: Sequence[int]
) -> list[int | None]:
    """Return for each part the number of its original block; None for a new part, which comes first."""
    known = {id(part): n for part, n in zip(before, numbers, strict=True)}
    kept = {id(part) for part in parts}
    free = [(part.get("type"), n) for part, n in zip(before, numbers, strict=True) if id(part) not in kept]
    found: list[int | None] = []
    for part in reversed(parts):
        n = known.get(id(part))
        if n is None and free and free[-1][0] == part.get("type"):
            n = free.pop()[1]
        found.append(n)
    return found[::-1]


def _part_numbers(origin: BlockOrigin, given: Sequence[Piece], before: Message) -> list[int]:
    """Return for each content part of a view the number of its block."""
    assert origin.blocks is not None
    hidden = CALLS | (THINKING if "reasoning" in before else frozenset())
    return [n for n in origin.blocks if before.get("role") != "assistant" or given[n].type not in hidden]


def _sent_call(origin: BlockOrigin, given: Sequence[Piece], n: int, arguments: Mapping[int, str]) -> SentBlock:
    shorter = arguments.get(n)
    raw = given[n].raw if shorter is None else splice(given[n].raw, {"input": orjson.Fragment(shorter.encode())})
    return SentBlock(raw, (origin.at, n))
