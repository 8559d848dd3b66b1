"""`turnfold keys`: a key is shown once and kept as its hash, in a file of its own that is written whole."""

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from hashlib import sha256

import pytest
import yaml
from click.testing import CliRunner

from gateway.command import keys as commands
from gateway.command.cli import main
from gateway.config import load

CONFIG = "server: {keys_file: k.yaml}\nupstreams: {u: {provider: vllm, base_url: 'http://127.0.0.1:9/v1'}}\n"


@pytest.fixture
def run(tmp_path):
    """Run `turnfold keys ...` in a folder with a configuration."""
    config = tmp_path / "turnfold.yaml"
    config.write_text(CONFIG)

    def run(*arguments):
        return CliRunner().invoke(main, ["keys", *arguments, "--config", str(config)])

    return run


def test_a_key_is_shown_once_and_kept_as_its_hash(run, tmp_path):
    done = run("add", "alice", "--models", "gpt-4o*", "--models", "o3", "--rpm", "60", "--tpm", "9000", "--mode", "enforce",
               "--expires", "2999-01-31")  # fmt: skip
    assert done.exit_code == 0, done.output
    key = re.search(r"^tfk_\S{43}$", done.stdout, re.MULTILINE)[0]
    assert done.stderr == "The key of alice, shown only this once; running gateways accept it within seconds:\n"
    text = (tmp_path / "k.yaml").read_text()
    assert key not in text
    found = load(tmp_path / "turnfold.yaml", {}).keys["alice"]
    assert found.hash == f"sha256:{sha256(key.encode()).hexdigest()}"
    assert (found.models, found.rpm, found.tpm, found.modes) == (("gpt-4o*", "o3"), 60, 9000, ("enforce",))
    assert found.expires == datetime(2999, 1, 31, tzinfo=UTC).timestamp()
    assert stat.S_IMODE((tmp_path / "k.yaml").stat().st_mode) == 0o600


def test_no_two_keys_are_alike(run):
    shown = {run("add", f"k{number}").stdout.splitlines()[-1] for number in range(20)}
    assert len(shown) == 20


def test_keys_are_listed_without_anything_of_them(run, tmp_path):
    shown = run("add", "alice", "--expires", "2999-01-31", "--rpm", "5").stdout
    file = tmp_path / "k.yaml"
    file.write_text(file.read_text().replace("2999", "2020"))
    listed = run("list").stdout
    assert re.search(r"alice +all +all +5 +- +2020-01-31T00:00:00Z \(expired\)", listed)
    assert shown.splitlines()[-1] not in listed


def test_a_removed_key_is_gone_and_the_others_stay(run, tmp_path):
    run("add", "alice"), run("add", "bob")
    assert run("remove", "alice").exit_code == 0
    assert list(load(tmp_path / "turnfold.yaml", {}).keys) == ["bob"]
    assert run("remove", "bob").exit_code == 0
    settings = load(tmp_path / "turnfold.yaml", {})
    assert settings.asks_for_keys, "removing the last key opens nothing"


REFUSED = [
    (["add", "al ice"], "is no name for a key"),
    (["add", "../x"], "is no name for a key"),
    (["add", "taken"], "has a key already"),
    (["add", "new", "--expires", "soon"], '"soon" is not a date'),
    (["add", "new", "--expires", "9999999d"], '"9999999d" is not a date'),
    (["add", "new", "--expires", f"{'9' * 400}d"], "is not a date"),
    (["add", "new", "--expires", "9999-12-31T23:59:59-14:00"], "is not a date"),
    (["add", "new", "--expires", "0d"], "is past: the key would be refused from the start"),
    (["add", "new", "--expires", "2020-01-31"], '"2020-01-31" is past: the key would be refused from the start'),
    (["add", "new", "--address", "10.0.0.0/99"], '--address: "10.0.0.0/99" is not an address or a network'),
    (["remove", "nobody"], "has no key in this file; it has: taken"),
]


@pytest.mark.parametrize(
    ("arguments", "says"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_mistake_is_told_and_changes_nothing(run, tmp_path, arguments, says):
    run("add", "taken")
    before = (tmp_path / "k.yaml").read_text()
    done = run(*arguments)
    assert done.exit_code == 1
    assert says in done.stderr
    assert (tmp_path / "k.yaml").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.yaml", "turnfold.yaml"]


def test_without_a_place_for_keys_the_line_to_write_is_told(run, tmp_path):
    (tmp_path / "turnfold.yaml").write_text(CONFIG.partition("\n")[2])
    done = run("add", "alice")
    assert done.exit_code == 1
    assert "put `keys_file: turnfold.keys.yaml` under `server:`" in done.stderr


def test_a_broken_keys_file_is_not_written_over(run, tmp_path):
    (tmp_path / "k.yaml").write_text("keys: {alice: {hash: 12}}")
    done = run("add", "bob")
    assert done.exit_code == 1
    assert "keys.alice.hash" in done.stderr
    assert (tmp_path / "k.yaml").read_text() == "keys: {alice: {hash: 12}}"


def test_a_keys_file_that_is_no_text_is_told_in_words(run, tmp_path):
    (tmp_path / "k.yaml").write_bytes(b"keys: \xff")
    assert "k.yaml: server.keys_file is not UTF-8 text (byte 6)" in run("list").stderr


@pytest.mark.parametrize("only_print", [(), ("--print",)])
def test_a_network_that_is_none_is_named_by_its_option(run, tmp_path, only_print):
    done = run("add", "alice", "--address", "10.0.0.1/8", *only_print)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith('--address: "10.0.0.1/8" is not an address or a network')
    assert "did you mean 10.0.0.0/8?" in done.stderr
    assert not (tmp_path / "k.yaml").exists()


def test_a_printed_entry_is_one_that_the_configuration_takes(run, tmp_path):
    done = run("add", "alice", "--print", "--rpm", "5")
    assert done.exit_code == 0
    printed = yaml.safe_load(done.stdout)
    assert not (tmp_path / "k.yaml").exists()
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(yaml.safe_load(CONFIG.partition("\n")[2]) | printed))
    assert load(tmp_path / "own.yaml", {}).keys["alice"].rpm == 5
    assert "tfk_" in done.stderr
    assert "tfk_" not in done.stdout


def test_many_who_add_at_once_lose_no_key(tmp_path):
    config = tmp_path / "turnfold.yaml"
    config.write_text(CONFIG)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda number: commands.add(config, f"k{number}", {}), range(16)))
    assert statuses == [0] * 16
    assert len(load(config, {}).keys) == 16


def test_a_file_that_is_there_keeps_its_mode(run, tmp_path):
    run("add", "alice")
    (tmp_path / "k.yaml").chmod(0o640)
    run("add", "bob")
    assert stat.S_IMODE((tmp_path / "k.yaml").stat().st_mode) == 0o640


def test_a_list_says_its_units_and_how_to_begin(run):
    run("add", "bob"), run("remove", "bob")
    assert run("list").stdout == "No client keys. `turnfold keys add NAME` makes one.\n"
    run("add", "alice", "--rpm", "60", "--tpm", "2000000")
    head, row = run("list").stdout.splitlines()
    assert head.split()[3:5] == ["requests/min", "tokens/min"]
    assert row.split()[3:5] == ["60", "2,000,000"]
