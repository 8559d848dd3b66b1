"""Turn the configuration file into `Settings`, or into the list of all its problems."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.config import catalogue
from gateway.config import readers as read
from gateway.config.document import DocumentReading, compose
from gateway.config.exposure import dangers
from gateway.config.names import is_pattern
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
    _check_keys(all_keys, reading)
    if problems := reading.problems():
        raise SettingsError(problems)
    return replace(settings, keys=all_keys)


def parse(text: str, environ: Mapping[str, str], where: str = "configuration") -> Settings:
    """Parse a configuration text; raise `SettingsError` with all problems. An empty text means all defaults."""
    reading = DocumentReading(where, environ)
    root = compose(text, reading)
    found = read.value_of(root, read.section(FILE)) if root is not None else {}
    settings = _build(found if found is not read.MISSING else {}, reading)
    _cross_check(settings, reading)
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


def _cross_check(settings: Settings, reading: DocumentReading) -> None:
    """Report conflicts between values that are valid one by one."""
    _check_tls(settings.server, reading)
    _check_limits(settings, reading)
    _check_upstreams(settings, reading)
    _check_keys(settings.keys, reading)
    for path, problem in dangers(settings):
        if not reading.is_noted(path):
            reading.note(path, problem)
    for name, model in settings.models.items():
        _check_model(name, model, settings, reading)
    _check_summary(settings, "fold.summary.upstream", settings.fold.summary.upstream, reading)


def _check_tls(server: Server, reading: DocumentReading) -> None:
    if bool(server.tls_cert) != bool(server.tls_key):
        reading.note("server.tls", "needs both: cert, the certificate, and key, its private key")


def _check_limits(settings: Settings, reading: DocumentReading) -> None:
    server = settings.server
    if server.max_in_flight < server.max_body:
        path = "max_in_flight" if "server.max_in_flight" in reading.lines else "max_body"
        reading.note(
            f"server.{path}",
            f"max_in_flight ({server.max_in_flight} bytes) is less than max_body ({server.max_body} bytes), one largest body",
        )


def _check_keys(keys: Mapping[str, ClientKey], reading: DocumentReading) -> None:
    seen: dict[str, str] = {}
    for name, key in keys.items():
        if key.hash and (other := seen.setdefault(key.hash, name)) != name:
            reading.note(f"keys.{name}.hash", f"is also that of {other}; one key has one name")


def _check_upstreams(settings: Settings, reading: DocumentReading) -> None:
    if not settings.upstreams:
        reading.note("upstreams", "at least one upstream is needed")
    elif not settings.default_upstream:
        reading.note("default_upstream", f"is missing; one of {', '.join(settings.upstreams)}")
    else:
        _check_names("default_upstream", [settings.default_upstream], settings.upstreams, "an upstream", reading)
    for name, upstream in settings.upstreams.items():
        if upstream.client_key and not upstream.client_cert:
            reading.note(f"upstreams.{name}.client_key", "is the key of no certificate: client_cert is missing")
        path = f"upstreams.{name}.fallbacks"
        _check_names(path, upstream.fallbacks, settings.upstreams, "an upstream", reading)
        if name in upstream.fallbacks:
            reading.note(path, "an upstream cannot replace itself")


def _check_model(name: str, model: Model, settings: Settings, reading: DocumentReading) -> None:
    path = f"models.{name}"
    named = [upstream for upstream, _ in model.upstreams]
    key = "upstream" if f"{path}.upstream" in reading.lines else "upstreams"
    _check_names(f"{path}.{key}", named, settings.upstreams, "an upstream", reading)
    for key, targets in (("on_overflow", model.on_overflow), ("fallbacks", model.fallbacks)):
        _check_models(f"{path}.{key}", targets, settings, reading)
        if name in targets:
            reading.note(f"{path}.{key}", "a model cannot replace itself")
    _check_windows_grow(name, model, settings, reading)
    _check_alias(name, model, settings, reading)
    window, output = model.context_window, model.output_reserve
    if window is not None and output is not None and output >= window:
        reading.note(f"{path}.output_reserve", f"{output} leaves nothing of context_window {window}")
    _check_summary(settings, f"{path}.summary.upstream", model.fold["summary"].get("upstream", ""), reading)


def _check_models(path: str, targets: Iterable[str], settings: Settings, reading: DocumentReading) -> None:
    """Report probable typing errors in names of configured models. Other names go to the default upstream unchanged."""
    for target in targets:
        hint = read.nearest(target, settings.models) if settings.entry(target) is None else ""
        if hint and catalogue.load().find(target) is None:
            reading.note(path, f"{reading.quoted(target)} is not a configured model{hint}")


def _check_windows_grow(name: str, model: Model, settings: Settings, reading: DocumentReading) -> None:
    """Report a model of ``on_overflow`` whose window is not larger than that of the model before it, where both are known."""
    if is_pattern(name):
        return
    chain = [name, *model.on_overflow]
    known = [(each, window) for each in chain if (window := _window(each, settings)) is not None]
    for (before, smaller), (after, larger) in pairwise(known):
        if larger <= smaller:
            reading.note(
                f"models.{name}.on_overflow",
                f"{reading.quoted(after)} has a window of {larger} tokens, not more than the {smaller} of {before}; "
                "each model must be larger than the one before it",
            )


def _window(name: str, settings: Settings) -> int | None:
    """Return a model's window as configured or catalogued; None where only its upstream knows."""
    route = settings.route(name) if settings.upstreams else None
    if route is not None and route.window is not None:
        return route.window
    catalogued = catalogue.load().find(route.name if route is not None else name)
    return catalogued.context_window if catalogued is not None else None


def _check_alias(name: str, model: Model, settings: Settings, reading: DocumentReading) -> None:
    """Report an alias of a pattern, and an alias that leads back to itself through others. A model named like its entry is no alias."""
    if model.name and is_pattern(model.name):
        reading.note(f"models.{name}.name", f"{reading.quoted(model.name)} is not the name of one model")
    chain, following = [name], model.name
    while following and (entry := settings.entry(following)) is not None and entry != chain[-1]:
        if entry in chain:
            reading.note(f"models.{name}.name", f"leads in a circle: {' -> '.join([*chain, entry])}")
            return
        chain.append(entry)
        following = settings.models[entry].name


def _check_summary(settings: Settings, path: str, upstream: str, reading: DocumentReading) -> None:
    if upstream:
        _check_names(path, [upstream], settings.upstreams, "an upstream", reading)


def _check_names(path: str, names: Iterable[str], known: Iterable[str], what: str, reading: DocumentReading) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            hint = read.nearest(name, known) or f"; known: {', '.join(known)}"
            reading.note(path, f"{reading.quoted(name)} is not {what}{hint}")
