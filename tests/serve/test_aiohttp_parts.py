"""The inner parts of aiohttp that the client port uses are checked at the start."""

import aiohttp
import structlog
from aiohttp import web

from gateway.serve.incoming import aiohttp_parts
from tests.fakes import user


def test_the_installed_aiohttp_is_as_expected() -> None:
    assert aiohttp_parts.unknown_parts() == "", (
        f"aiohttp {aiohttp.__version__} is not as gateway.serve expects: {aiohttp_parts.unknown_parts()}. The gateway works, with aiohttp's own "
        "server. Run all tests with this version added to KNOWN, compare its RequestHandler and StreamReader with what connection.py, uploads.py "
        "and body.py use, and add it."
    )


def test_a_part_that_is_gone_is_named(monkeypatch) -> None:
    monkeypatch.setattr(aiohttp_parts, "PARTS", ((web.RequestHandler, ("force_close", "no_such_part")),))
    assert aiohttp_parts.unknown_parts() == "RequestHandler has no no_such_part"


async def test_an_unknown_aiohttp_is_served_by_its_own_server_with_a_warning(gateway, standin, monkeypatch) -> None:
    monkeypatch.setattr(aiohttp_parts, "KNOWN", ("0.1",))
    with structlog.testing.capture_logs() as logs:
        running = await gateway(standin)
    assert [log["reason"] for log in logs if log["event"] == "plain_server"] == [
        f"aiohttp {'.'.join(aiohttp.__version__.split('.')[:2])} is not one of the known versions (0.1)"
    ]
    for size in (10, 2**21):
        answer = await running.chat({"model": "gpt-4o", "messages": [user("x" * size)]})
        assert (answer.status, answer.action) == (200, "none" if size == 10 else "fold")
