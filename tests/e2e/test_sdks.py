"""The real client libraries work through the gateway: what they send arrives, what they get is what they expect."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import orjson
import pytest

from tests import running
from tests.e2e import scenes

HERE = Path(__file__).parent
NODE = HERE / "node"
OPENAI_1 = running.ROOT / "build" / "openai1"
INSTALL_S = 180
ERRORS = (*scenes.ERRORS, "reset", "unreachable")


async def run(*command: str | Path, given: bytes = b"", **where) -> tuple[int, bytes, str]:
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        **where,
    )
    async with asyncio.timeout(INSTALL_S):
        out, err = await process.communicate(given)
    return process.returncode or 0, out, err.decode()


async def install(made: Path, *command: str | Path, **where) -> None:
    """Install a client library on demand, once; without a package registry the test is skipped."""
    if made.exists():
        return
    status, _, err = await run(*command, **where)
    if status:
        pytest.skip(f"cannot install {made.name}: {err[-200:]}")


async def current_python() -> tuple[tuple[str | Path, ...], dict[str, str], str]:
    return (sys.executable, HERE / "drive.py"), {}, ""


async def python_1() -> tuple[tuple[str | Path, ...], dict[str, str], str]:
    await install(
        OPENAI_1 / "openai", sys.executable, "-m", "pip", "install", "--quiet", "--target", OPENAI_1, "openai>=1.99,<2"
    )
    return (sys.executable, HERE / "drive.py"), {"PYTHONPATH": str(OPENAI_1)}, "1."


async def npm() -> tuple[tuple[str | Path, ...], dict[str, str], str]:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    await install(NODE / "node_modules" / "openai", "npm", "ci", "--silent", cwd=NODE)
    return (node, NODE / "drive.mjs"), {}, ""


@pytest.mark.parametrize("library", [current_python, python_1, npm], ids=lambda library: library.__name__)
async def test_a_client_library_gets_what_it_expects(gateway, library):
    command, environment, version = await library()
    async with scenes.upstream() as standin:
        running_gateway = await gateway(standin, scenes.CONFIG)
        given = orjson.dumps({"long": scenes.LONG, "too_long": scenes.TOO_LONG, "errors": ERRORS})
        status, out, err = await run(*command, running_gateway.base_url, given=given, env={**os.environ, **environment})
        assert status == 0, err
        told = orjson.loads(out)
        assert told["version"].startswith(version)
        assert told["told"] == scenes.EXPECTED
        assert [seen.violations for seen in standin.chats if seen.violations] == []
