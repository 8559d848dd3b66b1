"""The command-line agents that `make agents` installs, and a model that has them read many files.

They are used as docs/agents.md says. Their own servers cannot be reached: telemetry and updates are switched off.
"""

import asyncio
import os
import re
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pytest

from gateway.standin import Answer, Completion, Seen
from tests.running import ROOT

PROGRAMS: Final = ROOT / "build" / "agents" / "node_modules" / ".bin"
GATEWAY: Final = "http://127.0.0.1:8787"
"""The gateway's address in the documentation."""
PATIENCE_S: Final = 240
TASK: Final = "Read the files, and say which one is for the harbour. Keep the names of the files in lower case."
RULE: Final = "Commit messages begin with `HB-4711:`."
RULES: Final = f"# Rules\n\n- {RULE}\n- Nothing below `vendor/` is edited.\n- Sums are counted in cents.\n"
SECOND_TASK: Final = "Thank you. Now read them again, and say which one is for the station."

is_installed: Final = pytest.mark.skipif(
    not PROGRAMS.exists(), reason="the agents are not installed: run `make agents`"
)


def example(heading: str, language: str) -> str:
    """Return the first block in a language under a heading of docs/agents.md."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    section = page.partition(f"\n## {heading}\n")[2]
    found = re.search(rf"^```{language}\n(.*?)^```", section, re.M | re.S)
    assert found is not None
    return found[1]


class Workplace(NamedTuple):
    """The folders of an agent: its home, and a project with files to read."""

    home: Path
    project: Path
    files: list[Path]

    @classmethod
    def make(cls, folder: Path, rules: str, count: int) -> "Workplace":
        """Make the folders. ``rules`` is the name of the file with the project's rules, which the agent reads by itself."""
        home, project = folder / "home", folder / "project"
        home.mkdir()
        (project / ".git").mkdir(parents=True)
        (project / rules).write_text(RULES, "utf-8")
        files = [project / f"part_{n}.txt" for n in range(count)]
        for n, file in enumerate(files):
            rows = (
                f"Row {row} of part {n}: box {n * 1000 + row} holds {row * 7919 % 997} plates." for row in range(110)
            )
            file.write_text("\n".join(rows), "utf-8")
        return cls(home, project, files)

    async def run(self, program: str, *arguments: str, **environment: str) -> str:
        """Run an agent to its end, and return what it printed."""
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            PROGRAMS / program, *arguments, cwd=self.project, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT,
            env={**inherited, "HOME": str(self.home), "PWD": str(self.project), **environment},
        )  # fmt: skip
        try:
            async with asyncio.timeout(PATIENCE_S):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        text = said.decode("utf-8", "replace")
        assert process.returncode == 0, text[-2000:]
        return text


Call = tuple[str, dict[str, Any]]
"""The name of a tool, and its arguments."""


class Reader:
    """A model that calls a tool for each file, one after the other, and then says that it is done."""

    def __init__(self, tool: str, files: list[Path], read: Callable[[Path], dict[str, Any]]) -> None:
        self.tool = tool
        self.calls: list[Call] = []
        self._numbers = iter(range(10_000))
        self._files, self._read = files, read

    def begin(self) -> None:
        """Read all files once more."""
        self.calls = [(self.tool, self._read(file)) for file in self._files]

    def __call__(self, seen: Seen) -> Answer | None:
        """Answer a request; None for one that a strict server refuses."""
        if not isinstance(seen.json, dict) or seen.violations or seen.prompt_tokens > seen.window:
            return None
        if self.tool not in set(_names(seen.json.get("tools"))):
            return Completion("Files")  # the agent asks for a title
        if not self.calls:
            return Completion("Done.")
        name, arguments = self.calls.pop(0)
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        call = {"id": f"call_{next(self._numbers)}", "type": "function", "function": function}
        return Completion("Next.", (call,))


def _names(tools: Any) -> Iterator[str]:
    """Return the names of a request's tools."""
    return (str(tool.get("name")) for tool in tools or () if isinstance(tool, dict))
