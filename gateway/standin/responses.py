"""The rules of a valid Responses body for OpenAI: one plain function per rule, by name.

The messages are the API's own, as in public reports.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from gateway.standin import hosted
from gateway.standin.validity import Violation, broken_more_often

RULES: Final = {
    "shape": "input is a text or a list of items with a type or a role",
    "content": "a message has parts of the kind that its role may have, and something in them",
    "call": "a function call has an id, a name and arguments that are JSON",
    "unanswered": "every call has its output, except one that the model does not wait for",
    "orphan": "an output answers a call in front of it",
    "duplicate": "a call is answered once, and no item id stands twice",
    "program": "calls and results of a program, and its output, come after the program",
    "follower": "a reasoning item is followed by the item it led to",
    "summary": "a reasoning item has a summary, if an empty one",
    "reasoning": "an item that reasoning led to comes with that reasoning",
    "encrypted": "encrypted content is sent back as it came",
    "hosted": "an item of a tool that the provider runs has its members",
}

ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_PARTS: Final = {"assistant": frozenset({"output_text", "refusal"})}
_INPUTS: Final = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_ANSWERED: Final = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}
)


def violations(body: Any) -> list[Violation]:
    """Find every broken rule, in the order of the items."""
    given = body.get("input") if isinstance(body, dict) else None
    if isinstance(given, str):
        return [] if given else [Violation("shape", 0, "Invalid 'input': empty string.")]
    if not isinstance(given, list) or not given:
        return [Violation("shape", 0, "Missing required parameter: 'input'.")]
    for at, item in enumerate(given):
        if not isinstance(item, dict) or not isinstance(kind_of(item), str):
            return [Violation("shape", at, f"Invalid type for 'input[{at}]': expected an input item.")]
    found = [*_messages(given), *_calls(given), *_pairs(given), *_programs(given), *_reasoning(given), *_hosted(given)]
    return sorted(found, key=lambda violation: violation.at)


def added(client: Any, sent: Any) -> list[Violation]:
    """Find the rules that ``sent`` breaks more often than the client's own body, and lost or changed reasoning."""
    more = broken_more_often(violations(client), violations(sent))
    if isinstance(client.get("input"), list) and isinstance(sent.get("input"), list):
        more += _lost(client["input"], sent["input"])
    return more


def _hosted(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    return (
        Violation("hosted", at, f"input[{at}]: {text}") for at, item in enumerate(items) for text in hosted.faults(item)
    )


def kind_of(item: Mapping[str, Any]) -> Any:
    """Return an item's type; a message may leave it out."""
    return item.get("type", "message" if item.get("role") in ROLES else None)


def call_id(item: Mapping[str, Any]) -> str:
    """Return the id that connects a call and its output."""
    return str(item.get("call_id") or item.get("id"))


def _messages(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    for at, item in enumerate(items):
        if kind_of(item) != "message":
            continue
        role, content = str(item.get("role")), item.get("content")
        if role not in ROLES:
            yield Violation(
                "content", at, f"Invalid value: '{role}'. Supported values are: {', '.join(sorted(ROLES))}."
            )
        if isinstance(content, str):
            continue
        if not isinstance(content, list) or not content:
            yield Violation("content", at, f"Invalid 'input[{at}].content': expected a string or a list of parts.")
            continue
        allowed = _PARTS.get(role, _INPUTS)
        for n, part in enumerate(content):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind not in allowed:
                names = ", ".join(f"'{name}'" for name in sorted(allowed))
                yield Violation(
                    "content", at, f"Invalid value: '{kind}'. Supported values are: {names}. (input[{at}].content[{n}])"
                )


def _calls(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    ids = Counter(item["id"] for item in items if isinstance(item.get("id"), str))
    for at, item in enumerate(items):
        if isinstance(item.get("id"), str) and ids[item["id"]] > 1:
            ids[item["id"]] = 1
            yield Violation(
                "duplicate", at, f"Duplicate item found with id {item['id']}. Remove duplicate items from your input."
            )
        if kind_of(item) != "function_call":
            continue
        try:
            whole = isinstance(orjson.loads(item.get("arguments", "")), dict)
        except (orjson.JSONDecodeError, TypeError):
            whole = False
        if not whole or not item.get("name") or not isinstance(item.get("call_id"), str):
            yield Violation("call", at, f"Invalid 'input[{at}].arguments': expected a JSON object.")


def _pairs(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    waiting: dict[str, int] = {}
    answered: set[str] = set()
    asynchronous: set[str] = set()
    for at, item in enumerate(items):
        kind = str(kind_of(item))
        name = call_id(item)
        if kind in _ANSWERED:
            waiting[name] = at
            answered.discard(name)
            if item.get("async") is True:
                asynchronous.add(name)
        elif kind.endswith("_output") and kind != "program_output":
            if name in answered:
                yield Violation("duplicate", at, f"Duplicate tool output for call_id {name}.")
            elif name not in waiting:
                yield Violation("orphan", at, f"No tool call found for function call output with call_id {name}.")
            waiting.pop(name, None)
            answered.add(name)
    for name, at in waiting.items():
        if name not in asynchronous:
            yield Violation("unanswered", at, f"No tool output found for function call {name}.")


def _programs(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    programs: set[Any] = set()
    for at, item in enumerate(items):
        caller = item.get("caller")
        needed = caller.get("caller_id") if isinstance(caller, dict) else None
        if kind_of(item) == "program":
            programs.add(item.get("call_id"))
        elif kind_of(item) == "program_output":
            needed = item.get("call_id")
        if needed is not None and needed not in programs:
            yield Violation("program", at, f"No program found with call_id {needed}.")


def _reasoning(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    for at, item in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        if not isinstance(item.get("summary"), list):
            yield Violation("summary", at, f"Missing required parameter: 'input[{at}].summary'.")
        following = items[at + 1] if at + 1 < len(items) else {}
        kind = str(kind_of(following))
        follows = (
            kind == "reasoning"
            or kind.endswith("_call")
            or (kind == "message" and following.get("role") == "assistant")
        )
        if not follows:
            text = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            yield Violation("follower", at, text)


def _lost(client: Sequence[Mapping[str, Any]], sent: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    """Return reasoning of the client that is missing or changed although its result still stands."""
    kept = {item["id"]: item for item in sent if isinstance(item, dict) and isinstance(item.get("id"), str)}
    for at, item in enumerate(client):
        if kind_of(item) != "reasoning" or not isinstance(item.get("id"), str):
            continue
        following = client[at + 1].get("id") if at + 1 < len(client) else None
        if following in kept and item["id"] not in kept:
            text = f"Item '{following}' was provided without its required 'reasoning' item: '{item['id']}'."
            yield Violation("reasoning", at, text)
        elif item["id"] in kept and kept[item["id"]] != item:
            yield Violation("encrypted", at, f"The encrypted content for item {item['id']} could not be verified.")
