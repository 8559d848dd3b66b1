"""`turnfold models` and `turnfold forget`: what the gateway remembers of upstreams and callers, shown and deleted."""

import asyncio
import os
from pathlib import Path

import click
from multidict import CIMultiDict
from rich.console import Console
from rich.table import Table

from gateway.config import Settings, SettingsError, load
from gateway.config.values import is_pattern
from gateway.serve import app, lessons, plan
from gateway.serve.shared import Gateway


def show_models(config: Path) -> int:
    """Print every model the file or its upstreams name, with the window that holds now and what decided it."""
    settings = _settings(config)
    if settings is None:
        return 1
    rows = asyncio.run(_models(settings))
    table = Table("model", "upstream", "window", "from", "ratio", box=None, header_style="dim")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    return 0


def forget(config: Path, key_hash: str | None) -> int:
    """Delete what is stored for one caller, or everything."""
    settings = _settings(config)
    if settings is None:
        return 1
    try:
        count = asyncio.run(_forget(settings, key_hash))
    except Exception as error:  # noqa: BLE001  # whatever the store's library raises, the person must know that it did not work
        click.echo(f"Nothing was forgotten: the store failed ({type(error).__name__}: {error})", err=True)
        return 1
    click.echo(f"{count} value{'s' * (count != 1)} forgotten")
    return 0


async def _models(settings: Settings) -> list[tuple[str, ...]]:
    gateway = Gateway(settings, app.store_of(settings))
    try:
        for target in gateway.setup.targets.values():
            await lessons.ask_windows(gateway, target, CIMultiDict())
        named = {name for name in settings.models if not is_pattern(name)}
        rows: list[tuple[str, ...]] = []
        for model in sorted(named | gateway.learning.listed()):
            route = settings.route(model)
            await gateway.learning.know(route.upstream, route.name)
            place = plan.place_of(gateway, gateway.setup, route, gateway.setup.targets[route.upstream])
            learned = gateway.learning.window(route.upstream, route.name)
            origin = "learned from refusals" if learned == place.window else place.entry
            ratio = gateway.learning.ratio(route.upstream, route.name)
            rows.append((model, route.upstream, f"{place.window:,}", origin, f"{ratio:g}"))
        return rows
    finally:
        await gateway.close()


async def _forget(settings: Settings, key_hash: str | None) -> int:
    store = app.store_of(settings)
    try:
        return await store.forget(key_hash)
    finally:
        await store.close()


def _settings(config: Path) -> Settings | None:
    try:
        return load(config, os.environ)
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return None
