"""The report of `turnfold check`: the meaning of a configuration file, or all its problems."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gateway.config.catalogue import Catalogue
from gateway.config.catalogue import load as load_catalogue
from gateway.config.exposure import has_key
from gateway.config.loading import SettingsError, load
from gateway.config.names import is_pattern
from gateway.config.settings import Route, Settings
from gateway.config.values import Upstream


def report(path: Path | str, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return what to print about a configuration file, and its problems; no upstream is called."""
    try:
        settings = load(path, environ)
    except SettingsError as error:
        return "\n".join((*error.problems, counted(path, error.problems))), error.problems
    return describe(settings, load_catalogue(), str(path)), ()


def counted(path: Path | str, problems: Sequence[str]) -> str:
    """Return the number of problems in words."""
    return f"{path}: {many(len(problems), 'problem')}"


def many(count: int, what: str) -> str:
    """Return a number of things in words: 1 request, 1,200 requests."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def describe(settings: Settings, catalogue: Catalogue, where: str) -> str:
    """Return tables of the routes and of each model's window."""
    server, admin = settings.server, settings.admin
    upstreams = [_upstream_row(upstream, settings) for upstream in settings.upstreams.values()]
    models = [_model_row(name, settings, catalogue) for name in settings.models]
    other = (
        f"Any other model goes to {settings.default_upstream}. Its window is the one that a running server states, else that of the catalogue "
        f"({len(catalogue.models)} models), else that of the upstream's model list, else {settings.default_window:,}."
    )
    token = "with a token" if admin.token else "without a token"
    return "\n".join(
        (
            f"{where}: all right",
            "",
            f"clients   {'https' if server.tls_cert else 'http'}://{server.host}:{server.port}{server.base_path}/v1   ({many(server.workers, 'worker')}, {_asked(settings)})",
            f"admin     http://{admin.host}:{admin.port}   ({token})",
            f"store     {settings.store.url.partition('://')[0]}",
            f"fold      {_fold_line(settings)}",
            "",
            *_table(("upstream", "provider", "base URL", "key", "fallbacks"), upstreams),
            "",
            *(
                _table(("model", "sent as", "upstream", "window", "from", "mode", "if too long"), models)
                if models
                else ()
            ),
            *([""] if models else ()),
            other,
        )
    )


def _asked(settings: Settings) -> str:
    return many(len(settings.keys), "client key") if settings.asks_for_keys else "no client keys"


def _fold_line(settings: Settings) -> str:
    fold = settings.fold
    summaries = f"summaries by {fold.summary.model}" if fold.summary.model else "no summaries"
    meaning = " by words and meaning" if fold.policy.semantic else ""
    return (
        f"{fold.mode}, quotes{meaning} up to {fold.policy.recall_share:g} of the room, "
        f"at most {fold.max_retries} retries, {summaries}"
    )


def _upstream_row(upstream: Upstream, settings: Settings) -> tuple[str, ...]:
    name = f"{upstream.name} (default)" if upstream.name == settings.default_upstream else upstream.name
    key = "configured" if has_key(upstream) else "none" if settings.asks_for_keys else "the client's"
    return name, upstream.provider, without_password(upstream.base_url), key, ", ".join(upstream.fallbacks)


def _model_row(name: str, settings: Settings, catalogue: Catalogue) -> tuple[str, ...]:
    route = settings.route(name)
    window, origin = window_of(route, settings, catalogue)
    sent = "as named" if route.name == name else route.name
    shown = "" if window is None else f"{window:,}"
    return name, sent, weighted(route.choices), shown, origin, route.mode, ", ".join(route.on_overflow) or "fold"


def weighted(choices: Sequence[tuple[str, int]]) -> str:
    """Return the upstreams of a model; several ones with their weights."""
    return ", ".join(f"{each} x{weight}" if len(choices) > 1 else each for each, weight in choices)


def window_of(route: Route, settings: Settings, catalogue: Catalogue) -> tuple[int | None, str]:
    """Return the window before any upstream has answered, and its source."""
    if route.window is not None:
        return route.window, "this file"
    if is_pattern(route.name):
        return None, "each model's own"
    if (catalogued := catalogue.find(route.name)) is not None:
        return catalogued.context_window, "the catalogue"
    return settings.default_window, "defaults, until the upstream tells"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Format columns; columns that are empty in every row are left out."""
    rows = list(rows)
    kept = [column for column in range(len(head)) if any(row[column] for row in rows)]
    lines = [[line[column] for column in kept] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(kept))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def without_password(url: str) -> str:
    """Return a URL without the name and the password in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if "@" in rest.partition("/")[0] else url
