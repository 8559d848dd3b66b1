"""Anthropic: its own Messages API, and chat completions beside it, each with the key in a header of its own."""

from dataclasses import replace
from typing import Final

from providers.openai import OPENAI, bearer


def api_key(key: str) -> dict[str, str]:
    """Carry the key in ``x-api-key``; a token of a subscription (``sk-ant-oat``) is a bearer token."""
    return bearer(key) if key.startswith("sk-ant-oat") else {"x-api-key": key}


ANTHROPIC: Final = replace(OPENAI, name="anthropic", authorize_messages=api_key)
"""Chat completions take the key as a bearer token: https://platform.claude.com/docs/en/api/openai-sdk"""
