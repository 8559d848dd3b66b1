"""What the documentation shows works: every YAML block loads, every command runs, every snippet parses."""

import ast
import asyncio
import base64
import gzip
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import click
import orjson
import pytest
from msgspec.structs import replace

from gateway.command.cli import main
from gateway.config import parse
from providers import registry
from providers.record import Provider
from tests import fakes
from tests.running import PATIENCE_S, ROOT, answering, free_ports

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ENVIRON = {
    "GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "TURNFOLD_ADMIN_TOKEN": "t",
    "TURNFOLD_ENCRYPTION_KEY": base64.b64encode(bytes(32)).decode(),
}  # fmt: skip
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:turnfold|make|pip|pipx|kubectl|docker|python -m) [^`]+)`")
OPTIONAL = {"kubectl", "docker", "pipx"}
"""Programs that need not be here: what is checked is that the files they are given exist."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """All blocks in one of the languages."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            block = Block(page.name, text.count("\n", 0, match.start()) + 2, match[2], textwrap.dedent(match[3]))
            if block.language in languages:
                found.append(block)
    return found


def commands() -> dict[str, str]:
    """All command lines of shell blocks by their place; of a console block, the lines behind a ``$``."""
    found = {}
    for block in blocks("sh", "console", "bash", "shell"):
        for number, line in enumerate(block.text.splitlines()):
            command = line.removeprefix("$ ") if block.language != "console" or line.startswith("$ ") else ""
            if words := " ".join(shlex.split(command, comments=True)):
                found[f"{block.page}:{block.line + number}: {words}"] = command
    return found


def inline_commands() -> dict[str, list[str]]:
    """All commands that stand in running text, by their page."""
    return {
        f"{page.name}: {command}": shlex.split(command)
        for page in PAGES
        for command in INLINE.findall(page.read_text("utf-8"))
    }


def test_the_pages_have_something_to_check():
    assert len(blocks("yaml")) >= 3
    assert len(commands()) >= 8


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_every_yaml_block_is_a_configuration_that_loads(block):
    parse(block.text, ENVIRON, str(block))


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_every_json_block_is_json(block):
    orjson.loads(block.text)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_python_block_is_python(block):
    ast.parse(block.text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a reader has it: a configuration and a request."""
    shutil.copy(ROOT / "config" / "turnfold.yaml", tmp_path)
    request = {"model": "llama-3.1-8b", "messages": fakes.chat(60), "max_tokens": 300}
    for name in ("request.json", "REQUEST.json"):
        (tmp_path / name).write_bytes(orjson.dumps(request))
    (tmp_path / "logs").mkdir()
    for name in ("logs.jsonl", "logs/day.jsonl"):
        (tmp_path / name).write_bytes(orjson.dumps(request) + b"\n")
    (tmp_path / "logs.jsonl.gz").write_bytes(gzip.compress(orjson.dumps(request)))
    return tmp_path


@pytest.mark.parametrize("command", commands().values(), ids=commands())
async def test_every_command_runs(folder, command):
    words = shlex.split(command, comments=True)
    if completion := re.search(r"(_TURNFOLD_COMPLETE)=(\w+) (turnfold)\b", command):
        name, value, program = completion.groups()
        run(folder, [str(Path(sys.executable).with_name(program))], {name: value})
    elif words[:2] == ["turnfold", "serve"]:
        port, admin_port = free_ports(2)
        await serves(folder, [*words[1:], "--port", str(port), "--admin-port", str(admin_port)], port)
    elif words[:2] == ["turnfold", "standin"]:
        [port] = free_ports(1)
        await serves(folder, [*words[1:], "--port", str(port)], port)
    elif words[0] == "turnfold":
        if words[1] == "keys":
            with_keys(folder)
        run(folder, [sys.executable, "-m", "gateway", *words[1:]])
    elif Path(words[0]).name.startswith("python") and "venv" not in words:
        run(ROOT, [sys.executable, *words[1:]])
    else:
        check_words(words)  # a target of make, or an installation: see the test below


def test_the_provider_of_the_page_about_contributing_can_be_made():
    row, file = [block.text for block in blocks("python") if block.page == "CONTRIBUTING.md"]
    made: dict[str, object] = {"GENERIC": registry.GENERIC, "replace": replace}
    exec(f"row = {row}\n{file}", made)
    acme = made["ACME"]

    assert made["row"] == replace(registry.GENERIC, name="acme")
    assert isinstance(acme, Provider)
    assert acme.authorize("k") == {"x-acme-key": "k"}


@pytest.fixture
def readme_folder(folder, monkeypatch):
    """A folder with the request that the README makes."""
    [program] = [block for block in blocks("python") if block.page == "README.md" and "request.json" in block.text]
    monkeypatch.chdir(folder)
    exec(program.text, {})
    return folder


async def test_the_readme_shows_the_headers_of_the_answer(readme_folder, standin, gateway):
    [shown] = [block.text for block in blocks("") if block.page == "README.md" and "x-turnfold-action" in block.text]
    running = await gateway(standin, {"models": {"*": {"context_window": 8192}}})
    answer = await running.chat(orjson.loads((readme_folder / "request.json").read_bytes()))
    expected = dict(line.split(": ") for line in shown.splitlines())
    del expected["x-turnfold-request-id"]
    assert expected == {name: answer.headers[name] for name in expected}
    assert "On day 17 we sold 119 lamps" in str(standin.chats[-1].json)


def test_the_readme_shows_what_explain_prints(readme_folder):
    [block] = [block for block in blocks("console") if block.page == "README.md"]
    command, shown = block.text.split("\n", 1)
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *shlex.split(command.removeprefix("$ "))[1:]],
        cwd=readme_folder, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[: shown.count("\n")] == shown.splitlines()


def with_keys(folder: Path) -> None:
    """Let the configuration name a file of keys with one in it."""
    file = folder / "turnfold.yaml"
    text = file.read_text("utf-8")
    assert "  keys_file: null" in text
    file.write_text(text.replace("  keys_file: null", "  keys_file: turnfold.keys.yaml"))
    (folder / "turnfold.keys.yaml").write_text(f"keys: {{old-team: {{hash: 'sha256:{'0' * 64}'}}}}")


def run(folder: Path, command: list[str], variables: Mapping[str, str] = MappingProxyType({})) -> None:
    """Run a command to its end, which must be a good one."""
    environment = {**os.environ, **ENVIRON, **variables, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def serves(folder: Path, arguments: list[str], port: int) -> None:
    """Run a command that serves, and wait until it accepts connections at its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        await answering(port, process)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            await process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("words", inline_commands().values(), ids=inline_commands())
def test_every_command_in_the_text_exists(words):
    check_words(words)


def check_words(words: list[str]) -> None:
    """Look a command up without running it: its sub-command and options, its target, its module, its files, its extras."""
    if words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    elif words[0] == "turnfold":
        check_turnfold(words[1:])
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2]), words
        source = "".join(path.read_text("utf-8") for path in (ROOT / words[2].replace(".", "/")).glob("*.py"))
        assert all(option in source for option in words[3:] if option.startswith("--")), words
    elif words[0] in ("pip", "pipx"):
        check_install(words[1:])
    else:
        assert words[0] in OPTIONAL or shutil.which(words[0]), words
        assert all((ROOT / word).exists() for word in words[1:] if word.startswith("deploy/")), words


def check_turnfold(words: list[str]) -> None:
    named = [word for word in words if not word.startswith("-")]
    command: click.Command = main
    while named and isinstance(command, click.Group):
        name = named.pop(0)
        assert name in command.commands, name
        command = command.commands[name]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    given = {word for word in words if word.startswith("--")}
    assert given <= known | {"--help"}, given - known


def check_install(words: list[str]) -> None:
    """What is installed is a package of an index, or this checkout with extras that it has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert words[0] == "install"
    for extras in re.findall(r"^\.\[(.*)\]$", "\n".join(words[1:]), re.MULTILINE):
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    assert not [word for word in words if word.startswith("turnfold")], "the package is on no index yet"


def test_every_log_event_is_explained_with_its_level():
    logged = {
        (event, level)
        for path in (ROOT / "gateway").rglob("*.py")
        for level, event in re.findall(r'\blog\.(debug|info|warning|error)\(\s*"(\w+)"', path.read_text("utf-8"))
    }
    rows = re.findall(r"^\| (`[^|]+`) \| (\w+) \| \S", section("operations.md", "## Log events"), re.MULTILINE)
    explained = {(event, level) for names, level in rows for event in re.findall(r"`(\w+)`", names)}
    named_as_values = {("exchange", "info"), ("store_unwritable", "warning")}
    assert explained == logged | named_as_values


EXAMPLES = {"providers/acme.py", "tests/bodies/acme/recorded.json"}
"""Files that a reader is told to write."""


def test_every_file_that_a_page_names_exists():
    named = {
        (page.name, path)
        for page in PAGES
        for path in re.findall(r"`([\w.-]+/[\w./-]+\.(?:py|txt|json|jsonl|yaml))`", page.read_text("utf-8"))
    }
    folders = (ROOT, ROOT / "gateway" / "context", ROOT / "tests", ROOT / "benchmarks" / "recall")
    missing = {(page, path) for page, path in named if not any((folder / path).exists() for folder in folders)}
    assert {(page, path) for page, path in missing if path not in EXAMPLES} == set()


def test_every_function_and_class_on_the_page_about_the_architecture_exists():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    functions = re.findall(r"^\| \d+ \| `([\w/.]+\.py)` \| `(\w+)` \|", page, re.MULTILINE)
    made = re.findall(r"`(\w+)` \(`([\w/.]+\.py)`\)", page)
    assert functions
    assert made
    defined = {*functions, *((path, name) for name, path in made)}
    missing = {
        (path, name)
        for path, name in defined
        if not re.search(
            rf"^ *(?:async def|def|class) {name}\b|^{name}: Final", (ROOT / path).read_text(), re.MULTILINE
        )
    }
    assert missing == set()


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#{1,4} (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ["CHANGELOG.md", "README.md", "CONTRIBUTING.md"])
def test_every_link_of_a_page_that_is_read_outside_the_site_leads_to_a_heading(page):
    """The site's own build finds the broken links of docs/."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", (ROOT / page).read_text("utf-8"))
    assert links
    broken = {
        (path, anchor)
        for path, anchor in links
        if not (ROOT / (path or page)).exists() or (anchor and anchor not in headings(ROOT / (path or page)))
    }
    assert broken == set()


@pytest.mark.parametrize("page", ["decisions.md", "experiments.md"])
def test_the_contents_list_every_heading(page):
    listed = re.findall(r"^(?: *- )?\[(.+)\]\(#", section(page, "## Contents"), re.MULTILINE)
    headings = re.findall(r"^###? (.+)$", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    assert sorted(["Contents", *listed]) == sorted(headings)


def section(page: str, heading: str) -> str:
    """Return the text below a heading of the second level, up to the next one."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


@pytest.mark.slow
def test_the_readme_installs_the_package(tmp_path):
    """The block that installs is run as it stands, in a copy of what the repository holds."""
    [block] = [block for block in blocks("sh") if block.page == "README.md" and "pip install" in block.text]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    for name in filter(None, tracked):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.environ.get("PIP_CONFIG_FILE", ""),
    }
    environment |= {
        name: value for name, value in os.environ.items() if "proxy" in name.lower() or name.startswith("PIP_")
    }
    done = subprocess.run(
        ["bash", "-euc", block.text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("turnfold, version ")
