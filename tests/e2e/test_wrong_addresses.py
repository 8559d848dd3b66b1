"""Wrong addresses: the answer or one log line says where the right one is."""

import pytest
from structlog.testing import capture_logs

from gateway.standin import Raw, StandIn
from tests import fakes

ASK = {"model": "gpt-4o", "messages": [fakes.user("hi")]}
PAGE = b"<!doctype html><html><body>Welcome to nginx</body></html>"


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/", "/metrics", "/api/exchanges"])
async def test_what_the_admin_port_serves_names_it_on_the_client_port(gateway, standin, path):
    running = await gateway(standin)
    async with running.session.get(running.base_url.removesuffix("/v1") + path) as answer:
        found = await answer.json()
    assert answer.status == 404
    assert "it is served on the admin port" in found["error"]["message"]
    assert "admin.port, 8788 by default" in found["error"]["message"]


@pytest.mark.parametrize("path", ["/elsewhere", "/dashboards-of-mine", "/apis"])
async def test_other_paths_name_the_base_url(gateway, standin, path):
    running = await gateway(standin)
    async with running.session.get(running.base_url.removesuffix("/v1") + path) as answer:
        assert "set the client's base URL to" in (await answer.json())["error"]["message"]


@pytest.mark.parametrize("status", [200, 404, 502])
async def test_a_web_page_for_an_answer_is_forwarded_and_logged(gateway, status):
    page = Raw(status, (PAGE,), {"content-type": "text/html; charset=utf-8"})
    async with StandIn(otherwise=lambda _: page) as standin:
        running = await gateway(standin)
        with capture_logs() as logs:
            answer = await running.chat(ASK)
    assert (answer.status, answer.body) == (status, PAGE)
    [line] = [entry for entry in logs if entry["event"] == "upstream_sent_web_page"]
    assert (line["status"], line["log_level"]) == (status, "warning")
    assert "base_url" in line["expected"]
    assert "nginx" not in str(line)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_ordinary_answer_is_not_taken_for_a_web_page(gateway, standin, stream):
    running = await gateway(standin)
    with capture_logs() as logs:
        assert (await running.chat({**ASK, "stream": stream})).status == 200
    assert "upstream_sent_web_page" not in [entry["event"] for entry in logs]
