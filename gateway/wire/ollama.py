"""Ollama's own chat API: how its requests are read and edited, its errors, and its streams, which have one object in a line.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

from typing import Any, Final

import msgspec

from gateway.wire.format import Format, ServerIds
from gateway.wire.memory import Memory
from gateway.wire.message import dumps
from gateway.wire.ollama_edits import encode
from gateway.wire.ollama_reading import OllamaRequest, read

PATH: Final = "/api/chat"


def parse(raw: bytes, memory: Memory | None = None) -> OllamaRequest | None:
    """Parse a body; return None if it is no body of this format."""
    return read(raw, memory or Memory(), OLLAMA)


def refusal(window: int, prompt: int, reserve: int, largest: str) -> bytes:
    """Return our own 400. Its first words are Ollama's own."""
    return _error(
        f"the input length exceeds the context length: the maximum context length is {window} tokens. The smallest form of this request that "
        f"keeps its meaning still needs about {prompt} tokens, with {reserve} more reserved for the answer. Largest parts: {largest}. "
        "Shorten these, or raise num_ctx and the configured window."
    )


def error(message: str, code: str, kind: str, param: str | None) -> bytes:
    """Return any other error of our own. Ollama's errors are one text, so code, type and parameter are left out."""
    return _error(message)


def _error(message: str) -> bytes:
    return dumps({"error": message})


class _Line(msgspec.Struct, gc=False):
    """A line of an answer."""

    message: dict[str, Any] = {}
    done: Any = None
    error: Any = None


_line: Final = msgspec.json.Decoder(_Line).decode


def _read_line(data: bytes) -> _Line | None:
    try:
        return _line(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_preamble(data: bytes) -> bool:
    """Return whether a line has no content yet: a role, or a text that is empty."""
    line = _read_line(data)
    return (
        line is not None
        and line.error is None
        and line.done is False
        and not any(value for name, value in line.message.items() if name != "role")
    )


def is_end(data: bytes) -> bool:
    """Return whether a line is the last of an answer."""
    line = _read_line(data)
    return line is not None and line.done is True


OLLAMA: Final = Format(
    name="ollama",
    path=PATH,
    parse=parse,
    encode=encode,
    refusal=refusal,
    error=error,
    is_preamble=is_preamble,
    is_end=is_end,
    ids=ServerIds(lambda _: (), lambda _: False, lambda _: ()),
    in_lines=True,
    usage_sign=b'"prompt_eval_count"',
)
