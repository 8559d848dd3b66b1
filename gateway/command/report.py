"""`turnfold report`: sum up what was observed, or done, from the stored records."""

import asyncio
import os
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

from gateway.command.waiting import waiting
from gateway.config import Settings, SettingsError, load
from gateway.observe.shape import Shown
from gateway.serve import app
from gateway.serve.errors import ClientError
from gateway.serve.filters import moment
from gateway.state.records.base import MOST_FOUND, Query
from gateway.state.records.keeper import Records
from gateway.state.store import sealing_of
from gateway.state.tasks import Tasks

WORST: Final = 5
"""Conversations that lose most, as they are shown."""


@dataclass(slots=True)
class Talk:
    """What one conversation lost: the most that one of its requests did."""

    model: str = ""
    key: str = ""
    last: str = ""
    requests: int = 0
    folded: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def weight(self) -> tuple[int, int, int]:
        """Order conversations: a cut question is worst, then lines, then turns."""
        return self.lost.get("question_characters", 0), self.lost.get("lines", 0), self.lost.get("turns", 0)


@dataclass(slots=True)
class Mode:
    """The sums of all requests of one mode. Tokens, where nothing else is said."""

    requests: int = 0
    refused: int = 0
    """Requests that the upstream refused as too long at least once."""
    failed: int = 0
    """Requests that the client saw refused as too long."""
    folded: int = 0
    """Requests that were folded, or would have been."""
    before: int = 0
    after: int = 0
    uncounted: int = 0
    """Billed prompt tokens of requests that were not counted because they surely fit."""

    @property
    def saved_share(self) -> float:
        """The share of all prompt tokens that folding saves."""
        whole = self.before + self.uncounted
        return (self.before - self.after) / whole if whole else 0.0


@dataclass(slots=True)
class Sums:
    """The sums of a report."""

    since: float
    until: float
    modes: dict[str, Mode] = field(default_factory=dict)
    talks: dict[str, Talk] = field(default_factory=dict)
    why: dict[str, int] = field(default_factory=dict)

    def add(self, one: Shown) -> None:
        """Add one record."""
        self.why[one["why"]] = self.why.get(one["why"], 0) + 1
        if one["mode"]:
            _add(self.modes.setdefault(one["mode"], Mode()), one)
        if one["conversation"] and any(one["lost"].values()):
            talk = self.talks.setdefault(one["conversation"], Talk(one["model"], one["key"], one["time"]))
            talk.lost = {name: max(count, talk.lost.get(name, 0)) for name, count in one["lost"].items()}
            talk.folded += 1
            talk.last = max(talk.last, one["time"])
            if len(self.talks) > MOST_FOUND:
                del self.talks[min(self.talks, key=lambda name: self.talks[name].weight)]

    def worst(self) -> list[tuple[str, Talk]]:
        """Return the conversations that lose most."""
        return sorted(self.talks.items(), key=lambda pair: pair[1].weight, reverse=True)[:WORST]

    def shown(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "since": _time(self.since),
            "until": _time(self.until),
            "requests": sum(self.why.values()),
            "why": dict(sorted(self.why.items(), key=lambda pair: -pair[1])),
            "headline": list(self.sentences()),
            "modes": {
                name: {
                    "requests": mode.requests, "refused_upstream": mode.refused, "seen_refused": mode.failed, "folded": mode.folded,
                    "tokens_before": mode.before, "tokens_after": mode.after, "saved_share": round(mode.saved_share, 4),
                }
                for name, mode in self.modes.items()
            },
            "conversations_that_lose_most": [
                {"conversation": name, "model": talk.model, "key": talk.key, "last": talk.last, "folded": talk.folded, "lost": talk.lost}
                for name, talk in self.worst()
            ],
        }  # fmt: skip

    def sentences(self) -> Iterable[str]:
        """Say what enforcing would do, and what it did."""
        if seen := self.modes.get("observe"):
            yield (
                f"Observed {seen.requests:,} requests. With enforce: {seen.failed:,} refusals avoided, "
                f"{seen.saved_share:.0%} fewer tokens."
            )
        if done := self.modes.get("enforce"):
            yield (
                f"Enforced on {done.requests:,} requests: {done.folded:,} folded, {done.saved_share:.0%} fewer tokens, "
                f"{done.failed:,} refused all the same."
            )
        if not self.modes:
            yield "No request that could have been folded was recorded."


def _add(mode: Mode, one: Shown) -> None:
    mode.requests += 1
    mode.refused += bool(one["refusals"])
    mode.failed += one["status"] >= 400 and (bool(one["refusals"]) or one["why"] == "too_large")
    before, after = one["tokens_before"], one["tokens_after"]
    if before is None or after is None:
        mode.uncounted += one["prompt_tokens"] or 0
        return
    mode.before += before
    mode.after += min(after, before)
    mode.folded += after < before


def run(config: Path, since: str, key: str, model: str, *, as_json: bool) -> int:
    """Report on the stored records; return the exit status."""
    now = time.time()
    try:
        settings = load(config, os.environ)
        query = Query(key=key, model=model, since=moment("--since", since, now), until=now, limit=MOST_FOUND)
        with waiting("Reading the records"):
            sums = asyncio.run(_summed(settings, query))
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return 1
    except ClientError as error:
        click.echo(str(error), err=True)
        return 1
    if sums is None:
        click.echo(f"{config}: no records are kept: name a store that is not memory:// and set observe.keep.", err=True)
        return 1
    if as_json:
        click.echo(orjson.dumps(sums.shown(), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(Console(), sums)
    return 0


async def _summed(settings: Settings, query: Query) -> Sums | None:
    log, failures = app.log_of(settings), list[str]()
    if log is None or not settings.observe.keep_s:
        return None
    records = Records(
        log, Tasks(), sealing=sealing_of(settings.store.encryption_key),
        failed=lambda part, error: failures.append(f"{part}: {type(error).__name__}"),
    )  # fmt: skip
    sums = Sums(query.since, query.until)
    try:
        async for one in _all(records, query):
            sums.add(one)
    finally:
        await log.close()
    if failures:
        raise SettingsError((f"The records could not be read ({failures[0]}).",))
    return sums


async def _all(records: Records, query: Query) -> AsyncIterator[Shown]:
    """Yield all records of a query, newest first, page by page."""
    while page := await records.find(query):
        for one in page:
            yield one
        if len(page) < query.limit:
            return
        query = replace(query, until=page[-1]["at"])


def _print(console: Console, sums: Sums) -> None:
    console.print(Text(f"{_time(sums.since)} to {_time(sums.until)}", style="dim"))
    for sentence in sums.sentences():
        console.print(Text(sentence, style="bold"))
    reasons = ", ".join(f"{why} {count:,}" for why, count in sorted(sums.why.items(), key=lambda pair: -pair[1]))
    console.print(Text(f"{sum(sums.why.values()):,} records: {reasons}"))
    if worst := sums.worst():
        table = Table("conversation", "model", "key", "folded", "turns", "lines", "images", "question", box=None,
                      header_style="dim", title="lose most (the most that one request lost)", title_justify="left")  # fmt: skip
        for name, talk in worst:
            table.add_row(name, Text(talk.model), Text(talk.key), *_cells(talk.folded, talk.lost))
        console.print(table)


def _cells(folded: int, lost: Mapping[str, int]) -> list[str]:
    return [f"{folded:,}", *(f"{lost[name]:,}" for name in ("turns", "lines", "images", "question_characters"))]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(max(seconds, 0), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
