"""A page of another origin uses the gateway in a real browser: where its origin is allowed, and nowhere else."""

from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests import running

ASK = """
async ([url, stream]) => {
  try {
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: "Bearer sk-mine", "x-turnfold-mode": "observe" },
      body: JSON.stringify({ model: "m", stream, messages: [{ role: "user", content: "Hello" }] }),
    });
    return { status: response.status, text: await response.text(), action: response.headers.get("x-turnfold-action") };
  } catch (error) {
    return { error: error.name };
  }
}
"""


@asynccontextmanager
async def site():
    """A web site with one empty page, at an origin of its own."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>Chat</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    [port] = running.free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def asked(chromium, origin, url, *, stream=False):
    """What a page of an origin gets from the gateway."""
    context = await chromium.new_context()
    page = await context.new_page()
    await page.goto(origin)
    found = await page.evaluate(ASK, [url, stream])
    await context.close()
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_page_of_an_allowed_origin_asks_streams_and_reads_the_headers(chromium, gateway, standin, stream):
    async with site() as origin:
        served = await gateway(standin, {"server": {"cors_origins": [origin]}})
        found = await asked(chromium, origin, served.base_url, stream=stream)
    assert (found["status"], found["action"]) == (200, "observe")
    assert "Understood" in found["text"] or found["text"].endswith("data: [DONE]\n\n")
    assert [seen.method for seen in standin.chats] == ["POST"], (
        "the browser's own question first is answered by the gateway"
    )


@pytest.mark.parametrize("allowed", [[], ["https://chat.example.com"]], ids=["none allowed", "another one allowed"])
async def test_a_page_of_any_other_origin_gets_nothing_and_costs_nothing(chromium, gateway, standin, allowed):
    async with site() as origin:
        served = await gateway(standin, {"server": {"cors_origins": allowed}})
        found = await asked(chromium, origin, served.base_url)
    assert found == {"error": "TypeError"}
    assert standin.requests == [], "the upstream was not asked"


async def test_an_allowed_page_reads_an_error_too(chromium, gateway, standin):
    async with site() as origin:
        served = await gateway(standin, {"server": {"cors_origins": [origin]}, "fold": {"client_modes": []}})
        found = await asked(chromium, origin, served.base_url)
    assert found["status"] == 403
    assert "mode_not_allowed" in found["text"]
