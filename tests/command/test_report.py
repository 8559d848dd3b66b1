"""An operator's day: observe, replay, report, enforce, and look up a conversation that loses something."""

import asyncio
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import CliRunner

from gateway.command.cli import main
from gateway.standin import StandIn
from tests import fakes
from tests.running import configured, in_process

LONG = fakes.chat(60, 50)


def written(standin: StandIn, folder: Path, mode: str) -> tuple[str, Path]:
    """Write a configuration whose upstream refuses what is longer than the model's window."""
    text = configured(standin, {
        "store": {"url": f"sqlite:///{folder}/turnfold.db", "timeout": "5s"},  # a busy machine
        "models": {"m": {"context_window": 2000, "tokenizer": "o200k"}},
        "fold": {"mode": mode},
    })  # fmt: skip
    file = folder / "turnfold.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(text)))
    return text, file


def reported(file: Path, *more: str) -> dict:
    result = CliRunner().invoke(main, ["report", "--config", str(file), "--json", *more])
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


async def test_a_day_of_observing_is_summed_up_and_enforcing_keeps_its_promise(tmp_path):
    bodies = [{"model": "m", "messages": LONG[:length], "max_tokens": 100} for length in (2, 40, 60, 100)]
    async with StandIn(window=2000) as standin:
        text, file = written(standin, tmp_path, "observe")
        async with in_process(text) as running:
            statuses = [(await running.chat(body)).status for body in bodies]
            seen = (await (await running.session.get(f"{running.admin_url}/metrics")).read()).decode()
        refused = statuses.count(400)
        observed = await asyncio.to_thread(reported, file)
        log = tmp_path / "log.jsonl"
        log.write_bytes(b"".join(orjson.dumps(body) + b"\n" for body in bodies))
        replay = ["replay", str(log), "--config", str(file), "--json"]
        told = orjson.loads((await asyncio.to_thread(CliRunner().invoke, main, replay)).stdout)

        text, file = written(standin, tmp_path, "enforce")
        async with in_process(text) as running:
            assert [(await running.chat(body)).status for body in bodies] == [200] * len(bodies)
            async with running.session.get(f"{running.admin_url}/api/exchanges?model=m&limit=1") as found:
                (newest,) = orjson.loads(await found.read())
            async with running.session.get(f"{running.admin_url}/api/conversations/{newest['conversation']}") as found:
                talk = orjson.loads(await found.read())

    assert refused > 1
    assert f"{refused} refusals avoided" in observed["headline"][0]
    assert observed["modes"]["observe"]["seen_refused"] == refused == told["refusals_avoided"]
    assert 0.1 < observed["modes"]["observe"]["saved_share"] < 1
    assert "turnfold_saved_tokens_total{" not in seen
    assert 'mode="observe"' in seen
    assert "turnfold_would_fold_total{" in seen

    (worst,) = observed["conversations_that_lose_most"]
    assert worst["conversation"] == newest["conversation"] == talk["conversation"]
    assert newest["lost"]["turns"] > 0
    assert [one["mode"] for one in talk["exchanges"]] == ["observe"] * 4 + ["enforce"] * 4
    done = (await asyncio.to_thread(reported, file))["modes"]["enforce"]
    assert (done["requests"], done["seen_refused"]) == (4, 0)
    result = await asyncio.to_thread(CliRunner().invoke, main, ["report", "--config", str(file)])
    assert "With enforce:" in result.output
    assert worst["conversation"] in result.output


def test_without_a_store_the_reason_is_told(tmp_path):
    file = tmp_path / "turnfold.yaml"
    file.write_text("store: {url: 'memory://'}\nupstreams: {u: {provider: vllm, base_url: 'http://h/v1'}}\n")
    result = CliRunner().invoke(main, ["report", "--config", str(file)])
    assert result.exit_code == 1
    assert "no records are kept" in result.stderr


def test_records_that_do_not_exist_yet_are_told_and_not_made(tmp_path):
    file, records = tmp_path / "turnfold.yaml", tmp_path / "state" / "t-records.db"
    store = f"sqlite:///{tmp_path}/state/t.db"
    file.write_text(f"upstreams: {{u: {{provider: vllm, base_url: 'http://h/v1'}}}}\nstore: {{url: '{store}'}}\n")
    result = CliRunner().invoke(main, ["report", "--config", str(file)])
    assert result.exit_code == 0, result.output
    assert f"{records} does not exist" in result.stderr
    assert not records.parent.exists()
    result = CliRunner().invoke(main, ["forget", "--config", str(file), "--all"])
    assert "0 values forgotten" in result.output
    assert not records.exists()


@pytest.mark.parametrize("time", ["soon", "nan"])
def test_a_time_that_means_nothing_is_a_clear_error(tmp_path, time):
    file = tmp_path / "turnfold.yaml"
    file.write_text("upstreams: {u: {provider: vllm, base_url: 'http://h/v1'}}\n")
    result = CliRunner().invoke(main, ["report", "--config", str(file), "--since", time])
    assert result.exit_code == 1
    assert f'--since: "{time}" is not a time, such as 15m' in result.stderr


@pytest.mark.parametrize("time", ["1e400", "1e30", "-1e30", "99999999999d"])
def test_a_time_that_no_calendar_has_is_the_nearest_that_one_has(tmp_path, time):
    file = tmp_path / "turnfold.yaml"
    store = f"sqlite:///{tmp_path}/t.db"
    file.write_text(f"upstreams: {{u: {{provider: vllm, base_url: 'http://h/v1'}}}}\nstore: {{url: '{store}'}}\n")
    result = CliRunner().invoke(main, ["report", "--config", str(file), f"--since={time}"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("1970-01-01T00:00:00Z" if "-" in time or "d" in time else "9999-12-31T00:00:00Z")
