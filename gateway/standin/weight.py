"""What a request weighs in tokens, as an upstream with OpenAI's o200k vocabulary bills it.

The vocabulary is the gateway's, the rules of counting are deliberately not: what checks a count must not be made of it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from gateway.context.tokenizers import count

A_MESSAGE: Final = 3
A_NAME: Final = 1
A_REPLY: Final = 3
"""OpenAI's published overheads: https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken"""

AN_IMAGE: Final = 765
A_SMALL_IMAGE: Final = 85
"""A 1024 x 1024 image in high detail, and any image in low, by the published rule for GPT-4o."""
A_SOUND_OR_FILE: Final = 300


def text_tokens(text: str) -> int:
    """Count one text."""
    return count(text, "o200k_base") if text else 0


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Count everything of a request that a model reads."""
    messages = body.get("messages")
    total = A_REPLY + sum(message_tokens(orjson.dumps(message)) for message in messages or [])
    for key in ("tools", "functions", "response_format"):
        if body.get(key):
            total += text_tokens(orjson.dumps(body[key]).decode())
    return total


@lru_cache(maxsize=65_536)
def message_tokens(message: bytes) -> int:
    """Count one message, given as JSON so that it can be remembered."""
    read = orjson.loads(message)
    total = A_MESSAGE + text_tokens(str(read.get("role", "")))
    if isinstance(read.get("name"), str):
        total += A_NAME + text_tokens(read["name"])
    total += _content_tokens(read.get("content")) + text_tokens(read.get("reasoning_content") or "")
    for call in [*(read.get("tool_calls") or []), {"function": read.get("function_call") or {}}]:
        called = call.get("function") or call.get("custom") or {}
        total += sum(text_tokens(str(called.get(key) or "")) for key in ("name", "arguments", "input"))
        total += A_MESSAGE if called else 0
    return total


def _content_tokens(content: Any) -> int:
    if isinstance(content, str):
        return text_tokens(content)
    return sum(map(_part_tokens, content)) if isinstance(content, list) else 0


def _part_tokens(part: Mapping[str, Any]) -> int:
    text = part.get("text", part.get("refusal"))
    if isinstance(text, str):
        return text_tokens(text)
    if part.get("type") == "image_url":
        detail = part["image_url"].get("detail") if isinstance(part.get("image_url"), dict) else None
        return A_SMALL_IMAGE if detail == "low" else AN_IMAGE
    return A_SOUND_OR_FILE
