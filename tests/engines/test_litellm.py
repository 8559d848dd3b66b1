"""The callback folds inside a real LiteLLM proxy, which has an environment of its own (`make engines`)."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.standin import StandIn
from tests.running import ROOT, free_ports

LITELLM = ROOT / "build" / "litellm" / "bin" / "litellm"
KEY = "sk-f4Gh29xkQpLw81ZtRb77"
WINDOW = 3000
START_S = 180

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LITELLM.exists(), reason="litellm is not installed: run `make engines`"),
]

LONG: list[dict[str, Any]] = []
for number in range(60):
    LONG += [
        {"role": "user", "content": f"Parcel {number} weighs {number * 13} grams and goes to street {number}. " * 4},
        {"role": "assistant", "content": f"Parcel {number} is noted. " * 4},
    ]
LONG.append({"role": "user", "content": "How heavy is parcel 9?"})

CALLS = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": LONG}),
    "stream": ("/v1/chat/completions", {"model": "m", "messages": LONG, "stream": True}),
    "responses": ("/v1/responses", {"model": "m", "input": LONG}),
    "messages": ("/v1/messages", {"model": "claude", "max_tokens": 100, "messages": LONG}),
}


def configuration(standin: StandIn) -> str:
    """Return the example of docs/library.md with another server."""
    page = (ROOT / "docs" / "library.md").read_text("utf-8")
    example = page.partition("## Inside LiteLLM")[2].partition("```text\n")[2].partition("```")[0]
    return example.replace("http://127.0.0.1:8000", standin.base_url.removesuffix("/v1"))


class Proxy:
    """A running proxy and the server behind it."""

    def __init__(self, standin: StandIn, url: str, http: aiohttp.ClientSession) -> None:
        self.standin = standin
        self.url = url
        self._http = http

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        """Send one request; return the status and the text of the answer."""
        headers = {"authorization": f"Bearer {KEY}"}
        async with self._http.post(self.url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Any]:
    """Start proxies for servers with another vocabulary than ours: ``await proxy(scale)``."""
    started: list[asyncio.subprocess.Process] = []
    standins: list[StandIn] = []
    async with aiohttp.ClientSession() as http:

        async def start(scale: float = 1.0, written: str = "") -> Proxy:
            standin = StandIn(window=WINDOW, scale=scale)
            await standin.start()
            standins.append(standin)
            file, port = tmp_path / "litellm.yaml", free_ports(1)[0]
            file.write_text(written or configuration(standin), "utf-8")
            started.append(
                await asyncio.create_subprocess_exec(
                    *(str(LITELLM), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)),
                    env={
                        **os.environ,
                        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                        "LITELLM_MASTER_KEY": KEY,
                        "OPENAI_API_KEY": "sk-mine",
                    },
                    cwd=tmp_path,
                    stdout=DEVNULL,
                    stderr=STDOUT,
                )
            )
            await answers(http, f"http://127.0.0.1:{port}/health/liveliness")
            return Proxy(standin, f"http://127.0.0.1:{port}", http)

        yield start
        for process in started:
            process.terminate()
            await process.wait()
        for standin in standins:
            await standin.close()


async def answers(http: aiohttp.ClientSession, url: str) -> None:
    """Wait until a server answers."""
    async with asyncio.timeout(START_S):
        while True:
            try:
                async with http.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.5)


async def test_calls_of_every_kind_are_folded_for_their_deployment(proxy: Any) -> None:
    running = await proxy()
    for path, body in CALLS.values():
        before = len(running.standin.requests)

        status, text = await running.post(path, body)

        sent = [seen for seen in running.standin.requests[before:] if seen.method == "POST"]
        assert (status, [seen.status for seen in sent]) == (200, [200]), (path, text[:500])
        assert [seen.violations for seen in sent] == [[]]
        assert "117 grams" in sent[0].body.decode()

    short = {"model": "m", "messages": LONG[-1:]}
    assert (await running.post("/v1/chat/completions", short))[0] == 200
    assert running.standin.requests[-1].json["messages"] == LONG[-1:]


async def test_litellm_in_front_of_the_gateway_sends_what_the_gateway_folds(proxy: Any, gateway: Any) -> None:
    """The example of docs/howto.md, with the address of a running gateway."""
    page = (ROOT / "docs" / "howto.md").read_text("utf-8")
    example = page.partition("### LiteLLM in front of the gateway")[2].partition("```text\n")[2].partition("```")[0]
    async with StandIn(window=WINDOW) as standin:
        served = await gateway(standin, {"models": {"gpt-4o": {"context_window": WINDOW, "tokenizer": "o200k"}}})
        running = await proxy(written=example.replace("127.0.0.1:8787", f"127.0.0.1:{served.port}"))
        status, text = await running.post("/v1/chat/completions", {"model": "gpt-4o", "messages": LONG})
        assert (status, [seen.status for seen in standin.chats]) == (200, [200]), text[:500]
        assert "117 grams" in standin.chats[0].body.decode()
        assert "sk-mine" in str(standin.chats[0].headers)


async def test_a_refusal_is_answered_by_a_smaller_request_at_the_fallback(proxy: Any) -> None:
    running = await proxy(scale=2.5)
    for name in ("chat", "responses", "messages"):
        before = len(running.standin.requests)

        status, text = await running.post(*CALLS[name])

        sent = [seen for seen in running.standin.requests[before:] if seen.method == "POST"]
        assert (status, [seen.status for seen in sent]) == (200, [400, 200]), (name, text[:500])
        assert len(sent[1].body) < len(sent[0].body)
        assert sent[1].violations == []


async def test_a_refusal_is_no_matter_for_another_conversation_with_the_same_trace(proxy: Any) -> None:
    """A caller may choose the trace, so another caller, or a later call, may have the same."""
    running = await proxy(scale=2.5)
    trace = {"litellm_trace_id": "chosen"}
    alone = {**CALLS["chat"][1], "model": "m-again", **trace}
    assert (await running.post("/v1/chat/completions", alone))[0] == 400, "it has no fallback"
    running.standin.scale = 1.0
    other = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}, *LONG[-81:]]
    sent = []
    for more in ({}, trace):
        assert (await running.post("/v1/chat/completions", {"model": "m-again", "messages": other, **more}))[0] == 200
        sent.append(running.standin.requests[-1].json["messages"])
    assert sent[0] == sent[1]
