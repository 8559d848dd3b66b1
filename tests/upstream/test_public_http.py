"""Everything that passes with the fast client passes with the public one, which serves where aiohttp is of an unknown version."""

import aiohttp
import pytest
import structlog

from gateway.upstream import client, fast_http
from gateway.upstream.fast_client import FastHttp
from gateway.upstream.public_http import PublicHttp
from tests.e2e.test_cases_passing import *  # noqa: F403


@pytest.fixture(autouse=True)
def unknown_aiohttp(monkeypatch):
    """Let the fast client know no version of aiohttp."""
    monkeypatch.setattr(fast_http, "KNOWN", ())


async def test_an_unknown_aiohttp_is_served_by_the_public_client_and_said_so():
    with structlog.testing.capture_logs() as logs:
        http = client.fast_or_public()
        await http.close()
    assert isinstance(http, PublicHttp)
    (event,) = logs
    assert (event["event"], event["aiohttp"]) == ("slower_http_client", aiohttp.__version__)
    assert "not one of the known versions" in event["reason"]


async def test_an_inner_part_that_has_changed_is_noticed(monkeypatch):
    monkeypatch.setattr(fast_http, "KNOWN", (".".join(aiohttp.__version__.split(".")[:2]),))
    assert fast_http.unknown_parts() == ""
    monkeypatch.setattr(fast_http, "_PARTS", ((fast_http.exchange, ("connector", "no_such_parameter")),))
    assert fast_http.unknown_parts() == "exchange has no parameter no_such_parameter"
    http = client.fast_or_public()
    await http.close()
    assert isinstance(http, PublicHttp)


async def test_a_known_aiohttp_is_served_by_the_fast_client(monkeypatch):
    monkeypatch.undo()
    http = client.fast_or_public()
    await http.close()
    assert isinstance(http, FastHttp), (
        f"aiohttp {aiohttp.__version__} is not among fast_http.KNOWN {fast_http.KNOWN}: {fast_http.unknown_parts()}. The gateway works, with the "
        "slower public client. Run all tests with this version added to KNOWN, compare its ClientRequest, ResponseHandler and StreamWriter "
        "with what fast_http uses, and add it."
    )
