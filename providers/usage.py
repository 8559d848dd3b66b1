"""What the upstream billed: usage read from a JSON body or from one stream event."""

from typing import Any, Final

import msgspec

from providers.record import Usage


class _Bill(msgspec.Struct):
    """The one member of an answer that is wanted; the texts beside it are measured off, not read."""

    usage: Any = None


class _Answer(_Bill):
    """Where usage stands: in the answer itself, in Groq's own member, in the last event of Responses, in the first of Messages."""

    x_groq: msgspec.Raw = msgspec.Raw(b"null")
    response: msgspec.Raw = msgspec.Raw(b"null")
    message: msgspec.Raw = msgspec.Raw(b"null")


_answer: Final = msgspec.json.Decoder(_Answer).decode
_bill: Final = msgspec.json.Decoder(_Bill | None).decode


def read_usage(body: bytes) -> Usage | None:
    """Read the usage in a body or in an event's data; None where it says nothing usable.

    Most events of a stream carry none, so the bytes are searched before anything is parsed.
    """
    if b'"usage"' not in body:
        return None
    try:
        answer = _answer(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return (
        _usage(answer.usage) or _elsewhere(answer.x_groq) or _elsewhere(answer.response) or _elsewhere(answer.message)
    )


def _elsewhere(holder: msgspec.Raw) -> Usage | None:
    try:
        bill = _bill(holder)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return _usage(bill.usage) if bill else None


def _usage(value: Any) -> Usage | None:
    """Chat completions say prompt and completion, the Responses API and several relays say input and output."""
    if not isinstance(value, dict):
        return None
    prompt = _count(value, "prompt_tokens", "input_tokens")
    if prompt is None:
        return None
    if "cache_read_input_tokens" in value or "cache_creation_input_tokens" in value:
        # Anthropic counts beside the input what its cache held and what went into it.
        read, written = _count(value, "cache_read_input_tokens"), _count(value, "cache_creation_input_tokens")
        return Usage(prompt + (read or 0) + (written or 0), _count(value, "output_tokens"), read)
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
