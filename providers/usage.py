"""Read the billed token counts from a JSON body or from one stream event."""

from typing import Any, Final

import msgspec

from providers.record import Usage

MOST_TOKENS: Final = 2**40
"""Tokens. A larger count is not a bill: the largest windows have 2**24 tokens, and logs and records cannot write more than 2**63."""


class _Bill(msgspec.Struct):
    """An object with a usage. The decoder skips every other field without building it."""

    usage: Any = None


class _Answer(_Bill):
    """The places of usage: the answer itself, Groq's ``x_groq``, the last event of Responses, the first event of
    Messages."""

    x_groq: msgspec.Raw = msgspec.Raw(b"null")
    response: msgspec.Raw = msgspec.Raw(b"null")
    message: msgspec.Raw = msgspec.Raw(b"null")


_answer: Final = msgspec.json.Decoder(_Answer).decode
_bill: Final = msgspec.json.Decoder(_Bill | None).decode


def read_usage(body: bytes) -> Usage | None:
    """Return the usage in a body or in an event's data; None when it has no usable one.

    Most events of a stream have none, so the bytes are searched before anything is parsed: from the end, where usage mostly is.
    """
    if body.rfind(b'"usage"') < 0:
        return None
    try:
        answer = _answer(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return _usage(answer.usage) or _usage_in(answer.x_groq) or _usage_in(answer.response) or _usage_in(answer.message)


def read_output(body: bytes) -> int | None:
    """Return the output tokens in an event's data. The last usage of a Messages stream may state nothing else."""
    if b'"output_tokens"' not in body:
        return None
    try:
        bill = _bill(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return _count(bill.usage, "output_tokens") if bill and isinstance(bill.usage, dict) else None


def _usage_in(holder: msgspec.Raw) -> Usage | None:
    """Return the usage in a member of an answer; None without one."""
    try:
        bill = _bill(holder)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return _usage(bill.usage) if bill else None


def _usage(value: Any) -> Usage | None:
    """Read one usage object: chat completions count prompt and completion, Responses and several relays input and
    output."""
    if not isinstance(value, dict):
        return None
    prompt = _count(value, "prompt_tokens", "input_tokens")
    if prompt is None:
        return None
    if "cache_read_input_tokens" in value or "cache_creation_input_tokens" in value:
        # Anthropic's input count excludes tokens read from its cache and written to it.
        read, written = _count(value, "cache_read_input_tokens"), _count(value, "cache_creation_input_tokens")
        return Usage(prompt + (read or 0) + (written or 0), _count(value, "output_tokens"), read, written)
    details = value.get("prompt_tokens_details") or value.get("input_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else None
    written = _count(details, "cache_write_tokens") if isinstance(details, dict) else None
    if cached is None:
        # DeepSeek and Moonshot state the cached tokens next to the prompt.
        cached = _count(value, "prompt_cache_hit_tokens", "cached_tokens")
    return Usage(prompt, _count(value, "completion_tokens", "output_tokens"), cached, written)


def _count(value: dict[str, Any], *names: str) -> int | None:
    """Return the first of these members that is a number of tokens; None without one."""
    for name in names:
        if name in value and (number := count(value[name])) is not None:
            return number
    return None


def count(number: Any) -> int | None:
    """Return a stated number of tokens; None for what is none, also for true and false."""
    return number if type(number) is int and 0 <= number <= MOST_TOKENS else None
