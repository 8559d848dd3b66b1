"""Codex works through the gateway in a window that its conversation passes several times, by HTTP and over a WebSocket."""

import base64
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.standin import Completion, Seen, StandIn
from gateway.standin.apis import RESPONSES
from tests import running
from tests.agents.programs import GATEWAY, RULE, SECOND_TASK, TASK, Reader, Workplace, example, is_installed

pytestmark = [pytest.mark.slow, is_installed]

MODEL = "gpt-5-codex"
WINDOW = 20_000
"""Tokens. Instructions and tools of Codex take 8,000 of them."""
CONFIG = {"models": {"*": {"context_window": WINDOW, "tokenizer": "o200k"}}}
RUN = ("exec", "--skip-git-repo-check", "--model", MODEL, "--sandbox", "danger-full-access")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace.make(tmp_path, "AGENTS.md", 9)
    (place.home / ".codex").mkdir()
    return place


@pytest.fixture
def model(place: Workplace) -> Reader:
    return Reader("exec_command", place.files, lambda file: {"cmd": f"cat {file.name}", "max_output_tokens": 8000})


async def converse(place: Workplace, model: Reader, gateway: running.Gateway, more: str = "") -> int:
    """Let Codex read the files, and again in a resumed session. Return how large the largest request was before it was folded."""
    configured = example("Codex", "toml").replace(GATEWAY, gateway.base_url.removesuffix("/v1"))
    (place.home / ".codex" / "config.toml").write_text(configured + more, "utf-8")
    for arguments in ((TASK,), ("resume", "--last", SECOND_TASK)):
        model.begin()
        assert "Done." in await place.run("codex", *RUN, *arguments, OPENAI_API_KEY="sk-any")
        assert model.calls == []
    return max(record["tokens_before"] or 0 for record in await records_of(gateway))


async def records_of(gateway: running.Gateway) -> list[dict[str, Any]]:
    """Return the records of all requests."""
    async with gateway.session.get(f"{gateway.admin_url}/api/exchanges?limit=500") as response:
        return await response.json()


async def test_codex_by_http(place: Workplace, model: Reader) -> None:
    """It is configured as docs/agents.md says, and resumes its session. The folded requests keep the task and the rules of the project."""
    async with (
        StandIn(window=WINDOW, otherwise=model) as standin,
        running.in_process(running.configured(standin, CONFIG)) as gateway,
    ):
        largest = await converse(place, model, gateway)
    asked = [seen for seen in standin.requests if seen.method == "POST"]

    assert largest > 1.5 * WINDOW
    assert [seen.path for seen in asked if seen.status != 200 or seen.violations] == []
    assert all(RULE.encode() in seen.body and TASK.encode() in seen.body for seen in asked)
    assert SECOND_TASK.encode() in asked[-1].body


def token(**claims: Any) -> str:
    """Return a token as ChatGPT's login gives it, without a signature."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(orjson.dumps(part)).rstrip(b"=").decode() for part in parts) + ".c2ln"


async def test_codex_logged_in_with_chatgpt(place: Workplace, model: Reader) -> None:
    """It compresses its requests with zstd. They are folded like others."""
    now = int(time.time())
    account = {"chatgpt_plan_type": "pro", "chatgpt_account_id": "acc-1", "chatgpt_user_id": "u-1"}
    claims = {"email": "a@example.com", "exp": now + 86400, "https://api.openai.com/auth": account}
    tokens = {"id_token": token(**claims), "access_token": token(**claims), "refresh_token": "r", "account_id": "acc-1"}
    login = {
        "auth_mode": "chatgpt",
        "tokens": tokens,
        "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
    }
    (place.home / ".codex" / "auth.json").write_bytes(orjson.dumps(login))
    async with (
        StandIn(window=WINDOW, otherwise=model) as standin,
        running.in_process(running.configured(standin, CONFIG)) as gateway,
    ):
        own = gateway.base_url.removesuffix("/v1")
        where = f'openai_base_url = "{own}/v1"\nchatgpt_base_url = "{own}/backend-api"\n'
        (place.home / ".codex" / "config.toml").write_text(where, "utf-8")
        model.begin()
        assert "Done." in await place.run("codex", *RUN, TASK)
        records = await records_of(gateway)
    asked = [seen for seen in standin.requests if seen.path == "/v1/responses" and seen.method == "POST"]
    whole = [seen for seen in asked if "content-encoding" in seen.headers]

    assert {seen.headers["content-encoding"] for seen in whole} == {"zstd"}
    assert "fold" in {record["action"] for record in records}
    assert 0 < len(whole) < len(asked)
    assert [seen.path for seen in asked if seen.status != 200 or seen.violations] == []


async def test_codex_over_a_websocket(place: Workplace, model: Reader) -> None:
    """It sends only what is new, until the window is full. Then it sends everything, and goes on."""
    upstream = Sockets(model)
    app = web.Application()
    app.router.add_get("/v1/responses", upstream.answer)
    async with (
        TestServer(app) as server,
        running.in_process(running.configured(str(server.make_url("/v1")), CONFIG)) as gateway,
    ):
        largest = await converse(place, model, gateway, "supports_websockets = true\n")

    assert largest > 1.5 * WINDOW
    assert upstream.refusals > 1
    assert upstream.violations == []
    assert all(RULE in text and TASK in text for text in upstream.whole)
    assert SECOND_TASK in upstream.whole[-1]


TOO_LONG = {
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
    "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
}


class Sockets:
    """An upstream of Responses over WebSockets: each socket keeps the conversations of its responses."""

    def __init__(self, model: Reader) -> None:
        self._model = model
        self.refusals = 0
        self.violations: list[Any] = []
        self.whole: list[str] = []
        """The messages that began a conversation."""

    async def answer(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        conversations: dict[str, list[Any]] = {}
        async for frame in socket:
            asked = orjson.loads(frame.data)
            if asked.get("generate") is False:  # it opens the socket before it needs it
                continue
            earlier = asked.get("previous_response_id")
            if earlier is None:
                self.whole.append(frame.data)
            for event in self._events(asked, conversations, [*conversations.get(earlier, ()), *asked["input"]]):
                await socket.send_str(event)
        return socket

    def _events(self, asked: dict[str, Any], conversations: dict[str, list[Any]], items: list[Any]) -> list[str]:
        """Return the events for a message, and keep its conversation."""
        body = {**asked, "input": items, "stream": True}
        seen = Seen("GET", "/v1/responses", "", CIMultiDictProxy(CIMultiDict()), b"", json=body, window=WINDOW)
        seen.prompt_tokens, seen.violations = RESPONSES.weigh(body), RESPONSES.violations(body)
        self.violations += seen.violations
        if seen.prompt_tokens > WINDOW:
            self.refusals += 1
            return [orjson.dumps({"type": "error", "status": 400, "error": TOO_LONG}).decode()]
        said = self._model(seen)
        assert isinstance(said, Completion)
        events = [
            orjson.loads(chunk.partition(b"data: ")[2])
            for chunk in RESPONSES.complete(said, body, seen.prompt_tokens).chunks
        ]
        name = f"resp_{len(items)}"
        conversations[name] = [*items, *events[-1]["response"]["output"]]
        for event in events:
            if "response" in event:
                event["response"]["id"] = name
        return [orjson.dumps(event).decode() for event in events]
