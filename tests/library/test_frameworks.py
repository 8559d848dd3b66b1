"""The examples of docs/library.md for heavy frameworks work inside them, in an environment of their own (`make frameworks`)."""

import asyncio
from asyncio.subprocess import PIPE

import orjson
import pytest

from gateway.standin import StandIn
from tests.library.test_examples import LONG, WINDOW
from tests.running import ROOT

PYTHON = ROOT / "build" / "frameworks" / "bin" / "python"
SCRIPT = ROOT / "tests" / "library" / "with_framework.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="the frameworks are not installed: run `make frameworks`"),
]


@pytest.mark.parametrize(
    ("framework", "scale", "statuses"),
    [("llamaindex", 1.0, [200]), ("pydantic-ai", 1.0, [200]), ("pydantic-ai", 3.5, [400, 200])],
)
async def test_a_conversation_that_is_too_long_is_answered(framework: str, scale: float, statuses: list[int]) -> None:
    async with StandIn(window=WINDOW, scale=scale) as standin:
        process = await asyncio.create_subprocess_exec(
            *(str(PYTHON), str(SCRIPT), framework, standin.base_url, str(WINDOW)),
            stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=ROOT,
        )  # fmt: skip
        said, failed = await process.communicate(orjson.dumps(LONG))

    assert said.decode().strip() == "answer: Understood.", failed.decode()
    assert [seen.status for seen in standin.requests] == statuses
    assert [seen.violations for seen in standin.requests] == [[]] * len(statuses)
    assert len(standin.requests[-1].body) < len(orjson.dumps(LONG))
