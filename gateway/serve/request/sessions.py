"""The client's own name of a conversation: headers and members by which clients and routers keep a conversation at one server."""

from collections.abc import Mapping
from typing import Any, Final

from multidict import CIMultiDict, istr

HEADERS: Final = (
    istr("x-session-id"),
    istr("session_id"),  # Codex
    istr("session-id"),
    istr("x-claude-code-session-id"),
    istr("x-session-affinity"),
    istr("x-sgl-routing-key"),  # SGLang's router
    istr("x-smg-routing-key"),  # its successor
    istr("x-opencode-session"),
    istr("x-litellm-session-id"),
    istr("x-grok-conv-id"),  # xAI
)
"""Headers that name a session, in the order in which they are believed. All of them travel on to the upstream. Looking up an
`istr` takes half of the work, because its small letters are known."""

MEMBERS: Final = ("prompt_cache_key", "session_id")
"""Members of a body that name a session: OpenAI's, and OpenRouter's."""

LONGEST: Final = 128
"""Characters of a session's name that are used."""


def session_of(headers: CIMultiDict[str], head: Mapping[str, Any]) -> str:
    """Return the client's name of the conversation; empty when it sends none."""
    for name in filter(headers.__contains__, HEADERS):
        if value := headers[name].strip():
            return value[:LONGEST]
    for member in MEMBERS:
        if isinstance(given := head.get(member), str) and given:
            return given[:LONGEST]
    return ""
