"""`turnfold replay`: past traffic through the decisions of the gateway, on all cores, in bounded memory. No upstream is called.

`logs` reads past requests, `deciding` decides about each, `sums` adds up, `page` writes the result as HTML.
"""

import multiprocessing
import os
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gateway.command import usable
from gateway.command.cells import cell
from gateway.command.replay.deciding import Decider, Results
from gateway.command.replay.logs import Batch, batches, files_in
from gateway.command.replay.page import page
from gateway.command.replay.sums import ReplaySums
from gateway.config import Settings, SettingsError
from gateway.config.report import many

AHEAD: Final = 2
"""Batches that wait for each process, beside the one it works on. Chosen: no process is ever idle."""
NOWHERE: Final = "http://127.0.0.1:9/v1"
"""The upstream of a replay without a configuration. It is never called."""


def run(
    path: Path, config: Path | None, window: int | None, html: Path | None, cores: int | None, *, as_json: bool
) -> int:
    """Replay a log file or a folder of logs; return the exit status: 2 when nothing could be read."""
    try:
        settings = usable.alone(config) if config else Settings.simple(NOWHERE, window)
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return 2
    sums = ReplaySums()
    try:
        files = files_in(path)
        total = sum(file.stat().st_size for file in files)
        with _progress(shown=not as_json) as progress:
            task = progress.add_task("replay", total=total)
            for results in _decided(files, settings, cores or os.cpu_count() or 1, total):
                sums.add(results)
                progress.advance(task, results.read)
    except (OSError, EOFError, zlib.error) as error:  # the last two: a packed file that is damaged
        click.echo(f"{getattr(error, 'filename', None) or path}: {getattr(error, 'strerror', None) or error}", err=True)
        return 2
    if not sums.all.requests:
        click.echo(
            f"{path}: no request was found in {many(len(files), 'file')}, {many(sums.unreadable, 'line')}: expected one JSON body a line",
            err=True,
        )
        return 2
    found = sums.as_json()
    if html is not None and not _written(html, page(found, f"Replay of {path.name}", headline(found))):
        return 2
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(Console(), found, html)
    return 0


def _written(html: Path, text: str) -> bool:
    """Write the page with charts; return whether it was written. If not, print the reason."""
    try:
        html.write_text(text, encoding="utf-8")
    except OSError as error:
        click.echo(f"--html: {html} cannot be written ({error.strerror})", err=True)
        return False
    return True


def headline(found: Mapping[str, Any]) -> str:
    """Return one sentence about the result that mode enforce would have."""
    return (
        f"{many(found['requests'], 'request')}: with enforce {many(found['refusals_avoided'], 'refusal')} avoided, "
        f"{found['saved_share']:.0%} fewer tokens; {found['too_large']:,} too large in any form."
    )


def _progress(*, shown: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal))


def _decided(files: list[Path], settings: Settings, cores: int, total: int) -> Iterator[Results]:
    """Decide about every line of all files, in their order."""
    lines = (batch for file in files for batch in batches(file))
    if cores == 1 or total < SMALL:
        decider = Decider(settings)
        try:
            yield from map(decider.decide, lines)
        finally:
            decider.close()
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
    with ProcessPoolExecutor(cores, context, _begin, (settings,)) as pool:
        waiting: deque[Future[Results]] = deque()
        for batch in lines:
            waiting.append(pool.submit(_work, batch))
            if len(waiting) > cores * (AHEAD + 1):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


SMALL: Final = 2**22
"""Bytes of logs. One process reads so many before other processes have started."""
_DECIDER: Final = "decider"
_here: dict[str, Decider] = {}
"""The decider of a worker process, made when the process begins."""


def _begin(settings: Settings) -> None:
    _here[_DECIDER] = Decider(settings)


def _work(batch: Batch) -> Results:
    return _here[_DECIDER].decide(batch)


def _print(console: Console, found: Mapping[str, Any], html: Path | None) -> None:
    console.print(Text(headline(found), style="bold"))
    table = Table(
        "model",
        "window",
        "requests",
        "avoided",
        "folded",
        "too large",
        "fewer tokens",
        "cached",
        box=None,
        header_style="dim",
    )
    for name, one in found["models"].items():
        cached = f"{one['cached_share_before']:.0%} → {one['cached_share_after']:.0%}"
        table.add_row(
            Text(name), f"{one['window']:,}", f"{one['requests']:,}", f"{one['refusals_avoided']:,}", f"{one['folded']:,}",
            f"{one['too_large']:,}", f"{one['saved_share']:.0%}", cached,
        )  # fmt: skip
    console.print(table)
    if losers := found["conversations_that_lose_most"]:
        worst = Table("conversation", "model", "requests", "folded", "lines lost", "too large", box=None, header_style="dim",
                      title="conversations that lose most", title_justify="left")  # fmt: skip
        for one in losers:
            worst.add_row(one["conversation"], cell(one["model"]), f"{one['requests']:,}", f"{one['folded']:,}",
                          f"{one['most_lines_lost']:,}", f"{one['too_large']:,}")  # fmt: skip
        console.print(worst)
    if found["unreadable"] or found["failed"]:
        console.print(f"{found['unreadable']:,} lines held no request; {found['failed']:,} could not be decided about.")
    if html is not None:
        console.print(Text(f"Charts: {html}"))
