"""A server's own endpoints are found below its root, and those that change the server are none of them."""

import pytest

from providers.openai import join_at_root
from providers.record import Endpoint
from providers.registry import ROWS

CLOSED = [
    *(f"{method} /api/{name}" for name in ("pull", "push", "create", "copy", "delete") for method in ("POST", "DELETE")),
    "POST /api/blobs/sha256:a", "GET /slots", "POST /slots/0", "POST /props", "POST /lora-adapters", "GET /metrics",
    "POST /models/load", "POST /sleep", "POST /wake_up", "POST /reset_prefix_cache", "POST /collective_rpc",
    "POST /load_lora_adapter", "POST /flush_cache", "POST /update_weights_from_disk", "POST /abort_request",
    "POST /start_profile", "GET /server_info", "POST /api/chat/../delete", "POST /api/chat ", "POST /api/chat\n",
]  # fmt: skip


@pytest.mark.parametrize("endpoint", CLOSED)
def test_no_endpoint_is_passed_that_changes_a_server_or_shows_what_others_do(endpoint: str) -> None:
    assert [row.name for row in ROWS if row.native is not None and row.native.fullmatch(endpoint)] == []


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:1", "http://h:1/api/chat?a=1"),
        ("http://h:1/v1", "http://h:1/api/chat?a=1"),
        ("http://h:1/v1/", "http://h:1/api/chat?a=1"),
        ("http://h/llm/v1?key=k", "http://h/llm/api/chat?key=k&a=1"),
    ],
)
def test_a_native_endpoint_stands_below_the_root(base: str, url: str) -> None:
    assert join_at_root(Endpoint(base), "/api/chat", "a=1") == url
