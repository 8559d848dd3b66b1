"""Turn the configuration file into `Settings`, or into the list of all its problems."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.config import readers as read
from gateway.config.conflicts import check_keys, report_conflicts
from gateway.config.document import DocumentReading, compose
from gateway.config.sections import FILE, FOLD_KEYS, owner_of, under
from gateway.config.settings import Settings
from gateway.config.values import (
    Admin,
    ClientKey,
    Defaults,
    Fold,
    Log,
    Model,
    Observe,
    Server,
    StoreSettings,
    Upstream,
)
from gateway.context.cut.policy import Policy

OPENAI: Final = Upstream("openai", "openai", "https://api.openai.com/v1")
"""The upstream when none is configured."""
LOSSES: Final = {
    "upstreams": f"none is named any more, so all requests would go to {OPENAI.base_url}",
    "keys": "none is left, and no server.keys_file is named, so everyone would be served",
}
"""What it means that a part of the configuration is gone; see `parts_to_keep`."""


class SettingsError(Exception):
    """The configuration is wrong; ``problems`` lists all places and reasons. The operator can repair it."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def load(path: str | Path, environ: Mapping[str, str]) -> Settings:
    """Read a configuration file."""
    settings = parse(_text_of(path), environ, str(path))
    if not settings.server.keys_file:
        return settings
    return with_key_file(settings, key_file(path, settings))


def _text_of(path: str | Path) -> str:
    """Return the text of a configuration file. Raises SettingsError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SettingsError([f"{path}: {error.strerror}; `turnfold init --upstream URL` writes a first one"]) from error
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{path}: not UTF-8 text (byte {error.start})"]) from None


class Copy(msgspec.Struct, frozen=True):
    """The texts of a configuration: of its file, and of its file with client keys."""

    configuration: str
    keys: str = ""


def copy_of(path: str | Path, settings: Settings) -> Copy:
    """Return a copy of a configuration file with these settings. Raises SettingsError."""
    keys = _text_of_keys(key_file(path, settings)) if settings.server.keys_file else ""
    return Copy(_text_of(path), keys)


def load_copy(copy: Copy, path: str | Path, environ: Mapping[str, str]) -> Settings:
    """Read a copy of the configuration file at ``path``. Raises SettingsError."""
    settings = parse(copy.configuration, environ, str(path))
    if not settings.server.keys_file:
        return settings
    return with_keys(settings, copy.keys, str(key_file(path, settings)))


def key_file(path: str | Path, settings: Settings) -> Path:
    """Return the path of ``server.keys_file``. A relative path starts at the folder of the configuration file ``path``."""
    return Path(path).absolute().parent / settings.server.keys_file


def parts_to_keep(settings: Settings) -> list[str]:
    """Return the parts of a configuration that a running gateway must not lose by a changed file: ``upstreams``, ``keys``, or both.

    A file that was emptied, or cut short on a full disk, is valid and means the defaults: everyone would be served, and
    the clients' keys and words would go to another server.
    """
    names_upstreams = settings.upstreams.get(OPENAI.name) is not OPENAI
    present = {"upstreams": names_upstreams, "keys": settings.asks_for_keys}
    return [part for part in LOSSES if present[part]]


def losses(kept: Iterable[str], settings: Settings) -> list[str]:
    """Return a problem for each of these parts, as `parts_to_keep` returns them, that settings do not have any more."""
    left = parts_to_keep(settings)
    return [f"{part}: {LOSSES[part]}; if this is wanted, restart the gateway" for part in kept if part not in left]


def with_key_file(settings: Settings, file: Path) -> Settings:
    """Return the settings with the client keys of a file added. Raises SettingsError."""
    return with_keys(settings, _text_of_keys(file), str(file))


def _text_of_keys(file: Path) -> str:
    """Return the text of a file with client keys. Raises SettingsError."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError([f"{file}: server.keys_file does not exist; `turnfold keys add NAME` makes it"]) from None
    except OSError as error:
        raise SettingsError([f"{file}: server.keys_file cannot be read ({error.strerror or error})"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{file}: server.keys_file is not UTF-8 text (byte {error.start})"]) from None


def with_keys(settings: Settings, text: str, where: str) -> Settings:
    """Return the settings with the client keys of a text added. Raises SettingsError."""
    reading = DocumentReading(where, {})
    root = compose(text, reading)
    found = read.value_of(root, read.section({"keys": FILE["keys"]})) if root is not None else {}
    given = found.get("keys", {}) if found is not read.MISSING else {}
    keys = {name: _client_key(name, each, reading) for name, each in given.items()}
    for name in keys.keys() & settings.keys.keys():
        reading.note(f"keys.{name}", "is the name of a key in the configuration too")
    all_keys = {**settings.keys, **keys}
    check_keys(all_keys, reading)
    if problems := reading.problems():
        raise SettingsError(problems)
    return replace(settings, keys=all_keys)


def parse(text: str, environ: Mapping[str, str], where: str = "configuration") -> Settings:
    """Parse a configuration text; raise `SettingsError` with all problems. An empty text means all defaults."""
    reading = DocumentReading(where, environ)
    root = compose(text, reading)
    found = read.value_of(root, read.section(FILE)) if root is not None else {}
    settings = _build(found if found is not read.MISSING else {}, reading)
    report_conflicts(settings, reading)
    if problems := reading.problems():
        raise SettingsError(problems)
    return settings


def _build(found: Mapping[str, Any], reading: DocumentReading) -> Settings:
    """Build the values from the parsed keys."""
    upstreams = {name: _upstream(name, given, reading) for name, given in found.get("upstreams", {}).items()}
    if not upstreams and "upstreams" not in reading.lines:
        upstreams = {OPENAI.name: OPENAI}
    default = found.get("default_upstream", "")
    if not default and len(upstreams) == 1:
        default = next(iter(upstreams))
    return Settings(
        upstreams=upstreams,
        default_upstream=default,
        server=_server(found.get("server", {})),
        admin=Admin(**found.get("admin", {})),
        store=StoreSettings(**found.get("store", {})),
        log=Log(**found.get("log", {})),
        observe=Observe(**found.get("observe", {})),
        models={name: _model(name, given, reading) for name, given in found.get("models", {}).items()},
        defaults=Defaults(**found.get("defaults", {})),
        fold=Fold().overlay(_by_class(found.get("fold", {}))),
        keys={name: _client_key(name, given, reading) for name, given in found.get("keys", {}).items()},
    )


def _server(given: Mapping[str, Any]) -> Server:
    return Server(**{name: value for name, value in given.items() if name != "tls"}, **given.get("tls", {}))


def _client_key(name: str, given: Mapping[str, Any], reading: DocumentReading) -> ClientKey:
    _require(f"keys.{name}", "hash", given, reading)
    return ClientKey(**{"hash": "", **given, "name": name})


def _upstream(name: str, given: Mapping[str, Any], reading: DocumentReading) -> Upstream:
    for key in ("provider", "base_url"):
        _require(f"upstreams.{name}", key, given, reading)
    return Upstream(**{"provider": "", "base_url": "", **given, "name": name})


def _require(section: str, key: str, given: Mapping[str, Any], reading: DocumentReading) -> None:
    """Report a key without a value, unless its value has a problem already."""
    path = f"{section}.{key}"
    if key not in given and not reading.is_noted(path):
        reading.note(path, "is missing")


def _model(name: str, given: Mapping[str, Any], reading: DocumentReading) -> Model:
    """Build one model. A setting of ``fold:`` may stand under the model's own ``fold:`` or directly under the model."""
    path = f"models.{name}"
    direct = {key: value for key, value in given.items() if key in FOLD_KEYS}
    for key in direct.keys() & given.get("fold", {}).keys():
        reading.note(f"{path}.{key}", f"is written twice, here and under {path}.fold")
    upstreams = tuple(given.get("upstreams", {}).items())
    if "upstream" in given:
        if upstreams:
            reading.note(f"{path}.upstreams", "stands beside upstream; one of them is enough")
        upstreams = ((given["upstream"], 1),)
    rest = {key: value for key, value in given.items() if key not in {*direct, "fold", "upstream", "upstreams"}}
    return Model(**rest, upstreams=upstreams, fold=_by_class({**given.get("fold", {}), **direct}))


def _by_class(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Group the settings of ``fold:`` by the class that holds them: `Fold`, `Policy` or `SummarySettings`."""
    policy = {key: value for key, value in given.items() if key in POLICY_KEYS}
    return {
        "fold": {key: value for key, value in given.items() if key in OWN_KEYS},
        "policy": {**policy, **given.get("recall", {}), **given.get("cache", {})},
        "summary": given.get("summary", {}),
    }


OWN_KEYS: Final = frozenset(setting.name for setting in under("fold") if owner_of(setting) is Fold)
"""Keys of ``fold:`` that are fields of `Fold`."""
POLICY_KEYS: Final = frozenset(setting.name for setting in under("fold") if owner_of(setting) is Policy)
"""Keys of ``fold:`` that are fields of `Policy`."""
