"""The client's own name of a conversation: headers and members by which clients and routers keep a conversation at one server."""

from collections.abc import Mapping
from typing import Any, Final

from multidict import CIMultiDict

HEADERS: Final = (
    "x-session-id",
    "session_id",  # Codex
    "session-id",
    "x-claude-code-session-id",
    "x-session-affinity",
    "x-sgl-routing-key",  # SGLang's router
    "x-smg-routing-key",  # its successor
    "x-opencode-session",
    "x-litellm-session-id",
    "x-grok-conv-id",  # xAI
)
"""Headers that name a session, in the order in which they are believed. All of them travel on to the upstream."""

MEMBERS: Final = ("prompt_cache_key", "session_id")
"""Members of a body that do: OpenAI's, and OpenRouter's."""

LONGEST: Final = 128
"""Characters of a session's name that are used."""


def session_of(headers: CIMultiDict[str], head: Mapping[str, Any]) -> str:
    """Return the client's name of the conversation; empty when it sends none."""
    for name in filter(headers.__contains__, HEADERS):
        if value := headers[name].strip():
            return value[:LONGEST]
    for name in MEMBERS:
        if isinstance(given := head.get(name), str) and given:
            return given[:LONGEST]
    return ""
