"""The prompt that a provider makes of a request: its blocks, each with its tokens and its cache mark."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.cache.simulate import Block
from gateway.context.cache.marking import BREAKPOINT_STYLE, CACHE_CONTROL_STYLE
from gateway.context.cache.rules import CacheRule, Matching
from gateway.wire.message import PINNED_ROLES, RESULT_ROLES, Message, dumps
from gateway.wire.views import ORIGIN

Encode = Callable[[str], Sequence[int]]
"""The token ids of a text, or any numbers that are equal exactly when the tokens are."""

MARK_MEMBERS: Final = (CACHE_CONTROL_STYLE.member, BREAKPOINT_STYLE.member)
"""Members of a content part that request a cache entry at its end: Anthropic's and OpenAI's."""


def rendered(messages: Sequence[Message], rule: CacheRule, encode: Encode, tools: str = "") -> list[Block]:
    """Return the blocks of a request: one for its tools, where the provider places them, and one for each part of each
    message.

    If the provider caches only at marks and the request has none, those of a careful client are assumed: at the end of the
    last pinned message, and of the newest block.
    """
    blocks: list[Block] = []
    for message in messages:
        blocks += _blocks(message, rule, encode)
    if tools:
        after_system = next((n for n, block in enumerate(blocks) if block.section != "system"), len(blocks))
        blocks.insert(0 if rule.tools_first else after_system, Block("tools", tuple(encode(tools))))
    if rule.matching is Matching.MARKED and not any(block.mark_s for block in blocks):
        pinned = [number for number, block in enumerate(blocks) if block.section in ("tools", "system")]
        for number in {*pinned[-1:], len(blocks) - 1}:
            blocks[number] = replace(blocks[number], mark_s=rule.lifetime_s)
    return blocks


def _blocks(message: Message, rule: CacheRule, encode: Encode) -> Iterator[Block]:
    role = str(message.get("role"))
    section = "system" if role in PINNED_ROLES else "tool" if role in RESULT_ROLES else role
    head = tuple(encode(f"<{role}>"))
    for text, mark in _texts(message):
        yield Block(section, (*head, *encode(text)), _lifetime(mark, rule))
        head = ()
    rest = {name: value for name, value in message.items() if name not in ("role", "content", ORIGIN, *MARK_MEMBERS)}
    if rest or head:
        yield Block(section, (*head, *(encode(dumps(rest).decode()) if rest else ())))


def _texts(message: Message) -> Iterator[tuple[str, Any]]:
    """Return the text of each content part, and its mark."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content] if content else []
    for number, part in enumerate(parts, 1):
        mark = message.get(MARK_MEMBERS[0]) if number == len(parts) else None
        if not isinstance(part, dict):
            yield str(part), mark
            continue
        marked = next((part[name] for name in MARK_MEMBERS if part.get(name)), mark)
        text = part.get("text")
        plain = {name: value for name, value in part.items() if name not in MARK_MEMBERS}
        yield text if isinstance(text, str) else dumps(plain).decode(), marked


def _lifetime(mark: Any, rule: CacheRule) -> float:
    """Return the lifetime that a mark requests; 0 without one."""
    if not mark:
        return 0.0
    long = isinstance(mark, dict) and mark.get("ttl") == "1h"
    return rule.lifetime_long_s if long and rule.lifetime_long_s else rule.lifetime_s
