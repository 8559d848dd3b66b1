"""One declaration of every setting, and what follows from it: the YAML file, the documentation, the JSON Schema."""

import ast
from functools import cache

import jsonschema
import orjson
import pytest
import yaml
from click.testing import CliRunner

from gateway.command.cli import main
from gateway.config import SettingsError, parse
from gateway.config.generated import json_schema, with_tables, yaml_file
from gateway.config.kinds import write_duration, write_size
from gateway.config.schema import SECTIONS, SETTINGS
from gateway.config.sections import default_of, owner_of
from tests.running import ROOT

# Turned into something else while the file is read; `gateway/config/loading.py` reads them.
READ_WHILE_READING = {"default_upstream", "models.*.upstream", "models.*.upstreams"}
# What the program calls the values of each class; a local name for one section is also a holder.
HOLDERS = {
    "Server": {"server", "limits"},
    "Admin": {"admin"},
    "StoreSettings": {"store", "settings", "chosen"},
    "Log": {"log", "settings"},
    "Observe": {"observe", "chosen"},
    "Upstream": {"upstream", "upstreams", "found", "configured"},
    "SummarySettings": {"summary", "settings", "chosen"},
    "Fold": {"fold", "route"},
    "Defaults": {"defaults", "settings"},
    "Model": {"entry", "model", "route", "models"},
    "Policy": {"policy", "fold"},
    "ClientKey": {"key", "client", "found", "keys"},
}

UPSTREAM = "upstreams: {u: {provider: vllm, base_url: http://h/v1, %s}}"


@cache
def attributes_read() -> frozenset[tuple[str, str]]:
    """Return the attributes that the program reads outside the reader of the configuration, with their holders."""
    files = [path for path in (ROOT / "gateway").rglob("*.py") if path.parent.name != "config"]
    files += [ROOT / "gateway" / "config" / name for name in ("settings.py", "values.py", "exposure.py")]
    trees = (ast.walk(ast.parse(path.read_text("utf-8"))) for path in files)
    return frozenset(
        (holder_of(node.value), node.attr)
        for tree in trees
        for node in tree
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def holder_of(value: ast.expr) -> str:
    """Return the last name of an expression: ``fold`` of ``route.fold``, ``upstreams`` of ``settings.upstreams[name]``."""
    if isinstance(value, ast.Subscript):
        return holder_of(value.value)
    return value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_every_setting_is_read_by_the_program(setting):
    if setting.path in READ_WHILE_READING:
        return
    owner = owner_of(setting)
    assert owner is not None
    assert any((holder, setting.name) in attributes_read() for holder in HOLDERS[owner.__name__])


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_every_setting_has_an_attribute_that_holds_it(setting):
    assert owner_of(setting) or setting.path in READ_WHILE_READING


def test_the_yaml_file_is_up_to_date():
    assert (ROOT / "config" / "turnfold.yaml").read_text("utf-8") == yaml_file(), "run `make settings`"


def test_the_documentation_is_up_to_date():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert page == with_tables(page), "run `make settings`"


@pytest.mark.parametrize("section", SECTIONS)
def test_the_documentation_has_every_section(section):
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert f"\n## {section}\n" in page or f"`{section}` names" in page


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_default_written_into_the_file_means_the_same(setting):
    if (default := default_of(setting)) is None:
        return
    *section, key = setting.path.replace("*", "u").split(".")
    document = value = {"upstreams": {"u": {"provider": "vllm", "base_url": "http://h/v1"}}, "models": {"u": {}}}
    document["keys"] = {"u": {"hash": f"sha256:{'0' * 64}"}}
    bare = parse(yaml.safe_dump(document), {})
    for part in section:
        value = value.setdefault(part, {})
    value[key] = "WRITTEN"
    assert parse(yaml.safe_dump(document).replace("WRITTEN", setting.kind.write(default)), {}) == bare


def test_every_line_of_the_file_that_is_commented_out_is_right():
    text = (
        yaml_file()
        .replace("  # Every key of an upstream", "  every:\n#")
        .replace("  # Every key of a model", "  any:\n#")
        .replace("  # Every key of an entry", "  any:\n#")
    )
    uncommented = "\n".join(
        line.replace("  # ", "  ", 1) if line.startswith("  # ") else line for line in text.splitlines()
    )
    settings = parse(uncommented, {})
    assert {"openai", "local", "every"} <= settings.upstreams.keys()
    assert settings.route("small").on_overflow == ("gpt-4o",)


def test_the_schema_is_a_json_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_schema_takes_the_file_as_it_comes():
    jsonschema.validate(yaml.safe_load(yaml_file()), json_schema())


AGREED = [
    "server: {port: 99999}",
    "server: {prt: 1}",
    "server: {preload: often}",
    "server: {max_body: 64}",
    "server: {shutdown_grace: 30 sec}",
    "admin: {token: {a: b}}",
    "store: {url: 'sqlite:turnfold.db'}",
    "log: {level: warn}",
    "fold: {mode: of}",
    "fold: {low_water: 60}",
    "fold: {max_turns: 0}",
    "fold: {summary: {upstrem: a}}",
    "models: {a: {context_window: 128k}}",
    "models: {a: {fold: {low_water: 2}}}",
    "models: {a: {recall: {share: 2}}}",
    "upstreams: {x: {base_url: 'http://x'}}",
    "upstreams: {x: {provider: vllm, base_url: x/v1}}",
    UPSTREAM % "verify: maybe",
    "nonsense: 1",
]


@pytest.mark.parametrize("text", AGREED)
def test_the_schema_and_the_reader_refuse_the_same(text):
    with pytest.raises(SettingsError):
        parse(text, {})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), json_schema())


ACCEPTED = [
    "",
    "server: {port: '${PORT:-1}', preload: 'yes', max_body: 10 MB, keep_alive: 1.5s}",
    "fold: {mode: off, low_water: 1, recall: {share: 0}}",
    "models: {a: {mode: observe, fold: {max_turns: 3}, recall: {share: 0.1}, on_overflow: b}, 'c*': null}",
    UPSTREAM % "headers: {a: 1, b: x}, fallbacks: null, verify: false",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_the_schema_and_the_reader_accept_the_same(text):
    parse(text, {})
    jsonschema.validate(yaml.safe_load(text) or {}, json_schema())


@pytest.mark.parametrize("spelling", ["true", "yes", "on", "True", "YES", "On", "'yes'", "false", "no", "off", "NO"])
def test_every_boolean_takes_every_spelling_of_yaml(spelling):
    meant = spelling.strip("'").lower() in ("true", "yes", "on")
    assert parse(f"server: {{preload: {spelling}}}", {}).server.preload is meant
    assert parse(UPSTREAM % f"verify: {spelling}", {}).upstreams["u"].verify is meant


def test_the_command_prints_the_schema():
    printed = CliRunner().invoke(main, ["schema"])
    assert (printed.exit_code, orjson.loads(printed.output)) == (0, json_schema())


SIZES = [(0, "0B"), (1, "1B"), (1024, "1KiB"), (64 * 2**20, "64MiB"), (2**30, "1GiB"), (2**20 + 1, "1048577B")]
DURATIONS = [(0.05, "50ms"), (1, "1s"), (75, "75s"), (600, "600s"), (3600, "1h"), (5400, "5400s"), (30 * 86400, "30d")]


@pytest.mark.parametrize(("value", "said"), SIZES)
def test_a_size_is_written_with_the_largest_unit_that_divides_it(value, said):
    assert write_size(value) == said


@pytest.mark.parametrize(("value", "said"), DURATIONS)
def test_a_duration_is_written_with_a_unit_that_reads_well(value, said):
    assert write_duration(value) == said
