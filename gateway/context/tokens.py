"""The tokens of a request: what its messages and everything beside them cost."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gateway.context.draft import Counter
from gateway.context.tokenizers import count
from providers.wire import ChatRequest, Message, call_arguments, call_name, dumps, media_parts, texts, tool_calls

MESSAGE: Final = 3
REQUEST: Final = 3
IMAGE: Final = 1000


def counter(family: str) -> Counter:
    """Answer the counter of a family of models."""
    vocabulary = _vocabulary(family)

    def text(value: str) -> int:
        return count(value, vocabulary)

    def message(value: Message) -> int:
        total = MESSAGE + sum(text(part) for part in texts(value.get("content")))
        total += sum(IMAGE for _ in media_parts(value))
        for call in tool_calls(value):
            total += text(call_name(call)) + text(call_arguments(call)) + 8
        reasoning = value.get("reasoning_content", value.get("reasoning"))
        return total + (text(reasoning) if isinstance(reasoning, str) else 0)

    return Counter(message, text, exact=vocabulary == family)


def fixed_cost(body: Mapping[str, Any], family: str) -> int:
    """Count what is billed beside the messages: tools, functions, response schema and the frame of a request."""
    total = REQUEST
    for key in ("tools", "functions", "response_format"):
        if body.get(key):
            total += count(dumps(body[key]).decode(), _vocabulary(family))
    return total


def scaled(counter: Counter, ratio: float) -> Counter:
    """Multiply what a counter answers, rounding up; 1.0 is the counter itself."""
    if ratio == 1.0:
        return counter
    return replace(
        counter,
        message=lambda message: -int(-counter.message(message) * ratio // 1),
        text=lambda text: -int(-counter.text(text) * ratio // 1),
        exact=False,
    )


def proven(body_bytes: int, reserve: int, window: int, request: ChatRequest) -> bool:
    """Prove without counting that a request fits: no tokenizer makes more tokens than bytes."""
    return body_bytes + reserve + 1024 <= window and not any(
        part for message in request.messages for part in media_parts(message)
    )


def _vocabulary(family: str) -> str:
    return {"o200k": "o200k_base", "cl100k": "cl100k_base", "gemma": "gemma3", "qwen": "qwen3"}.get(
        family, "o200k_base"
    )
