"""Claude Code works through the gateway in a window that its conversation passes several times."""

import re
from pathlib import Path

import pytest

from gateway.standin import StandIn
from tests import running
from tests.agents.programs import GATEWAY, RULE, SECOND_TASK, TASK, Reader, Workplace, example, is_installed

pytestmark = [pytest.mark.slow, is_installed]

WINDOW = 30_000
"""Tokens. Instructions and tools of Claude Code take 18,000 of them."""
CONFIG = {"models": {"*": {"context_window": WINDOW, "tokenizer": "o200k"}}}
OFFLINE = {"ANTHROPIC_API_KEY": "sk-ant-any", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


async def test_claude_code(tmp_path: Path) -> None:
    """It is started as docs/agents.md says, and continues its session. The folded requests keep the task and the rules of the project."""
    place = Workplace.make(tmp_path, "CLAUDE.md", 9)
    model = Reader("Read", place.files, lambda file: {"file_path": str(file)})
    async with (
        StandIn(window=WINDOW, otherwise=model) as standin,
        running.in_process(running.configured(standin, CONFIG)) as gateway,
    ):
        variable = re.search(r"(\w+)=(\S+) claude$", example("Claude Code", "text"), re.M)
        assert variable is not None
        url = {variable[1]: variable[2].replace(GATEWAY, gateway.base_url.removesuffix("/v1"))}
        for arguments in ((TASK,), ("--continue", SECOND_TASK)):
            model.begin()
            assert "Done." in await place.run("claude", "-p", *arguments, "--allowedTools", "Read", **url, **OFFLINE)
            assert model.calls == []
        async with gateway.session.get(f"{gateway.admin_url}/api/exchanges?limit=500") as response:
            largest = max(record["tokens_before"] or 0 for record in await response.json())
    asked = [seen for seen in standin.requests if seen.path == "/v1/messages"]

    assert largest > 1.5 * WINDOW
    assert [seen.path for seen in asked if seen.status != 200 or seen.violations] == []
    assert all(RULE.encode() in seen.body and TASK.encode() in seen.body for seen in asked)
    assert SECOND_TASK.encode() in asked[-1].body
