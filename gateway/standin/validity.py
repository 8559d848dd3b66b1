"""The rules of a valid list of messages for the strictest provider: one plain function per rule, by name.

They are the union of the rules of OpenAI, Anthropic, Gemini and Mistral, so that a list that passes here passes
everywhere. A client itself may break a rule; `added` finds rules that were broken on the way.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import orjson

PINNED: Final = frozenset({"system", "developer"})
ROLES: Final = PINNED | {"user", "assistant", "tool", "function"}

RULES: Final = {
    "shape": "a message is an object with a known role",
    "nothing_to_answer": "there is at least one message that is not system or developer",
    "first_role": "the first message that is not system or developer comes from the user",
    "content": "no content is missing or empty, and every part has a type and something in it",
    "call": "a tool call has an id of its own, a name, and arguments that are a JSON object",
    "unanswered": "every tool call is answered directly after the message that made it",
    "unanswered_last": "a conversation does not end on a tool call",
    "orphan": "a tool result answers a call of the assistant message directly before its block",
    "duplicate": "a call is answered once",
}
"""The rules every strict provider has, by name. OpenAI, Anthropic and Gemini refuse a request that breaks one."""

ALL_RULES: Final = {
    **RULES,
    "alternation": "user and assistant take turns, and a tool result is followed by the assistant",
    "late_system": "system messages stand at the beginning",
}
"""These and the rules that only some have (Mistral's API and many chat templates)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: its name, the message that breaks it, and a provider's error message."""

    rule: str
    at: int
    text: str

    def __str__(self) -> str:
        return f"messages[{self.at}]: {self.text}"


def violations(messages: Any) -> list[Violation]:
    """Find every broken rule, in the order of the messages."""
    if not isinstance(messages, list) or not messages:
        return [
            Violation(
                "nothing_to_answer", 0, "Invalid 'messages': empty array. Expected an array with minimum length 1."
            )
        ]
    shapeless = [
        Violation(
            "shape", at, f"Invalid value: {role_of(message)!r}. Supported values are: {', '.join(sorted(ROLES))}."
        )
        for at, message in enumerate(messages)
        if role_of(message) not in ROLES
    ]
    if shapeless:
        return shapeless
    found = [*_order(messages), *_contents(messages), *_calls(messages), *_pairs(messages)]
    return sorted(found, key=lambda violation: violation.at)


def added(client: Sequence[Any], sent: Sequence[Any]) -> list[Violation]:
    """Find the rules that ``sent`` breaks more often than the client's own messages."""
    return broken_more_often(violations(list(client)), violations(list(sent)))


def broken_more_often(before: Sequence[Violation], after: Sequence[Violation]) -> list[Violation]:
    """Return the violations in ``after`` beyond the number of the same rule in ``before``."""
    allowed = Counter(violation.rule for violation in before)
    more = []
    for violation in after:
        allowed[violation.rule] -= 1
        if allowed[violation.rule] < 0:
            more.append(violation)
    return more


def role_of(message: Any) -> str:
    """Return the role of a message, or its replacement."""
    role = message.get("role") if isinstance(message, dict) else type(message).__name__
    return role if isinstance(role, str) else repr(role)


def _order(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    unpinned = [at for at, message in enumerate(messages) if message["role"] not in PINNED]
    if not unpinned:
        yield Violation("nothing_to_answer", 0, "at least one message must not be a system message")
        return
    if messages[unpinned[0]]["role"] != "user":
        yield Violation("first_role", unpinned[0], "first message must use the user role")
    for at in range(unpinned[0] + 1, len(messages)):
        if messages[at]["role"] in PINNED:
            yield Violation("late_system", at, "System message must be at the beginning.")
    for before, at in pairwise(unpinned):
        pair = (messages[before]["role"], messages[at]["role"])
        if pair in {("user", "user"), ("assistant", "assistant"), ("tool", "user"), ("function", "user")}:
            yield Violation("alternation", at, f"Unexpected role '{pair[1]}' after role '{pair[0]}'")


def _contents(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    for at, message in enumerate(messages):
        content, role = message.get("content"), message["role"]
        if isinstance(content, list):
            if not content or not all(_part_is_whole(part) for part in content):
                yield Violation("content", at, "text content blocks must be non-empty")
        elif role in {"tool", "function"}:
            if not isinstance(content, str):  # an empty result counts as a result; a missing one does not
                yield Violation("content", at, "Invalid value for 'content': expected a string, got null.")
        elif not isinstance(content, str) or not content.strip():
            says_otherwise = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
            if not (role == "assistant" and says_otherwise and not content):
                yield Violation("content", at, "all messages must have non-empty content")


def _part_is_whole(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return False
    kind = part["type"]
    return bool(part.get(kind, part.get("text")) or kind not in {"text", "refusal", "image_url", "input_audio", "file"})


def _calls(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    for at, message in enumerate(messages):
        if "tool_calls" not in message or message["tool_calls"] is None:
            continue
        calls = message["tool_calls"]
        if not isinstance(calls, list) or not calls:
            yield Violation("call", at, f"Invalid 'messages[{at}].tool_calls': empty array.")
            continue
        ids = [call.get("id") if isinstance(call, dict) else None for call in calls]
        if len(set(map(repr, ids))) < len(ids):
            yield Violation("call", at, "`tool_use` ids must be unique")
        for call in calls:
            fault = _call_fault(call)
            if fault:
                yield Violation("call", at, fault)


def _call_fault(call: Any) -> str:
    """Return the fault of one tool call; empty without one."""
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
        return "Missing required parameter: 'tool_calls[].id'."
    called = call.get("function", call.get("custom"))
    if not isinstance(called, dict) or not isinstance(called.get("name"), str) or not called["name"]:
        return "Missing required parameter: 'tool_calls[].function.name'."
    if "custom" in call:
        return (
            "" if isinstance(called.get("input"), str) else "Missing required parameter: 'tool_calls[].custom.input'."
        )
    try:
        return "" if isinstance(orjson.loads(called.get("arguments", "")), dict) else "arguments must be a JSON object"
    except (orjson.JSONDecodeError, TypeError):
        return "Invalid JSON in tool call arguments"


def _pairs(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    """Walk blocks: an assistant message and the results directly after it."""
    at = 0
    while at < len(messages):
        end = at + 1
        while end < len(messages) and messages[end]["role"] in {"tool", "function"}:
            end += 1
        opener = messages[at]
        if opener["role"] in {"tool", "function"}:
            start, wanted = at, Counter[str]()
        else:
            start, wanted = at + 1, _expected(opener)
        yield from _block(messages, start, end, wanted)
        missing = [name for name, count in wanted.items() if count > 0]
        if missing:
            rule = "unanswered_last" if end == len(messages) and start == end else "unanswered"
            yield Violation(
                rule,
                at,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}",
            )
        at = end


def _block(messages: list[dict[str, Any]], start: int, end: int, wanted: Counter[str]) -> Iterator[Violation]:
    """Check the results of one block against their calls; removes answered calls from ``wanted``."""
    known = set(wanted)
    for at in range(start, end):
        key = _answers(messages[at])
        if key not in known:
            text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            yield Violation("orphan", at, f"Invalid parameter: {text}")
        elif wanted[key] < 1:
            yield Violation("duplicate", at, f"each tool_use must have a single result. Found multiple for id: {key}")
        else:
            wanted[key] -= 1


def _expected(message: Mapping[str, Any]) -> Counter[str]:
    """Return the results that an assistant message needs, by call id; a legacy call by its name."""
    if message["role"] != "assistant":
        return Counter()
    calls = message.get("tool_calls")
    wanted = Counter(
        {str(call.get("id")): 1 for call in calls if isinstance(call, dict)} if isinstance(calls, list) else {}
    )
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        wanted[f"function {legacy.get('name')}"] += 1
    return wanted


def _answers(message: Mapping[str, Any]) -> str:
    return f"function {message.get('name')}" if message["role"] == "function" else str(message.get("tool_call_id"))
