"""`turnfold serve` and `turnfold check` as a new user meets them: each mistake is one clear line, never a traceback."""

import asyncio
import glob
import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import orjson
import pytest
import yaml
from structlog.testing import capture_logs

from gateway.command import serving, workers
from gateway.config import load
from tests.running import PATIENCE_S, ROOT, answering, client, configured, free_ports

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@asynccontextmanager
async def started(folder: Path, *arguments: str, blocked: str = ""):
    """Run a command in a folder, with its output kept; ``blocked`` is a package that is not installed there."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if blocked:
        (folder / "absent").mkdir()
        (folder / "absent" / f"{blocked}.py").write_text("raise ImportError(f'No module named {__name__!r}')\n")
        environment["PYTHONPATH"] = f"{folder / 'absent'}:{ROOT}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments, cwd=folder, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run(folder: Path, *arguments: str, blocked: str = "") -> tuple[int, list[str]]:
    """Run a command to its end; return its status and the lines it wrote."""
    async with started(folder, *arguments, blocked=blocked) as process:
        async with asyncio.timeout(PATIENCE_S):
            out, _ = await process.communicate()
        assert b"Traceback" not in out, out.decode()
        return process.returncode or 0, out.decode().splitlines()


UPSTREAMS = "upstreams: {local: {provider: vllm, base_url: 'http://127.0.0.1:9/v1'%s}}\n"
LACKING = {
    "redis": (UPSTREAMS % "" + "store: {url: 'redis://127.0.0.1:1/0'}", "redis", ["store.url", "pip install 'turnfold[redis]'"]),
    "encryption": (
        UPSTREAMS % "" + f"store: {{encryption_key: {'A' * 43}=}}", "cryptography",
        ["store.encryption_key", "pip install 'turnfold[encryption]'"],
    ),
    "semantic": (
        UPSTREAMS % "" + "fold: {recall: {semantic: true}}", "wordllama", ["fold.recall.semantic", "pip install 'turnfold[semantic]'"],
    ),
    "key": (UPSTREAMS % "" + "store: {encryption_key: hunter2}", "", ["store.encryption_key", "32 bytes in base64"]),
    "ca": (UPSTREAMS % ", ca_file: /no/such.pem", "", ["upstreams.local.ca_file: /no/such.pem", "No such file or directory"]),
    "socket in no folder": (UPSTREAMS % "" + "server: {socket: /no/such/s}", "", ["server.socket: /no/such/s", "No such file or directory"]),
    "socket on a file": (UPSTREAMS % "" + "server: {socket: not.pem}", "", ["server.socket: not.pem", "is there already, and is no socket"]),
    "long socket": (UPSTREAMS % "" + f"server: {{socket: {'s' * 200}}}", "", ["server.socket: sss", "path too long"]),
    "pem": (UPSTREAMS % ", ca_file: not.pem", "", ["upstreams.local.ca_file: not.pem", "PEM"]),
}  # fmt: skip


@pytest.mark.parametrize("command", ["serve", "check"])
@pytest.mark.parametrize(("text", "blocked", "told"), LACKING.values(), ids=LACKING)
async def test_what_the_machine_lacks_is_one_line(tmp_path, command, text, blocked, told):
    (tmp_path / "t.yaml").write_text(text)
    (tmp_path / "not.pem").write_text("no certificate")
    arguments = ("serve", "--config", "t.yaml") if command == "serve" else ("check", "t.yaml")
    status, lines = await run(tmp_path, *arguments, blocked=blocked)
    assert status == 1
    assert [line for line in lines if all(word in line for word in ["t.yaml: ", *told])]
    assert len(lines) == (1 if command == "serve" else 2)
    assert "hunter2" not in "".join(lines)


UPSTREAM_MISTAKES = {
    "127.0.0.1:8000/v1": "did you mean http://127.0.0.1:8000/v1?",
    "api.openai.com": "did you mean https://api.openai.com?",
    "htp://x": "begins with http:// or https://",
    "": "begins with http:// or https://",
    "http://": "https:// and names a host\n",
    "me:hunter2@host": "not shown",
}


@pytest.mark.parametrize(("upstream", "told"), UPSTREAM_MISTAKES.items())
async def test_an_upstream_that_is_no_url_is_told(tmp_path, upstream, told):
    status, lines = await run(tmp_path, "serve", "--upstream", upstream, "--port", "0", "--admin-port", "0")
    assert (status, len(lines)) == (1, 1)
    assert lines[0].startswith("turnfold: --upstream: ")
    assert told in f"{lines[0]}\n"
    assert "hunter2" not in lines[0]


MISTAKEN = {
    (): "give --upstream URL or --config FILE, or write a file with `turnfold init --upstream URL`",
    ("--window", "8000"): "--window needs --upstream",
    (
        "--config",
        "none.yaml",
    ): "none.yaml: No such file or directory; `turnfold init --upstream URL` writes a first one",
}


@pytest.mark.parametrize(("arguments", "told"), MISTAKEN.items(), ids=str)
async def test_a_start_with_nothing_to_serve_is_told(tmp_path, arguments, told):
    status, [line] = await run(tmp_path, "serve", *arguments)
    assert status == 1
    assert told in line


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("place", ["server", "admin"])
async def test_a_busy_port_is_told_by_its_setting(tmp_path, standin, place, workers):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = dict(zip(("server", "admin"), free_ports(2), strict=True)) | {place: taken.getsockname()[1]}
        config = {name: {"port": port} for name, port in ports.items()}
        (tmp_path / "t.yaml").write_text(configured(standin, config))
        status, lines = await run(tmp_path, "serve", "--config", "t.yaml", "--workers", str(workers))
        assert status == 1
        assert (
            f"{place}.port: 127.0.0.1:{ports[place]} cannot be bound (Address already in use). Is the gateway running already?"
            in lines[0]
        )
        assert len(lines) == 1 or workers == 2  # the second worker's admin port, one above, may be busy, too
        status, lines = await run(tmp_path, "check", "t.yaml")
        assert status == 0  # whoever serves this file already has its port
        assert f"Note: {place}.port: 127.0.0.1:{ports[place]} cannot be bound" in lines[-1]


async def test_a_busy_admin_port_of_a_later_worker_is_told(tmp_path, standin):
    [port, admin_port, second] = free_ports(3)
    with socket.create_server(("127.0.0.1", second)):
        config = {"server": {"port": port, "workers": 2}, "admin": {"port": admin_port}}
        (tmp_path / "t.yaml").write_text(configured(standin, config))
        status, [line] = await run(tmp_path, "serve", "--config", "t.yaml")
    assert status == 1
    assert f"admin.port: 127.0.0.1:{second} cannot be bound (Address already in use)" in line


async def test_a_worker_does_not_blame_its_supervisor_for_the_client_port(tmp_path, standin):
    [port, admin_port, second] = free_ports(3)
    config = {"server": {"port": port}, "admin": {"port": admin_port}}
    (tmp_path / "t.yaml").write_text(configured(standin, config))
    with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", second)):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            worker = {workers.NUMBER: "1", workers.CHANNEL: str(theirs.fileno()), workers.FOLDER: str(tmp_path)}
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "gateway", "serve", "--config", "t.yaml", cwd=tmp_path, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(ROOT), **worker}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 1
    [line] = [line for line in said.decode().splitlines() if line.startswith("turnfold: ")]
    assert line.startswith(f"turnfold: admin.port: 127.0.0.1:{second} cannot be bound")


async def test_a_temporary_folder_that_is_no_place_for_sockets_is_told(tmp_path, standin, monkeypatch):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    [port, admin_port] = free_ports(2)
    config = {"server": {"port": port, "workers": 2}, "admin": {"port": admin_port}}
    (tmp_path / "t.yaml").write_text(configured(standin, config))
    status, [line] = await run(tmp_path, "serve", "--config", "t.yaml")
    assert status == 1
    assert "set TMPDIR to a short path that can be written" in line
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
async def test_a_host_that_is_no_address_of_this_machine_is_told(tmp_path, host):
    status, lines = await run(
        tmp_path, "serve", "--upstream", "http://127.0.0.1:9/v1", "--host", host, "--port", "9", "--admin-port", "0"
    )
    assert (status, len(lines)) == (1, 1)
    assert lines[0].startswith(f"turnfold: server.host: {host}:9 cannot be bound (")
    assert "choose an address of this machine" in lines[0]


@pytest.mark.parametrize("command", ["serve", "check"])
async def test_a_host_that_is_no_name_is_told(tmp_path, command):
    (tmp_path / "t.yaml").write_text(UPSTREAMS % "" + "server: {host: 127.0.0..1}")
    arguments = ("serve", "--config", "t.yaml") if command == "serve" else ("check", "t.yaml")
    status, [line, *_] = await run(tmp_path, *arguments)
    assert status == 1
    assert line.endswith("t.yaml: server.host: 127.0.0..1 is no address and no name of a host")


USELESS_STORES = [
    ("/proc/none/t.db", "cannot be written", "store_unwritable"),
    ("notes.txt", "is not a database of SQLite", "store_file_is_not_ours"),
]


@pytest.mark.parametrize(("store", "reason", "event"), USELESS_STORES)
async def test_a_useless_store_is_told_and_does_not_keep_the_gateway_from_serving(
    tmp_path, standin, store, reason, event
):
    [port, admin] = free_ports(2)
    (tmp_path / "notes.txt").write_text("These notes are longer than the header of a SQLite file. " * 9)
    path = tmp_path / store  # an absolute path stays what it is
    config = {"server": {"port": port}, "admin": {"port": admin}, "store": {"url": f"sqlite:///{path}"}}
    (tmp_path / "t.yaml").write_text(configured(standin, config))
    status, lines = await run(tmp_path, "check", "t.yaml")
    assert (status, len(lines)) == (1, 2)
    assert f"store.url: {path} {reason}" in lines[0]
    async with started(tmp_path, "serve", "--config", "t.yaml") as process:
        await answering(port, process)
        async with (
            client() as session,
            session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=ASK) as answer,
        ):
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        out = (await process.communicate())[0].decode()
    logged = [line for line in out.splitlines() if "store.url: " in line]
    assert [event in line for line in logged] == [True], out


async def served_model(port: int, model: str) -> str:
    """Ask for a model and return what the gateway did."""
    async with client() as session:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        async with session.post(url, json={**ASK, "model": model}) as answer:
            return answer.headers["x-turnfold-action"]


async def line_with(process: asyncio.subprocess.Process, event: str) -> str:
    """Wait for an event in the log, and return its line."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        while event.encode() not in (line := await process.stdout.readline()):
            assert line, f"the process ended before {event}"
    return line.decode()


@pytest.mark.parametrize("signalled", [True, False], ids=["SIGHUP", "watched"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "found"])
async def test_a_changed_file_is_taken_up_however_it_was_found(tmp_path, standin, named, signalled):
    port, admin = free_ports(2)
    file = tmp_path / "turnfold.yaml"
    text = configured(standin, {"server": {"port": port}, "admin": {"port": admin}, "log": {"format": "json"}})
    file.write_text(text)
    async with started(tmp_path, "serve", *(("--config", str(file)) if named else ())) as process:
        await line_with(process, '"serving"')
        assert await served_model(port, "m") == "none"
        file.write_text(yaml.safe_dump({**yaml.safe_load(text), "fold": {"mode": "observe"}}))
        if signalled:
            process.send_signal(signal.SIGHUP)
        await line_with(process, "configuration_reloaded")
        assert await served_model(port, "m") == "observe"


@pytest.mark.parametrize("setting", ["ca_file", "client_cert"])
async def test_a_changed_file_that_names_a_missing_certificate_is_refused_with_its_setting(tmp_path, standin, setting):
    port, admin = free_ports(2)
    file = tmp_path / "turnfold.yaml"
    text = configured(standin, {"server": {"port": port}, "admin": {"port": admin}, "log": {"format": "json"}})
    file.write_text(text)
    async with started(tmp_path, "serve") as process:
        await line_with(process, '"serving"')
        changed = yaml.safe_load(text)
        changed["upstreams"]["standin"][setting] = "/no/such.pem"
        file.write_text(yaml.safe_dump(changed))
        refused = await line_with(process, "configuration_refused")
        assert f"upstreams.standin.{setting}: /no/such.pem cannot be read" in refused
        assert await served_model(port, "m") == "none"


async def test_a_changed_file_that_needs_a_missing_extra_is_refused(tmp_path, standin):
    port, admin = free_ports(2)
    file = tmp_path / "turnfold.yaml"
    text = configured(standin, {"server": {"port": port}, "admin": {"port": admin}, "log": {"format": "json"}})
    file.write_text(text)
    async with started(tmp_path, "serve", blocked="wordllama") as process:
        await line_with(process, '"serving"')
        semantic = {"mode": "observe", "recall": {"semantic": True}}
        file.write_text(yaml.safe_dump({**yaml.safe_load(text), "fold": semantic}))
        await line_with(process, "configuration_refused")
        assert await served_model(port, "m") == "none"


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_hangup_kills_no_gateway_without_a_file(tmp_path, standin, workers):
    port, admin = free_ports(2)
    arguments = (
        "--upstream",
        standin.base_url,
        "--port",
        str(port),
        "--admin-port",
        str(admin),
        "--log-format",
        "json",
    )
    async with started(tmp_path, "serve", *arguments, "--workers", str(workers)) as process:
        await line_with(process, '"serving"')
        process.send_signal(signal.SIGHUP)
        await line_with(process, "nothing_to_reload")
        assert await served_model(port, "m") == "none"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            await process.communicate()
    assert process.returncode == 0


async def test_a_worker_that_is_replaced_serves_no_file_that_was_cut_short(tmp_path, standin):
    """The other workers refuse such a file while they run. A new one reads it first, and could serve anyone."""
    port, admin = free_ports(2)
    file = tmp_path / "turnfold.yaml"
    kept = {"server": {"port": port, "workers": 2}, "admin": {"port": admin}, "log": {"format": "json"}}
    cut_short = yaml.safe_dump(kept)
    keyed = {**yaml.safe_load(configured(standin, kept)), "keys": {"team-a": {"hash": f"sha256:{'1' * 64}"}}}
    file.write_text(configured(standin, kept))
    async with started(tmp_path, "serve") as process:
        victim = int(orjson.loads(await line_with(process, '"worker_started"'))["pid"])
        for _ in range(2):
            await line_with(process, '"serving"')
        file.write_text(yaml.safe_dump(keyed))
        for _ in range(2):
            await line_with(process, "configuration_reloaded")
        file.write_text(cut_short)
        for _ in range(2):
            await line_with(process, "configuration_refused")
        os.kill(victim, signal.SIGKILL)
        await line_with(process, '"serving"')
        await line_with(process, "configuration_refused")
        for _ in range(4):  # both workers take turns
            async with (
                client() as session,
                session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=ASK) as answer,
            ):
                assert answer.status == 401
                assert (await answer.json())["error"]["code"] == "invalid_api_key"


async def test_a_supervisor_that_is_killed_leaves_no_copy_of_the_configuration_behind(tmp_path, standin, monkeypatch):
    port, admin = free_ports(2)
    config = {"server": {"port": port, "workers": 2}, "admin": {"port": admin}, "log": {"format": "json"}}
    (tmp_path / "turnfold.yaml").write_text(configured(standin, config))
    temporary = Path(tempfile.mkdtemp(prefix="w"))  # a short path, for the sockets in it
    monkeypatch.setenv("TMPDIR", str(temporary))
    try:
        async with started(tmp_path, "serve") as process:
            for _ in range(2):
                await line_with(process, '"serving"')
            assert glob.glob(f"{temporary}/turnfold-*/*")
            process.kill()
            await asyncio.wait_for(
                process.communicate(), PATIENCE_S
            )  # the workers have its output until they have ended
            assert not glob.glob(f"{temporary}/turnfold-*/*")
    finally:
        shutil.rmtree(temporary)


@pytest.mark.parametrize("broken", ["upstreams: [", None], ids=["no YAML", "gone"])
async def test_workers_that_are_replaced_while_the_file_is_broken_serve_as_before(tmp_path, standin, broken):
    """They stayed down until the file was repaired, and with the last of them the whole gateway."""
    port, admin = free_ports(2)
    file, keys = tmp_path / "turnfold.yaml", tmp_path / "keys.yaml"
    server = {"port": port, "workers": 2, "keys_file": "keys.yaml"}
    config = {"server": server, "admin": {"port": admin}, "log": {"format": "json"}, "fold": {"mode": "observe"}}
    file.write_text(configured(standin, config))
    keys.write_text(yaml.safe_dump({"keys": {"team-a": {"hash": f"sha256:{sha256(b'secret').hexdigest()}"}}}))
    async with started(tmp_path, "serve") as process:
        victims = [orjson.loads(await line_with(process, '"worker_started"'))["pid"] for _ in range(2)]
        for _ in victims:
            await line_with(process, '"serving"')
        for each in (file, keys):
            each.write_text(broken) if broken else each.unlink()
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        for _ in victims:
            await line_with(process, '"serving"')
        for key, status in (("secret", 200), ("other", 401)):
            url, headers = f"http://127.0.0.1:{port}/v1/chat/completions", {"authorization": f"Bearer {key}"}
            async with client() as session, session.post(url, json=ASK, headers=headers) as answer:
                assert answer.status == status
                assert status == 401 or answer.headers["x-turnfold-action"] == "observe"


def test_settings_that_cannot_be_kept_for_later_workers_are_served_all_the_same(tmp_path, monkeypatch):
    """The temporary folder is full: a removed key must not wait until it has room."""
    file = tmp_path / "turnfold.yaml"
    file.write_text("fold: {mode: observe}")
    monkeypatch.setenv(workers.NUMBER, "0")
    monkeypatch.setenv(workers.FOLDER, str(tmp_path / "cannot be written"))
    settings = load(file, {})
    with capture_logs() as logs:
        serving._keep(file, settings, settings)
    assert [line["event"] for line in logs] == ["configuration_not_kept"]


async def test_a_worker_that_is_replaced_is_held_to_the_address_that_its_supervisor_listens_on(tmp_path, standin):
    """A key of an upstream is refused where strangers reach the port, whatever address a changed file names."""
    port, admin = free_ports(2)
    file = tmp_path / "turnfold.yaml"
    server = {"port": port, "workers": 2}
    rest = {"admin": {"port": admin}, "log": {"format": "json"}}
    file.write_text(configured(standin, {"server": {**server, "host": "127.0.0.1"}, **rest}))
    async with started(tmp_path, "serve") as process:
        victim = int(orjson.loads(await line_with(process, '"worker_started"'))["pid"])
        urls = [orjson.loads(await line_with(process, '"serving"'))["url"] for _ in range(2)]
        file.write_text(configured(standin, {"server": {**server, "host": "127.0.0.2"}, **rest}))
        for _ in range(2):
            await line_with(process, "restart_needed")
        os.kill(victim, signal.SIGKILL)
        urls.append(orjson.loads(await line_with(process, '"serving"'))["url"])
    assert set(urls) == {f"http://127.0.0.1:{port}/v1"}


NUMBERS = [
    ("--window", "100", "100 is not a number of tokens, 256 or more, such as 128000."),
    ("--window", "8k", "8k is not a number of tokens, 256 or more, such as 128000."),
    ("--port", "70000", "70000 is not a port number from 0 to 65535 (0: any free one)."),
    ("--workers", "0", "0 is not a number of processes, 1 to 256."),
]


@pytest.mark.parametrize(("option", "value", "says"), NUMBERS)
async def test_a_wrong_number_on_the_command_line_is_told_in_words(tmp_path, option, value, says):
    status, lines = await run(tmp_path, "serve", "--upstream", "http://127.0.0.1:9/v1", option, value)
    assert status == 2
    assert lines[-1] == f"Error: Invalid value for '{option}': {says}"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--port", "8788"), "admin.port: is also server.port (8788)."),
        (
            ("--port", "8789", "--workers", "2"),
            "admin.port: is 8788 to 8789, one for each of 2 workers, and server.port (8789) is one of them.",
        ),
    ],
)
async def test_ports_that_are_one_are_told_in_words(tmp_path, options, says):
    status, lines = await run(
        tmp_path, "serve", "--upstream", "http://127.0.0.1:9/v1", "--admin-port", "8788", *options
    )
    assert status == 1
    assert lines == [f"turnfold: {says}"]


async def test_a_base_url_that_goes_on_to_an_endpoint_is_told_at_the_start(tmp_path):
    [port, admin] = free_ports(2)
    url = "http://127.0.0.1:9/v1/chat/completions"
    async with started(
        tmp_path, "serve", "--upstream", url, "--port", str(port), "--admin-port", str(admin)
    ) as process:
        async with asyncio.timeout(PATIENCE_S):
            told = (await process.stdout.readline()).decode()
    assert "base_url_names_endpoint" in told
    assert "write http://127.0.0.1:9/v1" in told
