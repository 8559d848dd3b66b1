"""The token count of a request by an upstream with OpenAI's o200k vocabulary.

The vocabulary is the gateway's; the counting rules are deliberately separate: a check must not use the code it checks.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from gateway.context.count.vocabularies import count

A_MESSAGE: Final = 3
"""Tokens per message; see `A_REPLY` for the source."""
A_NAME: Final = 1
"""Tokens per name; see `A_REPLY` for the source."""
A_REPLY: Final = 3
"""OpenAI's published overheads: https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken"""

AN_IMAGE: Final = 765
"""Tokens of a 1024 x 1024 image in high detail, by OpenAI's published rule for GPT-4o."""
A_SMALL_IMAGE: Final = 85
"""Tokens of an image in low detail, by the same rule."""
A_SOUND_OR_FILE: Final = 300
"""Tokens. Chosen: the stand-in does not read sounds and files."""


def text_tokens(text: str) -> int:
    """Count one text."""
    return count(text, "o200k_base") if text else 0


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Count everything of a request that a model reads. Unknown shapes count nothing."""
    total = A_REPLY + sum(message_tokens(orjson.dumps(message)) for message in _objects(body.get("messages")))
    for key in ("tools", "functions", "response_format"):
        if body.get(key):
            total += text_tokens(orjson.dumps(body[key]).decode())
    return total


@lru_cache(maxsize=65_536)
def message_tokens(message: bytes) -> int:
    """Count one message, given as JSON so that the result can be cached."""
    read = orjson.loads(message)
    total = A_MESSAGE + sum(_text(read.get(key)) for key in ("role", "name", "reasoning_content"))
    total += A_NAME * ("name" in read) + _text(read.get("content")) + sum(map(_part, _objects(read.get("content"))))
    for call in [*_objects(read.get("tool_calls")), {"function": read.get("function_call")}]:
        called = call.get("function") or call.get("custom")
        if isinstance(called, dict):
            total += A_MESSAGE + sum(_text(called.get(key)) for key in ("name", "arguments", "input"))
    return total


_UNREAD: Final = frozenset(
    {"type", "id", "call_id", "tool_use_id", "status", "signature", "cache_control", "annotations", "role"}
)
_SEALED: Final = frozenset({"encrypted_content", "data"})
SEALED_CHARACTERS: Final = 6
"""Characters of sealed text per token. Chosen near the ratio of base64."""


def items_tokens(body: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """Count a request of the Messages or the Responses API: instructions, items and tools."""
    total = A_REPLY
    for name in names:
        value = body.get(name)
        rows = value if isinstance(value, list) else [value] if value else []
        total += sum(A_MESSAGE + item_tokens(orjson.dumps(row)) for row in rows)
    return total + (text_tokens(orjson.dumps(body["tools"]).decode()) if body.get("tools") else 0)


@lru_cache(maxsize=65_536)
def item_tokens(item: bytes) -> int:
    """Count one item, given as JSON so that the result can be cached."""
    return _weigh(orjson.loads(item), "")


def _weigh(value: Any, name: str) -> int:
    if isinstance(value, str):
        return len(value) // SEALED_CHARACTERS if name in _SEALED else text_tokens(value)
    if isinstance(value, list):
        return sum(_weigh(inner, name) for inner in value)
    if not isinstance(value, dict):
        return 0
    if value.get("type") in ("image", "input_image", "document", "input_file", "computer_screenshot"):
        source = value.get("source")
        text = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else None
        return AN_IMAGE if text is None else _text(text)
    if value.get("type") == "tool_use":
        return text_tokens(str(value.get("name"))) + text_tokens(orjson.dumps(value.get("input")).decode())
    return sum(_weigh(inner, key) for key, inner in value.items() if key not in _UNREAD)


def _part(part: Mapping[str, Any]) -> int:
    text = part.get("text", part.get("refusal"))
    if isinstance(text, str):
        return text_tokens(text)
    if part.get("type") == "image_url":
        detail = part["image_url"].get("detail") if isinstance(part.get("image_url"), dict) else None
        return A_SMALL_IMAGE if detail == "low" else AN_IMAGE
    return A_SOUND_OR_FILE


def _text(value: Any) -> int:
    return text_tokens(value) if isinstance(value, str) else 0


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
