"""The real client libraries work through the gateway: what they send arrives, what they get is what they expect."""

import asyncio
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.e2e import scenes
from tests.running import ROOT

HERE = Path(__file__).parent
NODE = HERE / "node"
OPENAI_1 = ROOT / "build" / "openai1"
INSTALL_S = 180
Driver = tuple[tuple[str | Path, ...], dict[str, str], str]
"""A command, what it needs in the environment, and what the library's version starts with."""
ERRORS = (*scenes.ERRORS, "reset", "unreachable")


def install(made: Path, *command: str | Path, cwd: Path | None = None) -> None:
    """Install a client library on demand, once; without a package registry the test is skipped."""
    if not made.exists():
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        if done.returncode:
            pytest.skip(f"cannot install {made.name}: {done.stderr[-200:]}")


def current_python() -> Driver:
    return (sys.executable, HERE / "drive.py"), {}, ""


def python_1() -> Driver:
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", OPENAI_1, "openai>=1.99,<2")
    install(OPENAI_1 / "openai", *pip)
    return (sys.executable, HERE / "drive.py"), {"PYTHONPATH": str(OPENAI_1)}, "1."


def npm() -> Driver:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    install(NODE / "node_modules" / "@anthropic-ai", "npm", "ci", "--silent", cwd=NODE)
    return (node, NODE / "drive.mjs"), {}, ""


async def drive(driver: Driver, base_url: str, given: bytes) -> dict[str, Any]:
    """Run a driver to its end and answer what it printed."""
    command, environment, _ = driver
    process = await asyncio.create_subprocess_exec(
        *command, base_url, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={**os.environ, **environment}
    )
    async with asyncio.timeout(INSTALL_S):
        out, err = await process.communicate(given)
    assert process.returncode == 0, err.decode()
    return orjson.loads(out)


@pytest.fixture(scope="session", params=[current_python, python_1, npm], ids=lambda library: library.__name__)
def driver(request) -> Driver:
    """How each library is driven, installed where it has to be."""
    return request.param()


async def test_a_client_library_gets_what_it_expects(gateway, driver):
    async with scenes.upstream() as standin:
        running = await gateway(standin, scenes.CONFIG)
        given = orjson.dumps({"long": scenes.LONG, "too_long": scenes.TOO_LONG, "errors": ERRORS})
        told = await drive(driver, running.base_url, given)
        assert told["version"].startswith(driver[2])
        assert told["told"] == scenes.EXPECTED
        assert [seen.violations for seen in standin.chats if seen.violations] == []
