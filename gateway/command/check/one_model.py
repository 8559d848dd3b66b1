"""`turnfold check FILE --model NAME`: the values of all settings for one model, and the source of each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway.config import Settings, load
from gateway.config.catalogue import load as load_catalogue
from gateway.config.readers import nearest
from gateway.config.report import window_of

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
    route = settings.route(model)
    entries = _entries(settings, model)
    window, origin = window_of(route, settings, load_catalogue())
    if origin == "this file":
        origin = _source(entries, settings, "context_window", "this file")
    rows = [
        ("name sent", route.name, _source(entries, settings, "name", "as the client names it")),
        ("upstream", ", ".join(f"{name} x{weight}" for name, weight in route.choices),
         _source(entries, settings, "upstreams", "default_upstream")),
        ("context_window", str(window), origin),
    ]  # fmt: skip
    for name in ("max_output_tokens", "output_reserve", "tokenizer", "on_overflow", "fallbacks"):
        rows.append((name, _shown(getattr(route, name)), _source(entries, settings, name, "defaults")))
    rows += [
        (f"fold.{name}", _shown(getattr(route, name)), _fold_source(entries, settings, "fold", name))
        for name in ("mode", "client_modes", "max_retries")
    ]
    for part in ("policy", "summary"):
        value = getattr(route, part)
        rows += [
            (f"{part if part == 'summary' else 'fold'}.{name}", _shown(getattr(value, name)),
             _fold_source(entries, settings, part, name))
            for name in value.__struct_fields__
        ]  # fmt: skip
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


def _fold_source(entries: list[str], settings: Settings, part: str, name: str) -> str:
    given = (f"models.{key}" for key in entries if name in settings.models[key].fold.get(part, {}))
    return next(given, "fold, or its default")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)
