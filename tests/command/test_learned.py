"""`turnfold models` and `turnfold forget`, beside a gateway that runs."""

import asyncio
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.command.cli import main
from gateway.standin import StandIn
from tests.fakes import chat, system
from tests.running import ROOT, configured


async def turnfold(*arguments: str, columns: int = 240) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments, cwd=ROOT, env={"COLUMNS": str(columns), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def stored_in(folder: Path) -> dict[str, str]:
    """A store that is patient with a slow disk: these tests are about what is in it."""
    return {"url": f"sqlite:///{folder}/facts.db", "timeout": "10s"}


@pytest.mark.parametrize(
    "order", [("--learned",), ("--model", "llama-of-nobody"), ("--all",)], ids=["learned", "model", "all"]
)
async def test_what_a_running_gateway_learned_is_shown_and_forgotten(gateway, tmp_path: Path, order) -> None:
    config = {"store": stored_in(tmp_path), "defaults": {"context_window": 32_000}}
    async with StandIn(window=8192, models=("llama-of-nobody",)) as standin:
        file = tmp_path / "turnfold.yaml"
        file.write_text(configured(standin, config))
        standin._models = None  # its list does not tell this model
        running = await gateway(standin, config)
        for name in "ab":
            answer = await running.chat(
                {"model": "llama-of-nobody", "messages": [system(f"I am {name}."), *chat(60, 250)]}
            )
            assert answer.status == 200
        await running.settled()

        shown = await turnfold("models", "--config", str(file))
        assert "llama-of-nobody" in shown, "though no file names it"
        for told in ("stated", "8,192", "its caller", "2 refusals"):
            assert told in shown
        narrow = await turnfold("models", "--config", str(file), columns=80)
        assert max(map(len, narrow.partition(" model ")[2].splitlines())) <= 80  # before it: the log
        assert "llama-of-nobody at standin: window 8,192, stated\n   holds for its caller (caller " in narrow
        assert "…" not in narrow, "no word is cut"

        assert "forgotten" in await turnfold("forget", "--config", str(file), *order)
        assert "2 refusals" not in await turnfold("models", "--config", str(file))
        async with asyncio.timeout(10):
            while b'"window"' in await facts_of(running):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # the other process has no event to wait for


async def test_a_models_name_steers_no_terminal_and_is_no_markup(gateway, tmp_path: Path) -> None:
    """Any client names models, and an unknown one is listed with what was learned of it."""
    config = {"store": stored_in(tmp_path), "defaults": {"context_window": 32_000}}
    name = "x\x1b]0;title\x07\x1b[2J[/bold]\u202egnp\r\nrow"
    async with StandIn(window=8192) as standin:
        file = tmp_path / "turnfold.yaml"
        file.write_text(configured(standin, config))
        running = await gateway(standin, config)
        for opening in "ab":
            await running.chat({"model": name, "messages": [system(opening), *chat(60, 250)]})
        await running.settled()
        shown = await turnfold("models", "--config", str(file))
    assert "[/bold]" in shown
    assert all(sign.isprintable() or sign == "\n" for sign in shown)


async def facts_of(running) -> bytes:
    async with running.session.get(f"{running.admin_url}/api/learned") as response:
        return await response.read()


@pytest.mark.parametrize("command", [("models",), ("report", "--json")], ids=" ".join)
async def test_log_lines_stand_beside_the_result_and_not_in_it(tmp_path: Path, command) -> None:
    """A program that reads the result finds nothing else in it."""
    async with StandIn(window=8192, models=("m",)) as standin:
        file = tmp_path / "turnfold.yaml"
        file.write_text(configured(standin, {"store": {"url": f"sqlite:///{tmp_path}/facts.db"}}))
        for name in ("facts.db", "facts-records.db"):
            (tmp_path / name).write_bytes(b"SQLite format 3\0" + b"no database of ours" * 300)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", *command, "--config", str(file), cwd=ROOT, env={"PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = (said.decode() for said in await process.communicate())
    assert "store_file_is_not_ours" in err
    assert "[error" not in out and "[info" not in out and "store_" not in out


async def test_an_upstream_that_cannot_be_asked_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "upstreams: {v: {provider: vllm, base_url: 'http://127.0.0.1:1/v1'}}\nstore: {url: 'memory://'}\n"
    )
    shown = await turnfold("models", "--config", str(tmp_path / "t.yaml"))
    assert "could not be reached: the connection was refused" in shown


@pytest.mark.parametrize("key_hash", ["", "*", "sk-a-key-and-no-hash"])
def test_what_is_no_hash_of_a_key_forgets_nothing(tmp_path: Path, key_hash: str) -> None:
    """A pattern would match the callers of others in Redis, and a key would be written into the store."""
    result = CliRunner().invoke(main, ["forget", "--config", str(tmp_path / "none.yaml"), "--key-hash", key_hash])

    assert (result.exit_code, "32 small hexadecimal digits" in result.output) == (2, True)
