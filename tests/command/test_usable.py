"""Commands that use a part of the configuration: what this machine lacks for them is one clear line, and what they need not is ignored."""

import orjson
import pytest

from tests.command.test_serving import UPSTREAMS, run

REDIS = UPSTREAMS % "" + "store: {url: 'redis://127.0.0.1:1/0'}"
NO_CERTIFICATE = UPSTREAMS % ", ca_file: /no/such.pem"
NO_REDIS = "t.yaml: store.url: Redis needs the package redis"
NEEDED = [
    (("models",), REDIS, "redis", NO_REDIS),
    (("report",), REDIS, "redis", NO_REDIS),
    (("forget", "--all"), REDIS, "redis", NO_REDIS),
    (("models",), NO_CERTIFICATE, "", "t.yaml: upstreams.local.ca_file: /no/such.pem cannot be read (No such file or directory)"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "blocked", "says"), NEEDED, ids=[" ".join(row[0]) for row in NEEDED])
async def test_what_a_command_needs_and_this_machine_lacks_is_one_line(tmp_path, command, text, blocked, says):
    (tmp_path / "t.yaml").write_text(text)
    status, [line] = await run(tmp_path, *command, "--config", "t.yaml", blocked=blocked)
    assert status == 1
    assert line.startswith(says)


@pytest.mark.parametrize(
    "command", [("models",), ("report",), ("forget", "--all"), ("keys", "list"), ("extproc",)], ids=" ".join
)
async def test_a_command_without_its_file_says_how_to_write_one(tmp_path, command):
    status, [line] = await run(tmp_path, *command)
    assert status == 1
    assert line.endswith("turnfold.yaml: No such file or directory; `turnfold init --upstream URL` writes a first one")


TRACED = "\nobserve: {traces: 'http://127.0.0.1:9/v1/traces'}"
CLIENT_CERTIFICATE = UPSTREAMS % ", client_cert: /no/such.pem"


@pytest.mark.parametrize("command", ["explain", "replay"])
@pytest.mark.parametrize(
    ("text", "blocked"),
    [(NO_CERTIFICATE, ""), (CLIENT_CERTIFICATE, ""), (REDIS, "redis"), (UPSTREAMS % "" + TRACED, "opentelemetry")],
    ids=["ca_file", "client_cert", "redis", "traces"],
)
async def test_a_command_that_calls_nobody_needs_nothing(tmp_path, command, text, blocked):
    (tmp_path / "t.yaml").write_text(text)
    (tmp_path / "r.jsonl").write_bytes(orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}))
    status, lines = await run(tmp_path, command, "r.jsonl", "--config", "t.yaml", blocked=blocked)
    assert status == 0, lines
    assert any("m: fits" in line or "1 request: " in line for line in lines)
