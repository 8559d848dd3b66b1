"""What the upstream billed: usage read from a JSON body or from one stream event."""

from typing import Any

import orjson

from providers.record import Usage


def read_usage(body: bytes) -> Usage | None:
    """Read the usage in a body or in an event's data; None where it says nothing usable.

    Most events of a stream carry none, so the bytes are searched before anything is parsed.
    """
    if b'"usage"' not in body:
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    for holder in (value, value.get("x_groq"), value.get("response")):
        usage = _usage(holder.get("usage")) if isinstance(holder, dict) else None
        if usage:
            return usage
    return None


def _usage(value: Any) -> Usage | None:
    """Chat completions say prompt and completion, the Responses API and several relays say input and output."""
    if not isinstance(value, dict):
        return None
    prompt = _count(value, "prompt_tokens", "input_tokens")
    if prompt is None:
        return None
    details = value.get("prompt_tokens_details") or value.get("input_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        # DeepSeek and Moonshot name the cached part beside the prompt.
        cached = _count(value, "prompt_cache_hit_tokens", "cached_tokens")
    return Usage(prompt, _count(value, "completion_tokens", "output_tokens"), cached)


def _count(value: dict[str, Any], *names: str) -> int | None:
    for name in names:
        number = value.get(name)
        if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
            return number
    return None
