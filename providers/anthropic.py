"""Anthropic: the Messages API and chat completions, which carry the API key in different headers."""

from typing import Final

from msgspec.structs import replace

from providers.openai import OPENAI, bearer


def api_key(key: str) -> dict[str, str]:
    """Put the key into ``x-api-key``; a subscription token (``sk-ant-oat``) is sent as a bearer token."""
    return bearer(key) if key.startswith("sk-ant-oat") else {"x-api-key": key}


ANTHROPIC: Final = replace(OPENAI, name="anthropic", authorize_messages=api_key)
"""Chat completions take the key as a bearer token: https://platform.claude.com/docs/en/api/openai-sdk"""
