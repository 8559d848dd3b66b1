"""The rules of a valid Messages body for the Claude API: one plain function per rule, by name.

The messages are the API's own, as in public reports. A signature is a keyed hash of its thinking: an edited character
is detected, and a block can be removed but not rewritten.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

from gateway.standin import citations, hosted
from gateway.standin.validity import Violation, broken_more_often

RULES: Final = {
    "shape": "messages are objects with the role user or assistant, or system after the first",
    "first_role": "the first message is the user's",
    "content": "no content is empty, and no text block is blank",
    "call": "a tool_use has an id of its own, a name and an object as input",
    "unanswered": "every tool_use is answered in the message after it",
    "orphan": "a tool_result answers a tool_use of the message before it",
    "duplicate": "a tool_use is answered once",
    "results_first": "tool_result blocks stand first in their message",
    "marks": "at most four blocks carry cache_control, none of them thinking, and longer ones come first",
    "signature": "thinking is sent back as it was signed",
    "thinking_first": "where thinking is on, the assistant message of the running tool loop begins with thinking",
    "server_tool": "the result of a server tool follows its server_tool_use, in the same message or a later one",
    "hosted": "a result of a server tool has its members, and what is encrypted in it is sent back as it came",
    "citation": "a citation has its document or search result in the request",
    "max_tokens": "max_tokens is given, and larger than the thinking budget",
}

ROLES: Final = frozenset({"user", "assistant", "system"})
"""Claude Code sends system messages in the conversation, behind a beta header ``mid-conversation-system``."""
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
MOST_MARKS: Final = 4
"""Cache marks in one request: https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""
_TTL: Final = {"5m": 0, "1h": 1}


def sign(thinking: str) -> str:
    """Return the signature of a thinking block."""
    return blake2b(thinking.encode(), key=b"stand-in", digest_size=16).hexdigest()


def violations(body: Any) -> list[Violation]:
    """Find every broken rule, in the order of the messages."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        return [Violation("shape", 0, "messages: at least one message is required")]
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            return [Violation("shape", at, f"messages.{at}.role: Input should be 'user' or 'assistant'")]
    found = [
        *_limits(body),
        *_contents(messages),
        *_pairs(messages),
        *_served(messages),
        *_marks(body, messages),
        *_thoughts(body, messages),
        *(Violation("citation", at, text) for at, text in citations.lost(_numbered(messages))),
        *(
            Violation("hosted", at, f"messages.{at}.content.{n}: {text}")
            for at, n, block in _numbered(messages)
            for text in hosted.faults(block)
        ),
    ]
    if _continues(body):
        found = [violation for violation in found if (violation.rule, violation.at) != ("orphan", 0)]
    if messages[0]["role"] != "user":
        found.append(Violation("first_role", 0, 'messages: first message must use the "user" role'))
    return sorted(found, key=lambda violation: violation.at)


def _numbered(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    return ((at, n, block) for at, message in enumerate(messages) for n, block in enumerate(blocks_of(message)))


def _continues(body: Mapping[str, Any]) -> bool:
    """Return whether the calls before the first message are in a thread that the server has."""
    thread = body.get("thread")
    return isinstance(thread, dict) and thread.get("type") == "continue"


def added(client: Any, sent: Any) -> list[Violation]:
    """Find the rules that ``sent`` breaks more often than the client's own body does."""
    more = broken_more_often(violations(client), violations(sent))
    known = set(hosted.sealed(client.get("messages")))
    return more + [
        Violation("hosted", 0, "The encrypted content could not be verified.")
        for text in hosted.sealed(sent.get("messages"))
        if text not in known
    ]


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a message; one text counts as one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _limits(body: Mapping[str, Any]) -> Iterator[Violation]:
    limit, thinking = body.get("max_tokens"), body.get("thinking")
    if not isinstance(limit, int):
        yield Violation("max_tokens", 0, "max_tokens: Field required")
    elif isinstance(thinking, dict) and isinstance(budget := thinking.get("budget_tokens"), int) and budget >= limit:
        yield Violation("max_tokens", 0, "`max_tokens` must be greater than `thinking.budget_tokens`")


def _contents(messages: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        if not blocks and at < len(messages) - 1:
            yield Violation("content", at, f"messages.{at}: all messages must have non-empty content")
        for n, block in enumerate(blocks):
            kind = block.get("type")
            if kind == "text" and not str(block.get("text", "")).strip():
                yield Violation("content", at, f"messages.{at}.content.{n}: text content blocks must be non-empty")
            elif not isinstance(kind, str):
                yield Violation("content", at, f"messages.{at}.content.{n}.type: Field required")


def _pairs(messages: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    seen: set[str] = set()
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        yield from _calls(at, blocks, seen)
        asked = (
            [block.get("id") for block in blocks_of(messages[at - 1]) if block.get("type") == "tool_use"] if at else []
        )
        yield from _results(at, blocks, asked if at and messages[at - 1]["role"] == "assistant" else [])
        following = blocks_of(messages[at + 1]) if at + 1 < len(messages) else []
        answered = {block.get("tool_use_id") for block in following if block.get("type") == "tool_result"}
        missing = [
            str(block.get("id"))
            for block in blocks
            if block.get("type") == "tool_use" and block.get("id") not in answered
        ]
        if missing and message["role"] == "assistant":
            yield Violation(
                "unanswered",
                at,
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
                "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            )


def _calls(at: int, blocks: Sequence[Mapping[str, Any]], seen: set[str]) -> Iterator[Violation]:
    for n, block in enumerate(blocks):
        if block.get("type") != "tool_use":
            continue
        name = block.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name):
            yield Violation(
                "call", at, f"messages.{at}.content.{n}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            )
        elif name in seen:
            yield Violation("call", at, f"messages.{at}.content.{n}: `tool_use` ids must be unique")
        elif not isinstance(block.get("input"), dict) or not block.get("name"):
            yield Violation("call", at, f"messages.{at}.content.{n}.tool_use.input: Input should be a valid dictionary")
        seen.add(str(name))


def _results(at: int, blocks: Sequence[Mapping[str, Any]], asked: Sequence[Any]) -> Iterator[Violation]:
    answered: set[Any] = set()
    other = False
    for n, block in enumerate(blocks):
        if block.get("type") != "tool_result":
            other = True
            continue
        name = block.get("tool_use_id")
        if name not in asked:
            yield Violation(
                "orphan",
                at,
                f"messages.{at}.content.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message.",
            )
        elif name in answered:
            yield Violation(
                "duplicate",
                at,
                f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {name}",
            )
        elif other:
            yield Violation(
                "results_first",
                at,
                f"messages.{at}: `tool_result` blocks must come first in the content of their message",
            )
        answered.add(name)


def _served(messages: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    """Check that the result of each server tool follows its call. The tool may call the client's tools first: then its result is in a
    later message, with only results between."""
    waiting: dict[str, int] = {}
    called: set[str] = set()
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        if message["role"] == "user" and not any(block.get("type") == "tool_result" for block in blocks):
            yield from (_unserved(before, name) for name, before in waiting.items())
            waiting.clear()
        for block in blocks:
            kind, caller = str(block.get("type")), block.get("caller")
            needed = caller.get("tool_id") if isinstance(caller, dict) else None
            if kind in ("server_tool_use", "mcp_tool_use"):
                called.add(str(block.get("id")))
                waiting[str(block.get("id"))] = at
            elif kind.endswith("_tool_result"):
                needed = block.get("tool_use_id")
                waiting.pop(str(needed), None)
            if needed is not None and str(needed) not in called:
                yield _unserved(at, needed)


def _unserved(at: int, name: Any) -> Violation:
    text = f"unexpected `tool_use_id` found in server tool result blocks: {name}. Each must have a corresponding `server_tool_use` block before it."
    return Violation("server_tool", at, f"messages.{at}: {text}")


def _marks(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    rows = [row for name in ("tools", "system") if isinstance(body.get(name), list) for row in body[name]]
    carriers = [row for row in rows if isinstance(row, dict)] + [
        block for message in messages for block in blocks_of(message)
    ]
    marked = [block for block in carriers if block.get("cache_control")]
    most = MOST_MARKS - bool(body.get("cache_control"))
    if len(marked) > most:
        yield Violation("marks", 0, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        yield Violation("marks", 0, "cache_control: Extra inputs are not permitted in `thinking` blocks")
    lasting = [_TTL.get(block["cache_control"].get("ttl", "5m"), 0) for block in marked]
    if any(before < after for before, after in pairwise(lasting)):
        yield Violation("marks", 0, "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def _thoughts(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    for at, message in enumerate(messages):
        for n, block in enumerate(blocks_of(message)):
            if block.get("type") == "thinking" and block.get("signature") != sign(str(block.get("thinking"))):
                yield Violation("signature", at, f"messages.{at}.content.{n}: Invalid `signature` in `thinking` block")
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":  # adaptive: the model may not have thought
        return
    last = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    blocks = [block for block in blocks_of(messages[last]) if block.get("type") != "compaction"] if last >= 0 else []
    calls = any(block.get("type") == "tool_use" for block in blocks)
    running = last == len(messages) - 2 and any(block.get("type") == "tool_result" for block in blocks_of(messages[-1]))
    if calls and running and blocks[0].get("type") not in ("thinking", "redacted_thinking"):
        yield Violation(
            "thinking_first",
            last,
            f"messages.{last}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{blocks[0].get('type')}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
        )
