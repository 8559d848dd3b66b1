"""`turnfold explain`: the source of the window is named as a reader finds it, and text that is not in the request is told."""

import orjson
import pytest
from click.testing import CliRunner

from gateway.command.cli import main

FILE = """upstreams: {v: {provider: vllm, base_url: 'http://127.0.0.1:9/v1'}}
models: {"llama-*": {context_window: 8192}, fast: {name: gpt-4o}}
"""
SOURCES = [
    # options, model, where its window comes from
    (("--window", "8192"), "gpt-4o", "--window"),
    ((), "gpt-4o", "the catalogue: gpt-4o*"),
    ((), "house-model", "the default"),
    (("--config", "t.yaml"), "llama-3", "models.llama-*"),
    (("--config", "t.yaml"), "fast", "the catalogue: gpt-4o*"),
]


@pytest.mark.parametrize(("options", "model", "source"), SOURCES)
def test_the_source_of_the_window_is_named(tmp_path, monkeypatch, options, model, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.yaml").write_text(FILE)
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    (tmp_path / "request.json").write_bytes(orjson.dumps(body))

    done = CliRunner().invoke(main, ["explain", "request.json", *options])

    assert done.exit_code == 0, done.output
    assert f"(from {source})" in " ".join(done.output.split())


@pytest.mark.parametrize(("more", "told"), [({}, False), ({"previous_response_id": "resp_1"}, True)])
def test_text_that_only_the_server_has_is_told(tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    body = {"model": "gpt-4o", "input": "hi", **more}
    (tmp_path / "request.json").write_bytes(orjson.dumps(body))

    done = CliRunner().invoke(main, ["explain", "request.json"])

    assert done.exit_code == 0, done.output
    assert ("an earlier response" in done.output) is told
