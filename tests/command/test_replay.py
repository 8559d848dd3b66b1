"""`turnfold replay`: past traffic through the gateway's decisions, from logs of many kinds, without calling anybody."""

import asyncio
import gzip
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from benchmarks.recorded import CONVERSATIONS
from benchmarks.replay import config, conversations, play, points
from gateway.command.cli import main
from gateway.command.recast import recast
from gateway.command.replay.logs import body_in
from gateway.standin import Completion, StandIn
from tests import fakes
from tests.running import ROOT, in_process

WINDOW = "2000"
CHAT = {"model": "gpt-4o", "messages": fakes.chat(60, 50), "max_tokens": 200}
SHORT = {"model": "gpt-4o", "messages": [fakes.user("Hello")]}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>[bold]"


def replayed(*arguments: str) -> dict:
    result = CliRunner().invoke(main, ["replay", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


def lines(path: Path, *records: object) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


RECORDS = [
    ("a body", CHAT),
    ("OpenAI's batch file", {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": CHAT}),
    ("LiteLLM", {"id": "x", "model": "gpt-4o", "messages": CHAT["messages"], "model_parameters": {"max_tokens": 200}, "response": {}}),
    ("LiteLLM's spend log", {"request_id": "x", "messages": {}, "proxy_server_request": orjson.dumps(CHAT).decode()}),
    ("LiteLLM's proxy", {"proxy_server_request": {"url": "/chat/completions", "method": "POST", "body": CHAT}}),
    ("Langfuse, messages", {"traceId": "t", "type": "GENERATION", "model": "gpt-4o", "input": CHAT["messages"], "modelParameters": {"max_tokens": 200}}),
    ("Langfuse, an object", {"traceId": "t", "model": "gpt-4o", "input": {"messages": CHAT["messages"], "max_tokens": 200}}),
    ("request and body", {"request": {"method": "POST", "body": CHAT}, "response": {"status": 200}}),
    ("a body as text", {"ts": 1, "request_body": orjson.dumps(CHAT).decode()}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "record"), RECORDS, ids=[kind for kind, _ in RECORDS])
def test_a_body_is_found_in_each_kind_of_record(kind, record):
    found = orjson.loads(body_in(orjson.dumps(record)) or b"null")
    assert {name: found[name] for name in CHAT} == CHAT


@pytest.mark.parametrize("record", ["%s", '{"body":%s}', '{"request_body":"%s"}', "[%s]"])
@pytest.mark.parametrize(
    "body",
    [
        r'{"model":"gpt-4o","messages":[{"role":"user","content":"half of an emoji: \ud83d"}]}',
        '{"model":"gpt-4o","temperature":NaN,"messages":[{"role":"user","content":"Hello"}]}',
        f'{{"model":"m","messages":[{{"role":"user","content":[{{"type":"odd","deep":{"[" * 300 + "]" * 300}}}]}}]}}',
    ],
    ids=["half of an emoji", "NaN", "deep"],
)
def test_a_body_that_strict_parsers_refuse_is_replayed(tmp_path, record, body):
    """The gateway serves such bodies. One of 300 levels in a list ended the command."""
    held = orjson.dumps(body).decode()[1:-1] if '"%s"' in record else body
    (tmp_path / "log.jsonl").write_text(record.replace("%s", held) + "\n")

    assert replayed(str(tmp_path / "log.jsonl"))["requests"] == 1


def test_a_request_with_a_deep_call_is_replayed(tmp_path):
    deep = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":' * 300 + "1" + "}" * 300}}
    called = [{"role": "assistant", "content": None, "tool_calls": [deep]}, {"role": "tool", "tool_call_id": "c", "content": "ok"}]  # fmt: skip
    log = lines(tmp_path / "log.jsonl", {**CHAT, "messages": [CHAT["messages"][0], *called, *CHAT["messages"][1:]]})

    assert replayed(str(log), "--window", WINDOW)["folded"] == 1


@pytest.mark.parametrize(
    "line", [b"", b"no json", b"[]", b"3", b'{"messages": 3}', b'{"level": "info"}', b'{"body": "x"}', b"\xff"]
)
def test_what_holds_no_request_is_left_out(line):
    assert body_in(line) is None


@pytest.mark.parametrize("format", ["chat", "responses", "messages"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_format_is_decided_about_plain_and_packed(tmp_path, format, packed):
    body = orjson.dumps(recast(CHAT, format)) + b"\n"
    log = tmp_path / ("log.jsonl.gz" if packed else "log.jsonl")
    log.write_bytes(gzip.compress(body * 2) if packed else body * 2)
    found = replayed(str(log), "--window", WINDOW)

    assert found["formats"] == {format: 2}
    assert found["folded"] == found["refusals_avoided"] == 2
    assert found["tokens_after"] < found["tokens_before"]


def test_a_folder_holds_logs_and_single_bodies(tmp_path):
    lines(tmp_path / "a.jsonl", CHAT, SHORT, "noise")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "one.json").write_bytes(orjson.dumps(CHAT, option=orjson.OPT_INDENT_2))
    (tmp_path / "deeper" / "list.json").write_bytes(orjson.dumps([SHORT, CHAT], option=orjson.OPT_INDENT_2))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    found = replayed(str(tmp_path), "--window", WINDOW)

    assert (found["requests"], found["folded"], found["unreadable"]) == (5, 3, 1)
    assert found["conversations"] == 2


def test_several_processes_find_what_one_finds(tmp_path):
    log = lines(tmp_path / "log.jsonl", *([CHAT, SHORT] * 200))
    assert log.stat().st_size > 2**22
    one = replayed(str(log), "--window", WINDOW, "--cores", "1")
    result = subprocess.run(
        [sys.executable, "-m", "gateway", "replay", str(log), "--window", WINDOW, "--cores", "2", "--json"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    assert orjson.loads(result.stdout) == one
    assert one["requests"] == 400


def test_a_growing_conversation_is_cached_while_its_cut_stands(tmp_path):
    whole = fakes.chat(60, 50)
    growing = [{"model": "gpt-4o", "messages": whole[: 2 * turn], "max_tokens": 200} for turn in range(10, 30)]
    found = replayed(str(lines(tmp_path / "log.jsonl", *growing)), "--window", WINDOW)

    assert found["conversations"] == 1
    assert found["cached_share_before"] > 0.8
    assert 0 < found["cached_share_after"] < found["cached_share_before"]


async def test_a_replay_agrees_with_the_benchmark_on_recorded_conversations(tmp_path):
    if not (CONVERSATIONS / "tau_airline.jsonl").exists():
        pytest.skip("the recorded conversations are not here")
    stories = [list(points(name, messages, 0.25)) for name, messages in list(conversations("tau_airline"))[:3]]
    everything = [point for story in stories for point in story]
    async with StandIn(window=lambda model: int(model.removeprefix("w")), reply=Completion("ok")) as standin:
        async with in_process(config(stories, standin.base_url, "o200k")) as running:
            outcomes = [await play(running, standin, point) for point in everything]
        file = tmp_path / "turnfold.yaml"
        file.write_text(config(stories, standin.base_url, "o200k"))
        log = lines(tmp_path / "log.jsonl", *(point.body for point in everything))
        found = await asyncio.to_thread(replayed, str(log), "--config", str(file))

    assert found["requests"] == len(outcomes) > 20
    assert found["folded"] + found["lowered"] == sum(one.action == "fold" for one in outcomes)
    assert found["too_large"] == sum(one.status != 200 for one in outcomes)
    assert found["refused_as_they_came"] == sum(one.before + 512 > one.window for one in outcomes)
    # The benchmark's upstream counts by its own rules, a few tokens a request apart from ours.
    assert found["tokens_before"] == pytest.approx(sum(one.before for one in outcomes), rel=0.01)
    assert found["tokens_after"] == pytest.approx(sum(one.after for one in outcomes), rel=0.01)


class Tags(HTMLParser):
    """Everything that a page has, and every address that it names."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes = set(), {}

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= dict(attrs)


def test_the_page_stands_alone_and_hostile_text_is_inert(tmp_path):
    log = lines(tmp_path / "log.jsonl", {**CHAT, "model": HOSTILE}, CHAT)
    out = tmp_path / "out.html"
    result = CliRunner().invoke(main, ["replay", str(log), "--window", WINDOW, "--html", str(out)])
    assert result.exit_code == 0, result.output
    text = out.read_text("utf-8")
    tags = Tags()
    tags.feed(text)

    assert "<script" not in text
    assert tags.tags.isdisjoint({"script", "img", "link", "iframe", "object", "form", "a"})
    assert not any(name.startswith("on") or name in ("src", "href") for name in tags.attributes)
    assert {"svg", "table", "h1"} <= tags.tags
    assert "http" not in text.replace("http-equiv", "")
    assert fakes.words(3) not in text
    assert "<script>alert(1)" in result.output, "a terminal shows the name as it is"


def test_a_log_without_requests_is_a_clear_error(tmp_path):
    result = CliRunner().invoke(
        main, ["replay", str(lines(tmp_path / "log.jsonl", {"level": "info"})), "--window", WINDOW]
    )
    assert result.exit_code == 2
    assert "no request was found" in result.stderr


@pytest.mark.parametrize("place", [-12, 30])
def test_a_packed_log_that_is_damaged_is_a_clear_error(tmp_path, place):
    log = tmp_path / "log.jsonl.gz"
    packed = bytearray(gzip.compress(orjson.dumps({"model": "m", "messages": fakes.chat(3)}) + b"\n"))
    packed[place : place + 4] = b"\xff" * 4
    log.write_bytes(packed)
    result = CliRunner().invoke(main, ["replay", str(log), "--window", WINDOW])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{log}: ")


def test_a_page_that_cannot_be_written_is_a_clear_error(tmp_path):
    log, page = (
        str(lines(tmp_path / "log.jsonl", {"model": "m", "messages": fakes.chat(3)})),
        tmp_path / "none" / "page.html",
    )
    result = CliRunner().invoke(main, ["replay", log, "--window", WINDOW, "--html", str(page)])
    assert result.exit_code == 2
    assert f"--html: {page} cannot be written (No such file or directory)" in result.stderr
