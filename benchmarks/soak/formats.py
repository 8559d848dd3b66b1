"""The wire formats as the soak speaks them: requests, and answers whose every byte follows from the request."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

CHUNKS = 100
"""Events of a stream."""
CHARACTERS_A_TOKEN = 4
MODEL = "loaded"
OLLAMA_MODEL = "loaded-by-ollama"
"""A model of an upstream whose provider is ``ollama``."""

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Format:
    """One wire format."""

    name: str
    path: str
    items: str
    """The member that holds the conversation."""
    asked: dict[str, Any]
    """The other members of a request: its model, and what limits the answer to 200 tokens."""
    event: Callable[[str], bytes]
    """A piece of text -> an event of a stream."""
    end: bytes
    answer: Callable[[str, int], dict[str, Any]]
    """(text, prompt tokens) -> a whole answer."""
    text_in: Callable[[Any], str]
    """A whole answer -> its text."""
    media_type: str = "text/event-stream"
    """That of a stream."""

    def body(self, messages: list[Message], **more: Any) -> bytes:
        """Return a request for an answer to plain messages."""
        return orjson.dumps({**self.asked, self.items: messages, **more})

    def pieces(self, seed: str, size: int = 0) -> list[bytes]:
        """Return the events of the stream for a seed, each so many bytes longer than it needs to be."""
        texts = [hashlib.sha256(f"{seed} {number}".encode()).hexdigest() + "x" * size for number in range(CHUNKS)]
        return [*map(self.event, texts), self.end]

    def hash(self, seed: str, size: int = 0) -> str:
        """Return the hash of a whole stream."""
        return hashlib.sha256(b"".join(self.pieces(seed, size))).hexdigest()


def _named(data: dict[str, Any]) -> bytes:
    return b"event: " + data["type"].encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


CHAT = Format(
    "chat", "/v1/chat/completions", "messages", {"model": MODEL, "max_tokens": 200},
    lambda text: b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) + b"\n\n",
    b"data: [DONE]\n\n",
    lambda text, prompt: {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 30},
    },
    lambda answer: str(answer["choices"][0]["message"]["content"]),
)  # fmt: skip
MESSAGES = Format(
    "messages", "/v1/messages", "messages", {"model": MODEL, "max_tokens": 200},
    lambda text: _named({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    lambda text, prompt: {
        "type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": prompt, "output_tokens": 30},
    },
    lambda answer: str(answer["content"][0]["text"]),
)  # fmt: skip
RESPONSES = Format(
    "responses", "/v1/responses", "input", {"model": MODEL, "max_output_tokens": 200},
    lambda text: _named({"type": "response.output_text.delta", "delta": text}),
    b'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed"}}\n\n',
    lambda text, prompt: {
        "object": "response", "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}],
        "usage": {"input_tokens": prompt, "output_tokens": 30},
    },
    lambda answer: str(answer["output"][0]["content"][0]["text"]),
)  # fmt: skip
OLLAMA = Format(
    "ollama", "/api/chat", "messages", {"model": OLLAMA_MODEL, "options": {"num_predict": 200}, "stream": False},
    lambda text: orjson.dumps({"message": {"role": "assistant", "content": text}, "done": False}) + b"\n",
    b'{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n',
    lambda text, prompt: {
        "message": {"role": "assistant", "content": text}, "done": True, "prompt_eval_count": prompt, "eval_count": 30
    },
    lambda answer: str(answer["message"]["content"]),
    "application/x-ndjson",
)  # fmt: skip
FORMATS = (CHAT, MESSAGES, RESPONSES, OLLAMA)


def text_of(item: Any) -> str:
    """Return the text of a message in any of the formats."""
    content = item.get("content", "")
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)
