"""The known wire formats by their paths. Other paths are passed through."""

import re
from types import MappingProxyType
from typing import Final

from gateway.wire.chat import CHAT
from gateway.wire.format import Conversation, Format
from gateway.wire.memory import Memory
from gateway.wire.message import Message, tool_calls
from gateway.wire.messages import MESSAGES
from gateway.wire.ollama import OLLAMA
from gateway.wire.responses import RESPONSES

FORMATS: Final = MappingProxyType({format.path: format for format in (CHAT, MESSAGES, RESPONSES, OLLAMA)})
"""One row per format. To add a format, add a module here and its row."""


_OF_OLLAMA: Final = re.compile(
    r"/api/(?:blobs|chat|copy|create|delete|embed|embeddings|generate|me|ps|pull|push|show|tags|version)(?:/|\Z)"
)
"""https://github.com/ollama/ollama/blob/main/docs/api.md"""


def is_of_ollama(path: str) -> bool:
    """Return whether a path is one of Ollama's own API, served here or not."""
    return _OF_OLLAMA.match(path) is not None


def format_of(path: str) -> Format | None:
    """Return the format of bodies posted to a path; None for a path that is only passed through."""
    return FORMATS.get(path)


def format_at(path: str) -> Format:
    """Return the format for errors at a path: its own API's, or chat completions."""
    if is_of_ollama(path):
        return OLLAMA
    return next((format for format in FORMATS.values() if path.startswith(format.path)), CHAT)


NATIVE: Final = frozenset({"system", "stop_sequences", "output_config", "mcp_servers", "context_management"})
"""Members that only Messages bodies have."""
BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
"""Content blocks that only Messages bodies have."""
OLLAMAS: Final = frozenset({"options", "keep_alive", "think"})
"""Members that only bodies of Ollama's own API have."""
IN_MESSAGES_OF_OLLAMA: Final = frozenset({"images", "thinking", "tool_name"})
"""Members that only messages of Ollama's own API have."""


def recognise(raw: bytes, memory: Memory | None = None) -> Conversation | None:
    """Parse a body of any format when its path is unknown; None when it matches no format."""
    request = RESPONSES.parse(raw, memory) or CHAT.parse(raw, memory)
    if request is None or request.format is RESPONSES:
        return request
    body = request.body
    tools = body.get("tools")
    native = not NATIVE.isdisjoint(body) or any(
        isinstance(tool, dict) and "input_schema" in tool for tool in (tools if isinstance(tools, list) else ())
    )
    if native or any(map(_has_blocks, request.messages)):
        return MESSAGES.parse(raw, memory) or request
    is_ollamas = not OLLAMAS.isdisjoint(body) or any(map(_is_ollamas, request.messages))
    return (OLLAMA.parse(raw, memory) if is_ollamas else None) or request


def _has_blocks(message: Message) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and str(part.get("type")) in BLOCKS for part in content
    )


def _is_ollamas(message: Message) -> bool:
    """Return whether a message is one of Ollama's own API, where the arguments of a call are an object."""
    if not IN_MESSAGES_OF_OLLAMA.isdisjoint(message):
        return True
    functions = [call.get("function") for call in tool_calls(message)]
    return any(isinstance(function, dict) and isinstance(function.get("arguments"), dict) for function in functions)
