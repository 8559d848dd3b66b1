"""Clients reach a model through a real Envoy, which asks the processor (`make envoy` installs it)."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.standin import Raw, StandIn
from tests import fakes
from tests.envoy.setting import (
    ENVOY,
    Answered,
    Edit,
    Setting,
    as_published,
    in_the_listener,
    retrying_faults,
    setting,
    strict,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ENVOY.exists(), reason="envoy is not installed: run `make envoy`"),
]

WINDOW = 3000
CONFIG = {"models": {"gpt-4o": {"context_window": WINDOW}}}
LONG = fakes.chat(60)
BODIES = {
    "chat": ("/v1/chat/completions", {"model": "gpt-4o", "messages": LONG}),
    "chat below a base path": ("/openai/v1/chat/completions?x=1", {"model": "gpt-4o", "messages": LONG}),
    "responses": ("/v1/responses", {"model": "gpt-4o", "input": LONG}),
    "messages": ("/v1/messages", {"model": "gpt-4o", "max_tokens": 100, "system": "Be brief.", "messages": LONG[1:]}),
}
SHORT = b'{ "model": "gpt-4o",  "messages": [{"role":"user","content":"Caf\\u00e9?"}], "x": 1e2 }'

Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start a model server, processors and Envoy: ``await start(window=..., processors=2)``."""
    async with AsyncExitStack() as stack:

        async def started(
            config: dict[str, Any] | None = None, *, processors: int = 1, edit: Edit = as_published, **server: Any
        ) -> Setting:
            standin = await stack.enter_async_context(StandIn(**{"window": WINDOW, **server}))
            return await stack.enter_async_context(
                setting(standin, tmp_path, config or CONFIG, processors=processors, edit=edit)
            )

        yield started


def sent(running: Setting) -> list[Any]:
    """The requests that the model server got."""
    return [seen for seen in running.standin.requests if seen.method == "POST"]


async def test_what_fits_passes_byte_for_byte(start: Start) -> None:
    running = await start()

    answer = await running.ask(SHORT)

    assert (answer.status, answer.action, answer.headers["x-turnfold-why"]) == (200, "none", "proven")
    assert [seen.body for seen in sent(running)] == [SHORT]
    assert sent(running)[0].headers["content-length"] == str(len(SHORT))
    assert answer.json["choices"][0]["message"]["content"] == "Understood."


async def test_each_format_is_folded_and_stays_valid(start: Start) -> None:
    running = await start()
    for name, (path, body) in BODIES.items():
        if "base path" in name:
            continue
        answer = await running.ask(body, path)

        last = sent(running)[-1]
        assert (answer.status, answer.action) == (200, "fold"), (name, answer.body)
        assert last.violations == [], name
        assert last.headers["content-length"] == str(len(last.body))
        before, after = answer.tokens
        assert before > WINDOW >= after
    path, body = BODIES["chat below a base path"]
    await running.ask(body, path)
    assert len(sent(running)[-1].body) < len(orjson.dumps(body))


@pytest.mark.parametrize("processors", [1, 2])
async def test_a_refusal_is_followed_by_a_smaller_request(start: Start, processors: int) -> None:
    """Two processors take turns, so that the second attempt comes to another one than the first."""
    running = await start(processors=processors, scale=2.5)
    path, body = BODIES["chat"]

    answer = await running.ask(body, path)

    refused, taken = sent(running)
    assert (refused.status, taken.status, answer.status, answer.action) == (400, 200, 200, "retry")
    assert len(taken.body) < len(refused.body) < len(orjson.dumps(body))
    assert taken.headers["content-length"] == str(len(taken.body))
    assert taken.violations == []
    assert answer.headers["x-turnfold-attempts"] == "2"
    assert "x-turnfold-retry" not in answer.headers


async def test_each_refusal_makes_the_request_smaller_until_none_is_allowed(start: Start) -> None:
    running = await start(script=[fakes.refuse() for _ in range(9)])
    path, body = BODIES["chat"]

    answer = await running.ask(body, path)

    sizes = [len(seen.body) for seen in sent(running)]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes) == 4
    assert (answer.status, answer.action) == (400, "error")
    assert "maximum context length" in answer.body.decode()


async def test_in_the_listener_it_folds_and_asks_for_no_retry(start: Start) -> None:
    running = await start(edit=in_the_listener, scale=2.5)
    path, body = BODIES["chat"]

    answer = await running.ask(body, path)

    assert [seen.status for seen in sent(running)] == [400]
    assert len(sent(running)[0].body) < len(orjson.dumps(body))
    assert (answer.status, answer.action) == (400, "error")
    assert "x-turnfold-retry" not in answer.headers


async def test_a_stream_goes_on_to_the_client_as_it_comes(start: Start) -> None:
    running = await start()
    gate = fakes.Gate(2)
    running.standin.script.append(fakes.reply("One. Two. Three.", gate=gate))
    path, body = BODIES["chat"]
    url = f"http://127.0.0.1:{running.port}{path}"
    async with running.session.post(url, json={**body, "stream": True}) as answer:
        first = await answer.content.readany()

        assert answer.headers["x-turnfold-action"] == "fold"
        assert first.startswith(b"data: ") and b"[DONE]" not in first
        gate.release(50)
        assert (await answer.read()).endswith(b"data: [DONE]\n\n")


async def test_an_error_that_says_nothing_about_size_reaches_the_client_as_it_is(start: Start) -> None:
    running = await start()
    told = b'{"error":{"message":"Unknown tool: context length.","type":"invalid_request_error","code":null}}'
    for status in (400, 401, 429, 500):
        running.standin.script.append(Raw(status, (told,)))
        answer = await running.ask(SHORT)
        assert (answer.status, answer.body) == (status, told)
    assert len(sent(running)) == 4


async def test_a_model_server_cannot_speak_in_our_name(start: Start) -> None:
    running = await start()
    running.standin.script.append(
        Raw(200, (b"{}",), {"x-turnfold-retry": "smaller", "x-turnfold-action": "error", "x-turnfold-x": "1"})
    )

    answer = await running.ask(SHORT)

    assert (answer.action, len(sent(running))) == ("none", 1)
    assert not {"x-turnfold-retry", "x-turnfold-x"} & {name.lower() for name in answer.headers}


async def test_what_can_never_fit_is_refused_before_the_model_is_called(start: Start) -> None:
    config = {"models": {"gpt-4o": {"context_window": 600}}, "fold": {"question": "refuse"}}
    running = await start(config)
    body = {"model": "gpt-4o", "messages": [fakes.user(fakes.words(4000))]}

    answer = await running.ask(body)

    assert (answer.status, answer.action) == (400, "error")
    assert answer.json["error"]["code"] == "context_length_exceeded"
    assert sent(running) == []


async def test_the_mode_of_a_request_holds_in_each_attempt(start: Start) -> None:
    running = await start(scale=2.5)
    path, body = BODIES["chat"]

    answer = await running.ask(body, path, {"x-turnfold-mode": "observe"})

    assert [seen.body for seen in sent(running)] == [orjson.dumps(body)]
    assert "x-turnfold-mode" not in sent(running)[0].headers
    assert (answer.status, answer.action) == (400, "observe")
    wrong = await running.ask(body, path, {"x-turnfold-mode": "sometimes"})
    assert (wrong.status, wrong.json["error"]["code"]) == (400, "invalid_mode")


@pytest.mark.parametrize(
    ("body", "path", "headers"),
    [
        (b"", "/v1/models", {}),
        (b'{"model":"gpt-4o","prompt":"x"}', "/v1/moderations", {}),
        (b"{not json", "/v1/chat/completions", {}),
        (b'{"role":"user","content":"hi"}', "/v1/threads/t/messages", {}),
        (b"\x1f\x8b\x08\x00", "/v1/chat/completions", {"content-encoding": "gzip"}),
    ],
)
async def test_what_is_no_conversation_passes(start: Start, body: bytes, path: str, headers: dict[str, str]) -> None:
    running = await start(otherwise=lambda _: Raw(200, (b'{"any":1}',)))

    answer = await running.ask(body, path, headers, "POST" if body else "GET")

    assert answer.status == 200
    seen = running.standin.requests[-1]
    assert (seen.body, seen.headers.get("content-length", "0")) == (body, str(len(body)))


async def test_without_a_processor_requests_pass_as_they_came(start: Start) -> None:
    running = await start()
    await running.processors[0].end()

    answer = await running.ask(SHORT)

    assert answer.status == 200
    assert "x-turnfold-action" not in answer.headers
    assert [seen.body for seen in sent(running)] == [SHORT]


async def test_without_a_processor_and_without_failure_mode_allow_clients_get_an_error(start: Start) -> None:
    running = await start(edit=strict)
    await running.processors[0].end()

    answer = await running.ask(SHORT)

    assert answer.status >= 500
    assert sent(running) == []


async def answer_after_the_processor_ends(running: Setting, said: Raw) -> Answered:
    """Ask, end the processor while the model works, and let the model answer; return what the client gets."""
    gate = fakes.Gate()
    running.standin.script.append(replace(said, before=gate))
    asked = asyncio.create_task(running.ask(BODIES["chat"][1]))  # noqa: TID251  # awaited below
    async with asyncio.timeout(20):
        await running.standin.arrived(1)
    await running.processors[0].end()
    gate.release(9)
    return await asked


@pytest.mark.parametrize(("allow", "status"), [(True, 200), (False, 500)])
async def test_a_processor_killed_while_the_model_works(start: Start, allow: bool, status: int) -> None:
    """With ``failure_mode_allow`` the answer still comes; the folded request was already sent."""
    running = await start(edit=as_published if allow else strict)
    answer = await answer_after_the_processor_ends(running, Raw(200, (b'{"late":1}',)))

    assert answer.status == status
    assert len(sent(running)) == 1 and sent(running)[0].violations == []


async def test_a_retry_without_its_processor_keeps_requests_apart(start: Start) -> None:
    """A retry has the headers of the attempt before it: the length of a folded body there would let the rest of a whole
    body be read as another request."""
    running = await start(edit=retrying_faults)
    answer = await answer_after_the_processor_ends(running, Raw(503, (b"busy",)))

    folded, whole = running.standin.requests
    assert (answer.status, whole.status) == (400, 400)
    assert whole.body == orjson.dumps(BODIES["chat"][1])
    assert len(folded.body) < len(whole.body)


async def test_a_retry_for_another_reason_sends_the_same_again(start: Start) -> None:
    running = await start(edit=retrying_faults)
    running.standin.script.append(Raw(503, (b"busy",)))

    answer = await running.ask(BODIES["chat"][1])

    first, second = sent(running)
    assert (answer.status, answer.action) == (200, "fold")
    assert first.body == second.body
    assert second.headers["content-length"] == str(len(second.body))


async def metrics_with(running: Setting, port: int, row: str) -> str:
    """Return the metrics once they have a row: Envoy ends its call to the processor after the client has its answer."""
    async with asyncio.timeout(20):
        while row not in (metrics := await running.admin("/metrics", port)):
            pass  # each look is a request
    return metrics


async def test_health_metrics_and_records_tell_what_was_done(start: Start) -> None:
    running = await start(scale=2.5)
    port = running.processors[0].admin_port
    await running.ask(BODIES["chat"][1])
    await running.ask(SHORT)

    clusters = await running.admin("/clusters?format=text")
    assert "turnfold::" in clusters and "/failed_active_hc" not in clusters
    requests = 'turnfold_requests_total{action="%s",entry="gpt-4o",mode="enforce",status="200",upstream="standin"} 1.0'
    metrics = await metrics_with(running, port, requests % "none")
    assert requests % "retry" in metrics
    assert 'turnfold_refusals_total{entry="gpt-4o",upstream="standin"} 1.0' in metrics
    assert (await running.admin("/healthz", port)).startswith('{"status":"ok"')


async def test_a_processor_that_is_told_to_end_lets_its_requests_end(start: Start) -> None:
    running = await start(processors=2)
    gate = fakes.Gate()
    running.standin.script.append(Raw(200, (b'{"late":1}',), before=gate))
    asked = asyncio.create_task(running.ask(BODIES["chat"][1]))  # noqa: TID251  # awaited below
    async with asyncio.timeout(20):
        await running.standin.arrived(1)
    for each in running.processors:
        each.process.send_signal(signal.SIGTERM)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asyncio.gather(*(each.process.wait() for each in running.processors))
    gate.release(9)

    answer = await asked

    assert (answer.status, answer.action) == (200, "fold")
    async with asyncio.timeout(20):
        codes = [await each.process.wait() for each in running.processors]
    assert codes == [0, 0]
