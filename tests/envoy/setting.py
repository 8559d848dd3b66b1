"""A running Envoy with the configuration of `deploy/envoy/envoy.yaml`, one or more processors, and a stand-in model server."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

from gateway.standin import StandIn
from tests.running import PATIENCE_S, ROOT, Answered, answering, client, configured, free_ports

ENVOY = ROOT / "build" / "envoy" / "bin" / "envoy"
Edit = Callable[[dict[str, Any]], None]
"""Changes the published configuration."""
CONFIGURATION = ROOT / "deploy" / "envoy" / "envoy.yaml"


@dataclass(slots=True)
class Processor:
    """A running `turnfold extproc`."""

    process: Process
    port: int
    admin_port: int

    async def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal and wait for the end."""
        if self.process.returncode is None:
            self.process.send_signal(how)
        await asyncio.wait_for(self.process.communicate(), PATIENCE_S)


@dataclass(slots=True)
class Setting:
    """Where clients reach Envoy, and what is behind it."""

    port: int
    envoy_admin: int
    standin: StandIn
    session: aiohttp.ClientSession
    processors: list[Processor] = field(default_factory=list)

    async def ask(
        self, body: Any = b"", path: str = "/v1/chat/completions", headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> Answered:  # fmt: skip
        """Send a request through Envoy: a value as JSON, bytes as they are."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        given = {"content-type": "application/json", "authorization": "Bearer k", **(headers or {})}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.session.request(method, url, data=raw or None, headers=given) as answer:
            return Answered(answer.status, answer.headers, await answer.read())

    async def admin(self, path: str, port: int | None = None) -> str:
        """Return what Envoy's own admin port says, or that of a processor."""
        async with self.session.get(f"http://127.0.0.1:{port or self.envoy_admin}{path}") as answer:
            return await answer.text()


def envoy_configuration(ports: Mapping[int, int], processors: Sequence[int]) -> dict[str, Any]:
    """Return the published configuration with other ports, and with one endpoint for each processor."""
    whole = yaml.safe_load(CONFIGURATION.read_text("utf-8"))
    for cluster in whole["static_resources"]["clusters"]:
        if cluster["name"] == "turnfold":
            first = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]
            cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = [
                orjson.loads(orjson.dumps(first).replace(b"8789", str(port).encode())) for port in processors
            ]
    return _with_ports(whole, ports)


def as_published(_: dict[str, Any]) -> None:
    """Change nothing."""


def strict(whole: dict[str, Any]) -> None:
    """Let no request pass without a processor."""
    options = whole["static_resources"]["clusters"][0]["typed_extension_protocol_options"]
    filters = options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]["http_filters"]
    filters[1]["typed_config"]["failure_mode_allow"] = False


def retrying_faults(whole: dict[str, Any]) -> None:
    """Let Envoy retry what operators often add: faults of the server."""
    chain = whole["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    chain["route_config"]["virtual_hosts"][0]["routes"][0]["route"]["retry_policy"]["retry_on"] += ",5xx"


def in_the_listener(whole: dict[str, Any]) -> None:
    """Put the processor's filter where a mesh's own policies put it: before the router."""
    options = whole["static_resources"]["clusters"][0]["typed_extension_protocol_options"]
    filters = options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"].pop("http_filters")
    chain = whole["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    chain["http_filters"].insert(0, filters[1])


def _with_ports(value: Any, ports: Mapping[int, int]) -> Any:
    if isinstance(value, dict):
        return {
            key: ports.get(each, each) if key == "port_value" else _with_ports(each, ports)
            for key, each in value.items()
        }
    return [_with_ports(each, ports) for each in value] if isinstance(value, list) else value


@asynccontextmanager
async def processor(folder: Path, config: Mapping[str, Any], *arguments: str) -> AsyncIterator[Processor]:
    """Run `turnfold extproc` as the command."""
    port, admin_port = free_ports(2)
    file = folder / f"turnfold-{port}.yaml"
    file.write_text(configured("http://127.0.0.1:9/v1", {**config, "admin": {"port": admin_port}}))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "extproc", "--config", str(file), "--listen", f"127.0.0.1:{port}", "--notice", "0",
        *arguments, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=PIPE, stderr=STDOUT,
    )  # fmt: skip
    running = Processor(process, port, admin_port)
    try:
        await answering(port, process)
        yield running
    finally:
        await running.end(signal.SIGTERM)


@asynccontextmanager
async def envoy(whole: Mapping[str, Any], folder: Path, admin_port: int) -> AsyncIterator[Process]:
    """Run Envoy with a configuration until it has checked its clusters."""
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump(whole))
    process = await asyncio.create_subprocess_exec(
        str(ENVOY), "-c", str(file), "--concurrency", "1", "--use-dynamic-base-id", "-l", "error",
        stdout=DEVNULL, stderr=DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_S), client() as session:
            while True:
                assert process.returncode is None, "Envoy does not accept the configuration"
                try:
                    async with session.get(f"http://127.0.0.1:{admin_port}/ready") as answer:
                        if answer.status == 200:
                            break
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)  # a foreign process has no event to wait for
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)


@asynccontextmanager
async def setting(
    standin: StandIn, folder: Path, config: Mapping[str, Any], *, processors: int = 1, edit: Edit = as_published
) -> AsyncIterator[Setting]:
    """Run processors, and Envoy in front of them and of a model server."""
    async with AsyncExitStack() as stack:
        started = [await stack.enter_async_context(processor(folder, config)) for _ in range(processors)]
        port, admin_port = free_ports(2)
        model = int(standin.base_url.rpartition(":")[2].removesuffix("/v1"))
        ports = {10000: port, 9901: admin_port, 8000: model}
        whole = envoy_configuration(ports, [each.port for each in started])
        edit(whole)
        await stack.enter_async_context(envoy(whole, folder, admin_port))
        session = await stack.enter_async_context(client())
        yield Setting(port, admin_port, standin, session, started)
