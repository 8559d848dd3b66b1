"""The text that Prometheus reads: strict form, gauges, and one answer for all workers."""

import re
from pathlib import Path

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway import config as settings
from gateway.serve import app
from gateway.serve.incoming.peers import Peers
from gateway.standin import Gate, StandIn
from tests import fakes
from tests.running import as_command, client, configured

SMALL = {"models": {"m": {"context_window": 2000, "tokenizer": "o200k"}}}
COUNTED = re.compile(r"turnfold_[a-z0-9_]+_total")
UNITS = ("seconds", "bytes", "tokens", "total", "info", "share", "ratio")


async def scraped(running) -> str:
    async with running.session.get(f"{running.admin_url}/metrics") as answer:
        assert answer.status == 200
        return (await answer.read()).decode()


def problems(text: str) -> list[str]:
    """What `promtool check metrics` and the format's specification complain about."""
    found, seen, described = [], set(), {}
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, said = line.split(" ", 3)
            if not said.strip():
                found.append(f"{name}: {kind} is empty")
            if (kind, name) in described:
                found.append(f"{name}: {kind} stands twice")
            described[kind, name] = said
    for family in text_string_to_metric_families(text):
        if family.type == "unknown":
            found.append(f"{family.name}: has no type")
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            if key in seen:
                found.append(f"{sample.name}{sample.labels}: stands twice")
            seen.add(key)
            if family.type == "counter" and not sample.name.endswith("_total"):
                found.append(f"{sample.name}: a counter that does not end in _total")
            if family.type == "gauge" and sample.name.endswith("_total"):
                found.append(f"{sample.name}: a gauge that ends in _total")
            if not re.fullmatch(r"[a-z_][a-z0-9_]*", sample.name) or any(c in sample.name for c in ("__",)):
                found.append(f"{sample.name}: no snake case")
            if any(label.startswith("__") for label in sample.labels):
                found.append(f"{sample.name}: reserved label")
        if family.type == "histogram":
            buckets = [sample for sample in family.samples if sample.name.endswith("_bucket")]
            if buckets and not any(sample.labels["le"] == "+Inf" for sample in buckets):
                found.append(f"{family.name}: has no +Inf bucket")
    return found


async def test_the_text_has_the_strict_form_after_requests_of_all_kinds(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    await running.chat({"model": "m", "messages": fakes.chat(60, 50)})
    await running.chat({"model": "m", "messages": fakes.chat(60, 50)}, {"x-turnfold-mode": "observe"})
    await running.ask("GET", "/models")
    await running.chat(b"{")
    assert problems(await scraped(running)) == []


async def test_gauges_tell_how_the_process_is(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    await running.chat({"model": "m", "messages": [fakes.user("Hi")]})
    lines = (await scraped(running)).splitlines()

    for line in (
        "turnfold_open_requests 0.0",
        "turnfold_open_streams 0.0",
        "turnfold_queue_length 0.0",
        'turnfold_upstream_resting{upstream="standin"} 0.0',
        'turnfold_store_up{use="reads"} 1.0',
        "turnfold_config_last_reload_successful 1.0",
    ):
        assert line in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert any(line.startswith("process_cpu_seconds_total ") for line in lines)


async def test_an_open_stream_is_counted_while_it_runs(standin: StandIn, gateway):
    gate = Gate(open_until=1)
    standin.script.append(fakes.events(fakes.delta("Hello"), gate=gate))
    running = await gateway(standin, SMALL)
    ask = {"model": "m", "messages": [fakes.user("Hi")], "stream": True}
    async with running.session.post(f"{running.base_url}/chat/completions", json=ask) as answer:
        assert answer.status == 200
        text = await scraped(running)
        gate.release(5)
        await answer.read()
    assert "turnfold_open_streams 1.0" in text
    assert "turnfold_open_streams 0.0" in await scraped(running)


async def seen(admin_url: str, path: str):
    async with client() as session, session.get(admin_url + path) as found:
        assert found.status == 200
        return await found.read()


async def ask_all(admin_url: str, answered: int) -> None:
    """Ask one worker's admin port about both workers."""
    text = (await seen(admin_url, "/metrics")).decode()
    records = orjson.loads(await seen(admin_url, "/api/exchanges?limit=10000"))
    status = orjson.loads(await seen(admin_url, "/api/status"))
    for record in records:
        await seen(admin_url, f"/api/exchanges/{record['request_id']}")

    counts = [line for line in text.splitlines() if line.startswith("turnfold_requests_total{")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in counts) == answered
    assert {line.partition('worker="')[2][0] for line in counts} == {"0", "1"}
    assert len({record["request_id"] for record in records}) == len(records) == answered
    assert len(status["workers"]) == 1
    assert problems(text) == []


HI = {"model": "m", "messages": [fakes.user("Hi")]}


async def test_one_scrape_and_one_question_see_all_workers(standin: StandIn, tmp_path: Path):
    parsed = settings.parse(configured(standin, SMALL), {}, "test.yaml")
    one, two = [await app.start(parsed, peers=Peers(tmp_path, number)) for number in (0, 1)]
    try:
        async with client() as session:
            for running in (one, two, two):
                async with session.post(f"{running.url}/chat/completions", json=HI) as answer:
                    assert answer.status == 200
        for running in (one, two):
            await ask_all(f"http://127.0.0.1:{running.admin_port}", answered=3)
        await two.close()
        text = (await seen(f"http://127.0.0.1:{one.admin_port}", "/metrics")).decode()
        assert 'worker="0"' in text
        assert 'worker="1"' not in text, "a worker that is gone is left out"
    finally:
        await one.close()


@pytest.mark.slow
async def test_the_workers_of_a_supervisor_find_each_other(standin: StandIn, tmp_path: Path):
    config = configured(standin, {**SMALL, "server": {"workers": 2}})
    async with as_command(config, tmp_path) as (running, _):
        answered, workers = 0, set()
        while len(workers) < 2:  # each request comes on a new connection; the kernel chooses the worker
            answer = await running.chat(HI)
            answered += 1
            workers.add(answer.headers["x-turnfold-request-id"].split("-")[1])
        await ask_all(running.admin_url, answered)
