"""`turnfold check FILE --model NAME`: the values of all settings for one model, and the source of each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway.config import Settings, load
from gateway.config.catalogue import load as load_catalogue
from gateway.config.readers import nearest
from gateway.config.report import weighted, window_of
from gateway.config.schema import SETTINGS, Setting
from gateway.config.sections import default_of, owner_of
from gateway.config.values import Defaults, Fold, SummarySettings
from gateway.context.cut.policy import Policy

DEFAULTS: Final = Defaults()
PARTS: Final[Mapping[type | None, str]] = {Fold: "fold", Policy: "policy", SummarySettings: "summary"}
"""The part of a model's entry that holds the settings of each class."""
NAMED: Final = 20
"""Entries that are named where none is for a model. Chosen: two lines on a terminal."""


def of_model(file: Path, environ: Mapping[str, str], model: str) -> str:
    """Return a line for each value: its name, the value, its source; and one that says so if no entry is for this model. Raises
    SettingsError."""
    settings = load(file, environ)
    rows = [("setting", "value", "from"), *_rows(settings, model)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if settings.models and settings.entry(model) is None:
        lines.append(
            f'Note: no entry under models is for "{model}"{nearest(model, settings.models) or "."} {_named(settings)}'
        )
    return "\n".join(lines)


def _named(settings: Settings) -> str:
    """Return the models that the file names, in one sentence; of many the first ones."""
    names = list(settings.models)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"The file has: {', '.join(names[:NAMED])}{more}"


def _rows(settings: Settings, model: str) -> list[tuple[str, str, str]]:
    """Return name, value and source of each setting; the names are those of the file."""
    route = settings.route(model)
    entries = _entries(settings, model)
    window, origin = window_of(route, settings, load_catalogue())
    if origin == "this file":
        origin = _source(entries, settings, "context_window", "this file")
    rows = [
        ("name", route.name, _source(entries, settings, "name", "as the client names it")),
        ("upstream", weighted(route.choices), _source(entries, settings, "upstreams", "default_upstream")),
        ("context_window", "none" if window is None else str(window), origin),
    ]
    for name in ("max_output_tokens", "output_reserve", "tokenizer", "on_overflow", "fallbacks"):
        in_defaults = getattr(settings.defaults, name, None) != getattr(DEFAULTS, name, None)
        source = _source(entries, settings, name, f"defaults.{name}" if in_defaults else "default")
        rows.append((name, _shown(getattr(route, name)), source))
    own = Fold(route.mode, route.client_modes, route.max_retries, route.policy, route.summary)
    for setting in (setting for setting in SETTINGS if setting.path.startswith("fold.")):
        part = PARTS[owner_of(setting)]
        value = getattr(own if part == "fold" else getattr(own, part), setting.name)
        shown = _shown(value) if value in (None, "", ()) else setting.kind.write(value)
        rows.append((setting.path, shown, _fold_source(entries, settings, part, setting, value)))
    return rows


def _entries(settings: Settings, model: str) -> list[str]:
    """Return the configured names that a model matches: its own first, then those to which an alias leads."""
    found: list[str] = []
    name = model
    while (key := settings.entry(name)) is not None and key not in found:
        found.append(key)
        name = settings.models[key].name or name
    return found


def _source(entries: list[str], settings: Settings, attribute: str, otherwise: str) -> str:
    own = entries[:1] if attribute in ("on_overflow", "fallbacks") else entries
    given = (f"models.{key}" for key in own if getattr(settings.models[key], attribute) not in (None, "", ()))
    return next(given, otherwise)


def _fold_source(entries: list[str], settings: Settings, part: str, setting: Setting, value: Any) -> str:
    """Return where a value of ``fold:`` comes from. What is written like the default counts as the default."""
    given = (f"models.{key}" for key in entries if setting.name in settings.models[key].fold.get(part, {}))
    return next(given, "default" if value in (default_of(setting), "") else setting.section)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)
