"""The memory limits of the deployment files hold for the largest body that the gateway takes, in the costliest form that was found."""

import io
from asyncio import to_thread
from pathlib import Path

import aiohttp
import orjson
import pytest
import yaml

from gateway.config import Settings, parse
from tests import running
from tests.deploy.test_deploy import DEPLOY, ENVIRON, kubernetes_settings, named

MIB = 2**20
AT_REST = 64 * MIB
"""Bytes of an idle process with one vocabulary. Measured: 53 MB."""
BODY_TAKES = 18
"""So many times its size a body takes while it is folded. Measured: 17.4 for a chat of messages of 20 KB with one emoji in each, because
Python then keeps four bytes for each character; 8.6 without emoji."""
FOR_STREAMS = 220 * MIB
"""Bytes for a thousand open streams with small requests."""
PATIENCE_S = 300
"""A body of 60 MiB takes a quarter of a minute on an idle machine."""


def written(text: str) -> int:
    """Read a size as Kubernetes, systemd and Docker write it."""
    number, unit = text.rstrip("imMgGB"), text.lstrip("0123456789")[0].upper()
    return int(number) * {"M": MIB, "G": 1024 * MIB}[unit]


def kubernetes() -> tuple[int, Settings]:
    container = named("Deployment")["spec"]["template"]["spec"]["containers"][0]
    return written(container["resources"]["limits"]["memory"]), kubernetes_settings()


def compose() -> tuple[int, Settings]:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["gateway-1"]
    return written(service["mem_limit"]), parse((DEPLOY / "turnfold.yaml").read_text(), ENVIRON, "turnfold.yaml")


def systemd() -> tuple[int, Settings]:
    unit = (DEPLOY / "turnfold.service").read_text()
    settings = parse((running.ROOT / "config" / "turnfold.yaml").read_text(), ENVIRON, "turnfold.yaml")
    return written(unit.partition("MemoryHigh=")[2].split()[0]), settings


DEPLOYMENTS = [kubernetes, compose, systemd]


@pytest.mark.parametrize("deployed", DEPLOYMENTS, ids=lambda deployed: deployed.__name__)
def test_the_limit_is_enough_for_all_that_may_be_held_at_once(deployed) -> None:
    limit, settings = deployed()
    server = settings.server
    bodies = max(server.max_body, server.max_in_flight)
    needed = server.workers * (AT_REST + server.memory + BODY_TAKES * bodies + FOR_STREAMS)
    assert needed <= limit, f"{needed / MIB:.0f} MiB may be needed"


def costliest(size_bytes: int) -> bytes:
    """A chat of this size in which every message has a character outside of the basic plane."""
    text = "Order alpha-17 was shipped to Berlin and costs 42 euro; please check the invoice again. " * 227
    each = len(orjson.dumps({"role": "assistant", "content": f"😀 10000 {text}"})) + 1
    turns = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"😀 {number} {text}"}
        for number in range(size_bytes // each - 1)
    ]
    if turns[-1]["role"] == "assistant":
        turns.pop()
    return orjson.dumps({"model": "m", "messages": turns, "max_tokens": 100})


@pytest.mark.slow
async def test_the_largest_body_is_folded_within_the_smallest_limit(standin, tmp_path: Path) -> None:
    limit = min(deployed()[0] for deployed in DEPLOYMENTS)
    models = {"m": {"context_window": 8000, "tokenizer": "o200k"}}
    most = kubernetes_settings().server.max_body
    assert most == 64 * MIB, "the figure that was measured is of this size"
    body = costliest(most)
    assert most * 0.98 < len(body) <= most
    server = {
        "max_folded": f"{most // MIB}MiB"
    }  # by default a body beyond 32 MiB is sent on as it came, which takes less
    config = running.configured(standin, {"models": models, "server": server, "log": {"level": "error"}})
    patience = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with (
        running.as_command(config, tmp_path) as (gateway, process),
        aiohttp.ClientSession(timeout=patience) as http,
        http.post(f"{gateway.base_url}/chat/completions", data=io.BytesIO(body)) as answer,
    ):
        assert (answer.status, answer.headers["x-turnfold-action"]) == (200, "fold"), await answer.text()
        told = await to_thread(Path(f"/proc/{process.pid}/status").read_text)
    peak = int(told.partition("VmHWM:")[2].split()[0]) * 1024
    assert len(standin.requests[-1].body) < len(body) / 100
    assert len(body) < peak < limit, f"{peak / MIB:.0f} MiB were taken"
