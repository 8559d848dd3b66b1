"""`turnfold init`: a server is asked for its models, and the file that is written passes `turnfold check`."""

import asyncio
import os
import re
import sys

import orjson
import pytest

from gateway.config import load
from gateway.standin import Raw, StandIn
from tests import fakes
from tests.running import PATIENCE_S, ROOT, free_ports


async def turnfold(folder, *arguments, given=b"", **environ):
    """Run a command in a folder; return its status and all that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate(given)
    return process.returncode, output.decode()


def listing(*entries):
    return fakes.verbatim(200, orjson.dumps({"object": "list", "data": entries}))


async def test_a_server_of_ones_own_gets_a_file_with_the_windows_it_states(tmp_path):
    models = listing(
        {"id": "org/model-7b", "owned_by": "vllm", "max_model_len": 8192},
        {"id": 'odd "name": x', "owned_by": "vllm", "max_model_len": 4096},
        {"id": "gpt-4o", "owned_by": "vllm"},
        {"id": "mystery", "owned_by": "vllm"},
        {"id": "with-*", "owned_by": "vllm"},
    )
    async with StandIn(model_list=models) as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert status == 0, said
        assert "with 5 models" in said
        settings = load(tmp_path / "turnfold.yaml", {})
        [upstream] = settings.upstreams.values()
        assert (upstream.provider, upstream.base_url, upstream.api_key) == ("vllm", standin.base_url, "")
        assert {name: model.context_window for name, model in settings.models.items()} == {
            "org/model-7b": 8192, 'odd "name": x': 4096,
        }  # fmt: skip
        text = (tmp_path / "turnfold.yaml").read_text()
        assert '# "gpt-4o": {context_window: 128000}' in text
        assert '# "mystery": {context_window: 131072}' in text
        status, said = await turnfold(tmp_path, "check", "turnfold.yaml", "--live")
        assert (status, "is there, with 5 models" in said) == (0, True), said


async def test_a_key_is_used_and_only_its_variables_name_is_written(tmp_path):
    async with StandIn(key="sk-secret", models=("m",)) as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert (status, "asks for a key" in said, "--key-env" in said) == (1, True, True), said
        command = ("init", "--upstream", standin.base_url, "--key-env", "MY_KEY")
        status, said = await turnfold(tmp_path, *command)
        assert (status, "MY_KEY is not set" in said) == (1, True)
        status, said = await turnfold(tmp_path, *command, MY_KEY="wrong")
        assert (status, "does not accept the key" in said) == (1, True)
        assert list(tmp_path.iterdir()) == []
        status, said = await turnfold(tmp_path, *command, MY_KEY="sk-secret")
        assert status == 0, said
    text = (tmp_path / "turnfold.yaml").read_text()
    assert "sk-secret" not in text + said
    assert load(tmp_path / "turnfold.yaml", {"MY_KEY": "x"}).upstreams["local"].api_key == "x"


async def test_a_file_is_replaced_only_when_that_is_said(tmp_path):
    (tmp_path / "turnfold.yaml").write_text("mine")
    async with StandIn() as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert (status, "--force" in said) == (1, True)
        assert (tmp_path / "turnfold.yaml").read_text() == "mine"
        assert standin.requests == []
        assert (await turnfold(tmp_path, "init", "--upstream", standin.base_url, "--config", "other.yaml"))[0] == 0
        assert (await turnfold(tmp_path, "init", "--upstream", standin.base_url, "--force"))[0] == 0
    assert load(tmp_path / "turnfold.yaml", {}) == load(tmp_path / "other.yaml", {})


async def test_the_url_is_asked_for_where_none_is_given(tmp_path):
    async with StandIn() as standin:
        status, said = await turnfold(tmp_path, "init", given=f"{standin.base_url}\n".encode())
    assert (status, "Base URL of your model server" in said) == (0, True), said
    assert (tmp_path / "turnfold.yaml").exists()


async def test_llama_cpp_is_asked_for_the_window_it_runs_with(tmp_path):
    models = listing({"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}})
    async with StandIn(model_list=models) as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert status == 0, said
        assert [request.path for request in standin.requests] == ["/v1/models", "/props"]
    assert load(tmp_path / "turnfold.yaml", {}).upstreams["llama.cpp"].provider == "llama.cpp"


async def test_a_server_that_loads_models_on_demand_is_asked_for_the_loaded_ones(tmp_path):
    """A window of the catalogue would be said to be right, though Ollama runs with 4,096 tokens unless told otherwise."""
    models = listing(*({"id": name, "owned_by": "library"} for name in ("qwen2.5:7b", "llama3.1:8b", "own:latest")))
    loaded = [{"name": "qwen2.5:7b", "context_length": 4096}, {"name": "own:latest", "context_length": 2048}]
    stated = Raw(200, (orjson.dumps({"models": loaded}),))
    async with StandIn(model_list=models, otherwise=lambda seen: stated) as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert status == 0, said
        assert [request.path for request in standin.requests] == ["/v1/models", "/api/ps"]
    models = load(tmp_path / "turnfold.yaml", {}).models
    assert {name: model.context_window for name, model in models.items()} == {"qwen2.5:7b": 4096, "own:latest": 2048}
    text = (tmp_path / "turnfold.yaml").read_text()
    assert re.search(r'# "llama3.1:8b": .*# the model\'s largest; the server may load it with less: set that', text)


async def test_a_router_with_hundreds_of_models_gets_a_file_that_can_be_read(tmp_path):
    models = listing(*({"id": f"org/m-{number}", "context_length": 32_000 + number} for number in range(400)))
    async with StandIn(model_list=models) as standin:
        assert (await turnfold(tmp_path, "init", "--upstream", standin.base_url))[0] == 0
    text = (tmp_path / "turnfold.yaml").read_text()
    assert "... and 340 more" in text
    assert len(load(tmp_path / "turnfold.yaml", {}).models) == 60


WRONG = [
    (["--upstream", "localhost:8000"], "a URL that begins with http"),
    (["--upstream", "http://user:secret@127.0.0.1/v1"], "a password in the URL"),
    (["--upstream", "http://127.0.0.1/v1", "--provider", "vlm"], 'did you mean "vllm"'),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG)
async def test_a_mistake_on_the_command_line_is_told_and_nothing_is_written(tmp_path, arguments, says):
    status, said = await turnfold(tmp_path, "init", *arguments)
    assert (status, says in said, "secret" in said) == (1, True, False), said
    assert list(tmp_path.iterdir()) == []


async def test_a_server_that_is_not_there_or_no_server_of_models_gets_no_file(tmp_path):
    [port] = free_ports(1)
    status, said = await turnfold(tmp_path, "init", "--upstream", f"http://127.0.0.1:{port}/v1")
    assert (status, "Traceback" in said) == (1, False), said
    async with StandIn(model_list=fakes.verbatim(200, "<html>")) as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert (status, "with a web page. Is its base URL right?" in said) == (1, True)
    assert list(tmp_path.iterdir()) == []
    async with StandIn(model_list=fakes.verbatim(404, "{}")) as standin:
        status, said = await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        assert (status, "Note: the server lists no models. Is its base URL right?" in said) == (0, True)
    assert load(tmp_path / "turnfold.yaml", {}).models == {}
