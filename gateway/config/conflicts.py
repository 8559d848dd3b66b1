"""Conflicts between values of the configuration that are valid one by one."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from gateway.config import catalogue
from gateway.config.document import DocumentReading
from gateway.config.exposure import dangers
from gateway.config.names import is_pattern
from gateway.config.readers import nearest
from gateway.config.settings import Settings
from gateway.config.values import ClientKey, Model, Server


def report_conflicts(settings: Settings, reading: DocumentReading) -> None:
    """Report conflicts between values that are valid one by one."""
    _check_tls(settings.server, reading)
    _check_limits(settings, reading)
    _check_upstreams(settings, reading)
    check_keys(settings.keys, reading)
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


def check_keys(keys: Mapping[str, ClientKey], reading: DocumentReading) -> None:
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
        _check_upstream_names("default_upstream", [settings.default_upstream], settings.upstreams, reading)
    for name, upstream in settings.upstreams.items():
        if upstream.client_key and not upstream.client_cert:
            reading.note(f"upstreams.{name}.client_key", "is the key of no certificate: client_cert is missing")
        path = f"upstreams.{name}.fallbacks"
        _check_upstream_names(path, upstream.fallbacks, settings.upstreams, reading)
        if name in upstream.fallbacks:
            reading.note(path, "an upstream cannot replace itself")


def _check_model(name: str, model: Model, settings: Settings, reading: DocumentReading) -> None:
    path = f"models.{name}"
    named = [upstream for upstream, _ in model.upstreams]
    key = "upstream" if f"{path}.upstream" in reading.lines else "upstreams"
    _check_upstream_names(f"{path}.{key}", named, settings.upstreams, reading)
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
        hint = nearest(target, settings.models) if settings.entry(target) is None else ""
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
        _check_upstream_names(path, [upstream], settings.upstreams, reading)


def _check_upstream_names(path: str, names: Iterable[str], known: Iterable[str], reading: DocumentReading) -> None:
    """Report names of upstreams that are not configured."""
    known = list(known)
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f"; known: {', '.join(known)}"
            reading.note(path, f"{reading.quoted(name)} is not an upstream{hint}")
