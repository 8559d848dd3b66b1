"""Everything that passes with our own client passes with aiohttp's, which serves where our parser cannot be loaded."""

import sys

import pytest
import structlog

from gateway.upstream import client
from gateway.upstream.own_http import OwnHttp
from gateway.upstream.public_http import PublicHttp
from tests.e2e.test_cases_passing import *  # noqa: F403


@pytest.fixture(autouse=True)
def no_httptools(monkeypatch):
    """Let the parser of our own client be missing."""
    monkeypatch.delitem(sys.modules, "gateway.upstream.own_http")
    monkeypatch.delitem(sys.modules, "gateway.upstream.http1")
    monkeypatch.setitem(sys.modules, "httptools", None)


async def test_without_its_parser_our_client_is_replaced_and_that_is_said():
    with structlog.testing.capture_logs() as logs:
        http = client.own_or_public()
        await http.close()
    assert isinstance(http, PublicHttp)
    assert logs == [{"event": "slower_http_client", "missing": "httptools", "log_level": "warning"}]


async def test_our_own_client_is_used_where_its_parser_is_there(monkeypatch):
    monkeypatch.undo()
    http = client.own_or_public()
    await http.close()
    assert isinstance(http, OwnHttp)
