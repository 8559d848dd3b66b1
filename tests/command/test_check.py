"""`turnfold check`: windows that do not grow are mistakes, `--model` names the source of each value, `--live` asks the upstreams."""

import asyncio
import re
import sqlite3
from contextlib import closing

import orjson
import pytest
from click.testing import CliRunner

from gateway.command.cli import WINDOW, main
from gateway.config import SettingsError, parse
from gateway.config.kinds import LEAST_WINDOW
from gateway.config.readers import LARGEST
from gateway.context.choose import embedding
from gateway.standin import Raw, StandIn
from gateway.state.store.sqlite import SCHEMA
from gateway.wire.message import dumps
from tests import fakes
from tests.context.choose.paraphrase import WITH_EXTRA

UPSTREAM = "upstreams: {u: {provider: openai, base_url: 'http://127.0.0.1:9/v1'}, v: {provider: vllm, base_url: 'http://127.0.0.1:9/v1'}}\n"
HEAD = UPSTREAM + "default_upstream: u\nstore: {url: 'memory://'}\nserver: {port: 0}\nadmin: {port: 0}\n"

CHAINS = [
    ("small: {context_window: 8192, on_overflow: [large]}, large: {context_window: 16384}", ""),
    ("small: {context_window: 8192, on_overflow: [large]}, large: {context_window: 8192}", "not more than the 8192 of small"),
    ("a: {context_window: 900, on_overflow: [b, c]}, b: {context_window: 999}, c: {context_window: 998}", "not more than the 999 of b"),
    ("a: {context_window: 9999999, on_overflow: [gpt-4o]}", "a window of 128000 tokens"),
    ("a: {context_window: 900, on_overflow: [nobody-knows, b]}, b: {context_window: 800}", "not more than the 900 of a"),
    ("a: {on_overflow: [b]}, b: {context_window: 800}", ""),
    ("'a*': {context_window: 900, on_overflow: [b]}, b: {context_window: 800}", ""),
]  # fmt: skip


@pytest.mark.parametrize(("models", "says"), CHAINS)
def test_windows_that_do_not_grow_along_on_overflow_are_mistakes(models, says):
    text = HEAD + f"models: {{{models}}}"
    if not says:
        parse(text, {})
        return
    with pytest.raises(SettingsError, match=says):
        parse(text, {})


def test_the_command_line_and_the_file_take_the_same_windows():
    assert (WINDOW.min, WINDOW.max) == (LEAST_WINDOW, LARGEST)


def checked(folder, text, *options):
    file = folder / "t.yaml"
    file.write_text(text)
    return CliRunner().invoke(main, ["check", str(file), *options])


def test_the_file_of_the_current_folder_is_checked_if_none_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turnfold.yaml").write_text(HEAD)
    done = CliRunner().invoke(main, ["check"])
    assert (done.exit_code, done.output.splitlines()[0]) == (0, "turnfold.yaml: all right")


def test_each_value_of_a_model_is_told_with_its_source(tmp_path):
    text = HEAD + (
        "models: {fast: {name: llama-3, low_water: 0.5}, 'llama-*': {upstream: v, context_window: 8192, mode: observe}}\n"
        "fold: {margin: 0.1}"
    )
    done = checked(tmp_path, text, "--model", "fast")
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: re.split(r"  +", line) for line in done.output.splitlines()}
    assert rows["name"][1:] == ["llama-3", "models.fast"]
    assert rows["upstream"][1:] == ["v", "models.llama-*"]
    assert rows["context_window"][1:] == ["8192", "models.llama-*"]
    assert rows["fold.mode"][1:] == ["observe", "models.llama-*"]
    assert rows["fold.low_water"][1:] == ["0.5", "models.fast"]
    assert rows["fold.margin"][1:] == ["0.1", "fold"]
    assert rows["fold.cache.marks"][1:] == ["auto", "default"], "a name is the setting's path in the file"


def test_a_model_that_is_not_configured_has_the_catalogues_window(tmp_path):
    assert re.search(r"context_window +128000 +the catalogue", checked(tmp_path, HEAD, "--model", "gpt-4o").output)


async def live(folder, base_url, key=""):
    text = f"upstreams: {{u: {{provider: openai, base_url: '{base_url}', api_key: '{key}'}}}}\nstore: {{url: 'memory://'}}\n"
    return await asyncio.to_thread(checked, folder, text, "--live")


async def test_check_calls_every_upstream(tmp_path):
    async with StandIn() as standin:
        done = await live(tmp_path, standin.base_url)
        assert done.exit_code == 0, done.output
        assert "upstreams.u: is there, with" in done.output


ANSWERS = [
    (401, "k-configured", 1, "does not accept the configured key"),
    (401, "", 0, "asks for a key"),
    (404, "", 0, "lists no models (status 404). Is its base URL right?"),
    (500, "", 1, "with status 500"),
]


@pytest.mark.parametrize(("status", "key", "code", "says"), ANSWERS)
async def test_what_an_upstream_answers_is_told(tmp_path, status, key, code, says):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}" % status)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        done = await live(tmp_path, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", key)
    assert done.exit_code == code
    assert says in done.output
    assert "k-configured" not in done.output


async def test_an_answer_that_breaks_off_is_told_in_words(tmp_path):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        done = await live(tmp_path, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert done.exit_code == 1
    assert "upstreams.u: does not answer: it broke off in the middle of its answer" in done.output


async def test_an_upstream_that_is_not_there_is_told(tmp_path):
    done = await live(tmp_path, "http://127.0.0.1:9/v1")
    assert done.exit_code == 1
    assert "could not be reached: the connection was refused" in done.output


def test_explain_takes_an_upstream_and_a_window(tmp_path):
    request = tmp_path / "r.json"
    request.write_bytes(orjson.dumps({"model": "m", "messages": fakes.chat(40)}))
    done = CliRunner().invoke(
        main, ["explain", str(request), "--upstream", "http://h/v1", "--window", "2000", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert '"window": 2000' in done.output
    wrong = CliRunner().invoke(main, ["explain", str(request), "--upstream", "h/v1"])
    assert wrong.exit_code == 2
    assert "--upstream: the value is not a URL" in wrong.output


def test_explain_shows_text_that_steers_no_terminal_and_is_no_markup(tmp_path):
    """A request may come from anyone, such as from a log."""
    odd = "x\x1b]0;title\x07\x1b[2J[/bold][/nope]\u202egnp"
    request = tmp_path / "r.json"
    request.write_bytes(orjson.dumps({"model": odd, "messages": [fakes.user(f"{odd}\nrow"), *fakes.chat(60)[1:]]}))
    done = CliRunner().invoke(main, ["explain", str(request), "--window", "2000"])
    assert done.exit_code == 0, done.output
    assert done.output.count("[/nope]") >= 2
    assert all(sign.isprintable() or sign == "\n" for sign in done.output)


def test_explain_writes_json_of_a_message_of_any_depth(tmp_path):
    call = {"type": "tool_use", "id": "c", "name": "f", "input": orjson.loads('{"a":' * 300 + "1" + "}" * 300)}
    messages = [
        fakes.user("word " * 3000),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]},
    ]
    request = tmp_path / "r.json"
    request.write_bytes(dumps({"model": "m", "max_tokens": 9, "messages": messages}))
    done = CliRunner().invoke(main, ["explain", str(request), "--window", "2000", "--json"])
    assert done.exit_code == 0, done.output
    assert orjson.loads(done.output)["action"] == "fold"


SEMANTIC = [
    ("fold: {recall: {semantic: true}}", "fold"),
    ("models: {a: {recall: {semantic: true}}, b: {}}", "models.a"),
]


@pytest.mark.parametrize(("text", "place"), SEMANTIC)
def test_questions_by_meaning_without_the_extra_are_a_mistake_that_names_it(tmp_path, monkeypatch, text, place):
    monkeypatch.setattr(embedding, "find_spec", lambda name: None if name == "wordllama" else "found")

    done = checked(tmp_path, HEAD + text)

    assert done.exit_code == 1
    assert f"t.yaml: {place}.recall.semantic: needs wordllama: pip install 'turnfold[semantic]'" in done.output.replace(
        "\n", ""
    )
    assert checked(tmp_path, HEAD).exit_code == 0


@WITH_EXTRA
def test_vectors_that_cannot_be_read_are_a_mistake(tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "load", lambda: None)

    done = checked(tmp_path, HEAD + SEMANTIC[0][0])

    assert done.exit_code == 1
    assert "the vectors of the installed wordllama cannot be read" in done.output.replace("\n", "")


@WITH_EXTRA
@pytest.mark.parametrize(("text", "place"), SEMANTIC)
def test_with_the_extra_questions_by_meaning_are_all_right(tmp_path, text, place):
    done = checked(tmp_path, HEAD + text)

    assert done.exit_code == 0, done.output
    assert ("by words and meaning" in done.output) is (place == "fold")


@pytest.mark.parametrize(
    ("raw", "status", "told"),
    [
        (b'\xef\xbb\xbf{"messages":[{"role":"user","content":"hi"}]}', 0, "fits"),
        (b'{"messages":\n[}', 2, "(line 2, column 2: "),
        (b"[]", 2, "or input\n"),
    ],
)
def test_a_request_that_is_no_json_is_told_by_its_place(tmp_path, raw, status, told):
    request = tmp_path / "request.json"
    request.write_bytes(raw)

    found = CliRunner().invoke(main, ["explain", str(request), "--window", "2000"])

    assert (found.exit_code, told in found.output) == (status, True), found.output


def test_a_password_in_a_url_that_nobody_sends_is_told(tmp_path):
    done = checked(tmp_path, HEAD.replace("http://127.0.0.1:9/v1", "http://me:hidden@127.0.0.1:9/v1", 1))
    assert done.exit_code == 0, done.output
    assert "Note: upstreams.u.base_url: the name and the password in it are not sent" in done.output
    assert "upstreams.v.base_url" not in done.output
    assert "hidden" not in done.output


def test_a_model_without_an_entry_gets_the_names_of_the_file(tmp_path):
    text = HEAD + "models: {gpt-4o-mini: {context_window: 8000}, 'llama-*': {upstream: v}}"
    done = checked(tmp_path, text, "--model", "gtp-4o-mini")
    assert done.exit_code == 0
    note = (
        'Note: no entry under models is for "gtp-4o-mini"; did you mean gpt-4o-mini? The file has: gpt-4o-mini, llama-*'
    )
    assert done.output.splitlines()[-1] == note
    assert "Note" not in checked(tmp_path, text, "--model", "llama-3").output
    assert "Note" not in checked(tmp_path, HEAD, "--model", "gtp-4o-mini").output, "a file without models names none"


@pytest.mark.parametrize("end", ["/v1/chat/completions", "/v1/responses/", "/v1/messages", "/v1/models"])
def test_a_base_url_that_goes_on_to_an_endpoint_is_told(tmp_path, end):
    done = checked(tmp_path, HEAD.replace(":9/v1'}, v", f":9{end}'}}, v"))
    assert done.exit_code == 0, done.output
    endpoint = end.removeprefix("/v1").rstrip("/")
    assert f"Note: upstreams.u.base_url: ends in the endpoint {endpoint}, and" in done.output
    assert "write http://127.0.0.1:9/v1\n" in done.output
    assert "upstreams.v" not in done.output


PAGE = b"<!doctype html><html><body>Welcome to nginx</body></html>"
NO_LISTS = [(PAGE, "a web page"), (b'{"status": "ok"}', "something else than a list of models")]


@pytest.mark.parametrize(("body", "kind"), NO_LISTS)
async def test_an_answer_that_is_no_list_of_models_is_told(tmp_path, body, kind):
    async with StandIn(model_list=Raw(chunks=(body,), headers={"content-type": "text/html"})) as standin:
        done = await live(tmp_path, standin.base_url)
    assert done.exit_code == 1
    assert f"upstreams.u: answers GET /models with {kind}. Is its base URL right? It often ends in /v1" in done.output


def database(file, kind):
    """Make the file of a store: another program's database, a text, an empty file, or one of ours."""
    if kind == "a text":
        file.write_text("no database, but longer than the hundred bytes of a head of SQLite. " * 9)
    elif kind == "empty":
        file.touch()
    else:
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript("CREATE TABLE t (a);" if kind == "another program's" else SCHEMA)


FILES = [
    ("another program's", "is a database of another program"),
    ("a text", "is not a database of SQLite"),
    ("empty", ""),
    ("ours", ""),
]


@pytest.mark.parametrize("name", ["s.db", "s-records.db"])
@pytest.mark.parametrize(("kind", "says"), FILES)
def test_a_store_file_of_another_program_is_told_and_left_alone(tmp_path, kind, says, name):
    database(tmp_path / name, kind)
    before = (tmp_path / name).read_bytes()
    done = checked(tmp_path, HEAD.replace("memory://", f"sqlite:///{tmp_path}/s.db"))
    assert (done.exit_code, (tmp_path / name).read_bytes()) == (1 if says else 0, before)
    assert not says or f"store.url: {tmp_path}/{name} {says}; nothing will be remembered" in done.output
    assert {file.name for file in tmp_path.iterdir()} == {name, "t.yaml"}


def test_a_redis_that_does_not_answer_is_told(tmp_path):
    pytest.importorskip("redis")
    done = checked(tmp_path, HEAD.replace("memory://", "redis://:hunter2@127.0.0.1:1/0"))
    assert done.exit_code == 0, "it may be reachable from where the gateway will run"
    assert "Note: store.url: the server does not answer (ConnectionError)" in done.output
    assert "hunter2" not in done.output
