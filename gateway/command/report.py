"""`turnfold report`: sum up what was observed, or done, from the stored records."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.command import usable
from gateway.command.cells import cell
from gateway.command.waiting import waiting
from gateway.config import Settings, SettingsError
from gateway.config.report import many
from gateway.observe.log import beside_result
from gateway.observe.shape import RecordJson
from gateway.observe.sums import Sums
from gateway.serve import process
from gateway.serve.admin.filters import moment
from gateway.serve.incoming.errors import ClientError
from gateway.state.records.base import MOST_FOUND, Query
from gateway.state.records.keeper import Records
from gateway.state.records.opening import missing_file
from gateway.state.store import sealing_of
from gateway.state.store.reason import reason_of
from gateway.state.tasks import Tasks

LAST_MOMENT: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""Seconds since 1970. No later moment can be written as a date."""
WORST: Final = 5
"""Conversations that lose most, as they are shown."""


@dataclass(slots=True)
class Report:
    """The sums of a period."""

    since: float
    until: float
    sums: Sums = field(default_factory=Sums)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "since": _time(self.since),
            "until": _time(self.until),
            "requests": self.sums.totals["requests"],
            "why": dict(self.sums.why.most_common()),
            "headline": list(self.sentences()),
            "modes": {
                name: {
                    "requests": mode.requests, "refused_upstream": mode.refused, "seen_refused": mode.failed, "folded": mode.folded,
                    "tokens_before": mode.before, "tokens_after": mode.after, "saved_share": round(mode.saved_share, 4),
                }
                for name, mode in self.sums.modes.items()
            },
            "conversations_that_lose_most": [
                {"conversation": name, "model": one.model, "key": one.key, "last": one.last, "folded": one.requests, "lost": one.lost}
                for name, one in self.sums.worst(WORST)
            ],
        }  # fmt: skip

    def sentences(self) -> Iterable[str]:
        """Yield sentences about the result of mode enforce: the one that it would have, and the one that it had."""
        if seen := self.sums.modes.get("observe"):
            yield (
                f"Observed {many(seen.requests, 'request')}. With enforce: {many(seen.failed, 'refusal')} avoided, "
                f"{seen.saved_share:.0%} fewer tokens."
            )
        if done := self.sums.modes.get("enforce"):
            yield (
                f"Enforced on {many(done.requests, 'request')}: {done.folded:,} folded, {done.saved_share:.0%} fewer tokens, "
                f"{done.failed:,} refused all the same."
            )
        if not self.sums.modes:
            yield "No request that could have been folded was recorded."


def run(config: Path, since: str, key: str, model: str, *, as_json: bool) -> int:
    """Report on the stored records; return the exit status."""
    beside_result()
    now = time.time()
    try:
        settings = usable.with_store(config)
        query = Query(key=key, model=model, since=moment("--since", since, now), until=now, limit=MOST_FOUND)
        with waiting("Reading the records"):
            report = asyncio.run(_summed(settings, query))
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return 1
    except ClientError as error:
        click.echo(str(error), err=True)
        return 1
    if report is None:
        click.echo(f"{config}: no records are kept: name a store that is not memory:// and set observe.keep.", err=True)
        return 1
    if (missing := missing_file(settings.store.url)) is not None:
        click.echo(f"Note: {missing} does not exist: nothing was recorded there yet. Is store.url right?", err=True)
    if as_json:
        click.echo(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(Console(), report)
    return 0


async def _summed(settings: Settings, query: Query) -> Report | None:
    log, failures = process.log_of(settings), list[str]()
    if log is None or not settings.observe.keep_s:
        return None
    records = Records(
        log, Tasks(), sealing=sealing_of(settings.store.encryption_key),
        failed=lambda part, error: failures.append(f"{part}: {reason_of(error)}"),
    )  # fmt: skip
    report = Report(query.since, query.until)
    try:
        async for one in _all(records, query):
            report.sums.add(one)
    finally:
        await log.close()
    if failures:
        raise SettingsError((f"The records could not be read ({failures[0]}).",))
    return report


async def _all(records: Records, query: Query) -> AsyncIterator[RecordJson]:
    """Yield all records of a query, newest first, page by page."""
    while page := await records.find(query):
        for one in page:
            yield one
        if len(page) < query.limit:
            return
        query = replace(query, until=page[-1]["at"])


def _print(console: Console, report: Report) -> None:
    console.print(Text(f"{_time(report.since)} to {_time(report.until)}", style="dim"))
    for sentence in report.sentences():
        console.print(Text(sentence, style="bold"))
    reasons = ", ".join(f"{why} {count:,}" for why, count in report.sums.why.most_common())
    console.print(Text(": ".join(filter(None, (many(report.sums.totals["requests"], "record"), reasons)))))
    if worst := report.sums.worst(WORST):
        table = Table("conversation", "model", "key", "folded", "turns", "lines", "images", "question", box=None,
                      header_style="dim", title="conversations that lose most, each by its worst request", title_justify="left")  # fmt: skip
        for name, one in worst:
            table.add_row(name, cell(one.model), cell(one.key), *_cells(one.requests, one.lost))
        console.print(table)


def _cells(folded: int, lost: Mapping[str, int]) -> list[str]:
    return [f"{folded:,}", *(f"{lost[name]:,}" for name in ("turns", "lines", "images", "question_characters"))]


def _time(seconds: float) -> str:
    return (
        datetime.fromtimestamp(min(max(seconds, 0), LAST_MOMENT), UTC)
        .isoformat(timespec="seconds")
        .replace("+00:00", "Z")
    )
