"""Drive the agents people use, Claude Code and Codex, through a gateway against the strict stand-in, without a network or a key.

``python -m benchmarks.clients --claude PATH --codex PATH`` (``npm install @anthropic-ai/claude-code @openai/codex``). The stand-in plays a model
that reads one large file after another, first a few, then so many that the conversation passes three windows. The table tells what
the gateway did, and whether any request broke a rule of the API.
"""

import argparse
import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml
from rich.console import Console
from rich.table import Table

from gateway.config import Settings, parse
from gateway.serve import app
from gateway.standin import Answer, Completion, Seen, StandIn

FILE_WORDS = 5000
PATIENCE_S = 240


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent: how it is started, and how the model it talks to calls its tool for reading a file."""

    name: str
    window: int
    """Tokens. The agent's own instructions and tools take a good part of it."""
    command: Callable[[str, str], list[str]]
    """(path of the program, base URL) -> the command line."""
    environment: Callable[[str, Path], dict[str, str]]
    tools: Callable[[Any], list[str]]
    """A body -> the names of the tools it offers."""
    read: Callable[[list[str], Path], tuple[str, dict[str, Any]]]
    """(names of the tools, file) -> the tool that reads it and its arguments."""


def _claude_env(url: str, home: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "sk-ant-any",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "HOME": str(home),
    }


def _codex_env(url: str, home: Path) -> dict[str, str]:
    settings = (
        f'model = "gpt-5-codex"\nmodel_provider = "fold"\n[model_providers.fold]\nname = "fold"\nbase_url = "{url}"\n'
    )
    (home / "config.toml").write_text(f'{settings}env_key = "FOLD_KEY"\nwire_api = "responses"\n')
    return {"CODEX_HOME": str(home), "HOME": str(home), "FOLD_KEY": "sk-any"}


def _codex_read(names: list[str], file: Path) -> tuple[str, dict[str, Any]]:
    name = next(name for name in ("exec_command", "shell", "shell_command", "local_shell") if name in names)
    return (name, {"cmd": f"cat {file}"}) if name == "exec_command" else (name, {"command": ["cat", str(file)]})


AGENTS = (
    Agent(
        "Claude Code",
        45_000,
        lambda program, _: [
            program,
            "-p",
            "Read the files and say what is in them.",
            "--output-format",
            "json",
            "--allowedTools",
            "Read",
        ],
        _claude_env,
        lambda body: [tool.get("name") for tool in body.get("tools", ())],
        lambda _, file: ("Read", {"file_path": str(file)}),
    ),
    Agent(
        "Codex",
        30_000,
        lambda program, _: [
            program,
            "exec",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            "Read the files.",
        ],
        _codex_env,
        lambda body: [str(tool.get("name", tool.get("type"))) for tool in body.get("tools", ())],
        _codex_read,
    ),
)


def reader(agent: Agent, files: list[Path]) -> Callable[[Seen], Answer | None]:
    """A model that reads the files one after the other and then says that it is done."""
    left = list(files)

    def answer(seen: Seen) -> Answer | None:
        if seen.violations or seen.prompt_tokens > seen.window or not isinstance(seen.json, dict):
            return None
        names = agent.tools(seen.json)
        if not left or len(names) < 3:  # requests without tools ask for a title and the like
            return Completion("Done.")
        tool, arguments = agent.read(names, left.pop(0))
        function = {"name": tool, "arguments": orjson.dumps(arguments).decode()}
        return Completion("", ({"id": f"call_{len(left)}", "type": "function", "function": function},))

    return answer


async def drive(agent: Agent, program: str, count: int) -> list[str]:
    """Let an agent read so many files; return a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        files = [work / f"file{n}.txt" for n in range(count)]
        for n, file in enumerate(files):
            file.write_text("\n".join(f"Line {m} of file {n} says {m * 7919 % 1000}." for m in range(FILE_WORDS // 9)))
        async with StandIn(window=agent.window, otherwise=reader(agent, files)) as standin:
            running = await app.start(settings(standin, agent.window))
            try:
                command = agent.command(program, running.url)
                environment = {**os.environ, **agent.environment(running.url, home)}
                process = await asyncio.create_subprocess_exec(
                    *command, cwd=work, env=environment, stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                )  # fmt: skip
                async with asyncio.timeout(PATIENCE_S):
                    said, _ = await process.communicate()
                records = [
                    record
                    for record in running.gateway.recent.newest(1000)
                    if record.format in ("messages", "responses")
                ]
            finally:
                await running.close()
        actions = Counter(record.action for record in records)
        largest = max((record.tokens_before or 0 for record in records), default=0)
        broken = "; ".join(sorted({str(found) for seen in standin.requests for found in seen.violations})) or "none"
        refused = sum(
            seen.status >= 400 for seen in standin.requests if seen.path.startswith(("/v1/messages", "/v1/responses"))
        )
        told = ", ".join(f"{action} {number}" for action, number in actions.most_common())
        done = "yes" if process.returncode == 0 and b"Done." in said else said[-300:].decode("utf-8", "replace")
        return [agent.name, f"{largest / agent.window:.1f}", told, broken, str(refused), done]


def settings(standin: StandIn, window: int) -> Settings:
    """A gateway in front of the stand-in, with the same window for every model."""
    whole = {
        "server": {"host": "127.0.0.1", "port": 0},
        "admin": {"host": "127.0.0.1", "port": 0},
        "store": {"url": "memory://"},
        "upstreams": {"standin": {"provider": "openai", "base_url": standin.base_url}},
        "models": {"*": {"context_window": window}},
    }
    return parse(yaml.safe_dump(whole), {}, "clients.yaml")


async def main(programs: dict[str, str]) -> None:
    table = Table("Agent", "Windows", "What was done", "Broke a rule", "Refused by upstream", "Finished")
    for agent in AGENTS:
        if program := programs.get(agent.name):
            for count in (1, 30):
                table.add_row(*await drive(agent, program, count))
    Console(width=140).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claude", default="", help="path of Claude Code's program")
    parser.add_argument("--codex", default="", help="path of Codex' program")
    arguments = parser.parse_args()
    asyncio.run(main({"Claude Code": arguments.claude, "Codex": arguments.codex}))
