"""A replay as one HTML page with charts: no script, no remote part, every text of the log escaped."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1a1d21;--paper:#fff;--line:#c9ced6;--soft:#5a6472;--before:#6b7fa8;--after:#0f766e}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaee;--paper:#15181d;--line:#3a414c;--soft:#a3adba;--before:#8ea2cf;--after:#4cc3b5}}
body{margin:2rem auto;max-width:60rem;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem;display:block;overflow-x:auto}th,td{text-align:right;padding:.25rem .6rem;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}caption,figcaption{text-align:left;color:var(--soft)}
figure{margin:0 0 2rem}svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}.big{font-size:1.3rem}
.before{fill:var(--before)}.after{fill:var(--after)}
"""
"""The look, light and dark; contrast of text at least 4.5 to 1."""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Content-Security-Policy: the page loads and runs nothing."""
ROW: Final = 24
"""Height of one bar with its gap, in pixels."""
LABEL: Final = 190
"""Width of the labels, in pixels."""
WIDTH: Final = 720
"""Width of a chart, in pixels; it scales with the page."""
LONGEST_LABEL: Final = 26
"""Characters of a label that fit beside a bar."""


def page(found: Mapping[str, Any], title: str, headline: str) -> str:
    """Return the page of a replay's sums."""
    models: Mapping[str, Mapping[str, Any]] = found["models"]
    parts = [
        f"<h1>{escape(title)}</h1><p class=big>{escape(headline)}</p>",
        bars("Requests by how full the window was", [(_class(one), [one["requests"]]) for one in found["fullness"]]),
        bars(
            "Prompt tokens by model, as sent by clients and after folding",
            [(name, [one["tokens_before"], one["tokens_after"]]) for name, one in list(models.items())[:20]],
        ),
        bars("Tokens that each stage saves", [(n, [v]) for n, v in sorted(found["stages"].items(), key=lambda p: -p[1]) if v > 0]),
        bars("What fills the window of folded requests, in tokens", [(n, [v]) for n, v in found["parts_of_folded"].items()]),
        table("Models", ("model", "window", *COLUMNS), [(name, one["window"], *_cells(one)) for name, one in models.items()]),
        table(
            "Conversations that lose most",
            ("conversation", "model", "lines lost at once", *COLUMNS),
            [
                (one["conversation"], one["model"], one["most_lines_lost"], *_cells(one))
                for one in found["conversations_that_lose_most"]
            ],
        ),
        f"<p>{_rest(found)}</p>",
    ]  # fmt: skip
    return (
        f'<!doctype html><html lang=en><head><meta charset=utf-8><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name=viewport content="width=device-width,initial-scale=1"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


COLUMNS: Final = (
    "requests",
    "refusals avoided",
    "folded",
    "too large",
    "tokens before",
    "after",
    "cached before",
    "after",
)
"""Headings of the sums in both tables."""


def _cells(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        one["requests"], one["refusals_avoided"], one["folded"], one["too_large"], one["tokens_before"], one["tokens_after"],
        f"{one['cached_share_before']:.0%}", f"{one['cached_share_after']:.0%}",
    )  # fmt: skip


def bars(title: str, rows: Sequence[tuple[str, Sequence[int]]]) -> str:
    """Return a bar chart; a row may have two bars, before and after."""
    if not rows:
        return ""
    most = max((value for _, values in rows for value in values), default=0) or 1
    room = WIDTH - LABEL - 110
    drawn: list[str] = []
    for row, (name, values) in enumerate(rows):
        top = row * ROW
        label = name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"
        drawn.append(f'<text x="{LABEL - 8}" y="{top + 16}" text-anchor="end">{escape(label)}</text>')
        height = (ROW - 6) / len(values)
        for number, value in enumerate(values):
            kind = "after" if number or len(values) == 1 else "before"
            drawn.append(
                f'<rect class={kind} x="{LABEL}" y="{top + 3 + number * height:g}" width="{max(value, 0) / most * room:.1f}" height="{height:g}"/>'
            )
        said = " → ".join(f"{value:,}" for value in values)
        drawn.append(f'<text x="{LABEL + max(*values, 0) / most * room + 6:.1f}" y="{top + 16}">{said}</text>')
    height = len(rows) * ROW
    spoken = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in rows)
    return (
        f'<figure><figcaption><h2>{escape(title)}</h2></figcaption><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}. {escape(spoken)}">{"".join(drawn)}</svg></figure>'
    )


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table; numbers with thousands apart."""
    if not rows:
        return ""
    heads = "".join(f"<th scope=col>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _class(one: Mapping[str, Any]) -> str:
    return f"up to {one['up_to']:.0%}" if one["up_to"] is not None else "more"


def _rest(found: Mapping[str, Any]) -> str:
    return (
        f"{found['conversations']:,} conversations; {found['unreadable']:,} lines without a request; {found['failed']:,} requests "
        f"that could not be decided about; {found['estimated']:,} requests counted by an estimate. No upstream was called."
    )
