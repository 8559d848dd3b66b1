"""`turnfold models` and `turnfold forget`: show and delete what the gateway has learned and stored."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from multidict import CIMultiDict
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from gateway.command import usable
from gateway.command.cells import cell
from gateway.command.waiting import waiting
from gateway.config import Settings, SettingsError, is_pattern
from gateway.config.report import many
from gateway.observe.log import beside_result
from gateway.serve import process
from gateway.serve.gateway import Gateway
from gateway.serve.request import model_lists
from gateway.serve.request.place import place_of, source_in_words
from gateway.state import forgetting
from gateway.state.facts import Fact
from gateway.state.forgetting import Order

WIDE: Final = 150
"""Columns of a terminal from which learned facts are a table. Chosen: in a narrower one its words would be cut."""
SHOWN: Final = 12
"""Characters of a caller's key hash in the table: enough to tell callers apart."""


def show_models(config: Path) -> int:
    """Print every model named in the file, by its upstreams or in past answers: its window, and every learned fact."""
    settings = _settings(usable.with_upstreams, config)
    if settings is None:
        return 1
    with waiting("Asking the upstreams for their models"):
        rows, facts = asyncio.run(_models(settings))
    console = Console()
    table = Table(*(Column(name, overflow="fold") for name in ("model", "upstream", "window", "from")), box=None,
                  header_style="dim")  # fmt: skip
    for row in rows:
        table.add_row(*map(cell, row))
    console.print(table)
    if facts and console.width >= WIDE:
        console.print(_facts_table(facts))
    elif facts:
        console.print(Text("\nlearned", style="dim"), *map(_fact_in_lines, facts), sep="\n")
    return 0


def _facts_table(facts: Sequence[Fact]) -> Table:
    table = Table("kind", "what", "model", "upstream", "value", "holds for", "caller", "since", "until", "evidence",
                  box=None, header_style="dim", title="learned", title_justify="left")  # fmt: skip
    for fact in facts:
        table.add_row(fact.kind, fact.what, cell(fact.model), cell(fact.upstream), f"{fact.value:,}", fact.holds,
                      cell(fact.caller[:SHOWN]), _time(fact.since), _time(fact.until), cell(fact.evidence))  # fmt: skip
    return table


def _fact_in_lines(fact: Fact) -> Text:
    """Return a fact for a narrow terminal: the same words as a row of the table has."""
    caller = f" (caller {fact.caller[:SHOWN]})" if fact.caller else ""
    lines = (
        f"{fact.model} at {fact.upstream}: {fact.what} {fact.value:,}, {fact.kind}",
        f"   holds for {fact.holds}{caller}, {_time(fact.since)} to {_time(fact.until)}",
        f"   {fact.evidence}",
    )
    return Text("\n").join(map(cell, lines))


def forget(config: Path, order: Order) -> int:
    """Delete what an operator orders, and print how many values were deleted; running processes follow."""
    settings = _settings(usable.with_store, config)
    if settings is None:
        return 1
    try:
        if order.model and not order.upstream:
            order = order._replace(upstream=settings.route(order.model).upstream)
        with waiting("Deleting"):
            count = asyncio.run(_forget(settings, order))
    except Exception as error:  # noqa: BLE001  # whatever the store's library raises, the person must know that it did not work
        click.echo(f"Nothing was forgotten: the store failed ({type(error).__name__}: {error})", err=True)
        return 1
    click.echo(f"{many(count, 'value')} forgotten")
    return 0


async def _models(settings: Settings) -> tuple[list[tuple[str, ...]], list[Fact]]:
    gateway = Gateway(settings, process.store_of(settings))
    try:
        await gateway.watch.check()
        await gateway.learning.load_all()
        for target in gateway.setup.targets.values():
            await model_lists.ask_windows(gateway, target, CIMultiDict())
        facts = gateway.learning.facts()
        named = {(settings.route(name).upstream, name) for name in settings.models if not is_pattern(name)}
        named |= {(settings.route(name).upstream, name) for name in gateway.learning.lists.names()}
        known = {(settings.route(name).upstream, settings.route(name).name) for _, name in named}
        named |= {(fact.upstream, fact.model) for fact in facts if fact.model != "*"} - known
        rows = [_row(gateway, settings, upstream, model) for upstream, model in sorted(named, key=lambda pair: pair[1])]
        return rows, facts
    finally:
        await gateway.close()


def _row(gateway: Gateway, settings: Settings, upstream: str, model: str) -> tuple[str, ...]:
    route = settings.route(model)
    target = gateway.setup.targets.get(upstream)
    if target is None:
        return model, f"{upstream} (not configured)", "", ""
    place = place_of(gateway, gateway.setup, route, target)
    return model, upstream, f"{place.window:,}", source_in_words(route, place.window_source)


async def _forget(settings: Settings, order: Order) -> int:
    store, log = process.store_of(settings), process.log_of(settings)

    async def forget_records(caller: str | None) -> int:
        return await log.forget(caller) if log is not None else 0

    try:
        return await forgetting.forget(order, store, forget_records, forgetting.now())
    finally:
        if log is not None:
            await log.close()
        await store.close()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")


def _settings(read: Callable[[Path], Settings], config: Path) -> Settings | None:
    """Read the configuration; None when it has mistakes, which are then printed."""
    beside_result()
    try:
        return read(config)
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return None
