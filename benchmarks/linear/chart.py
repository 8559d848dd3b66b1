"""Lines over sizes as an SVG, both axes logarithmic: a cost that is linear in size is a straight line of the same slope as the grid's diagonal."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 760
HEIGHT: Final = 460
LEFT: Final = 70
RIGHT: Final = 190
"""Pixels beside the plot: the names of the lines stand there."""
TOP: Final = 20
BOTTOM: Final = 50
COLOURS: Final = ("#2563eb", "#7aa2f7", "#b45309", "#e0a458")
STYLE: Final = "text{font:12px system-ui,sans-serif;fill:#5a6472}.grid{stroke:#c9ced6;stroke-width:.5}.even{stroke:#5a6472;stroke-dasharray:3 4;fill:none}polyline{fill:none;stroke-width:2}"
"""Greys that can be read on white and on black."""

Rows = Mapping[str, Sequence[float | None]]
"""Milliseconds by size, for each kind of request; None where it was not measured."""


def drawn(title: str, sizes: Sequence[int], rows: Rows) -> str:
    """Return the chart of these rows."""
    values = [value for line in rows.values() for value in line if value is not None]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(size: float) -> float:
        return LEFT + (math.log2(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [_label(x(size), HEIGHT - BOTTOM + 18, named(size), "middle") for size in sizes]
    parts += [_line(x(size), TOP, x(size), HEIGHT - BOTTOM) for size in sizes]
    for power in range(low, high + 1):
        parts += [
            _line(LEFT, y(10**power), WIDTH - RIGHT, y(10**power)),
            _label(LEFT - 8, y(10**power) + 4, f"{10.0**power:g} ms", "end"),
        ]
    parts.append(_label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "size of the body", "middle"))
    for colour, (name, line) in zip(COLOURS, rows.items(), strict=True):
        points = [(x(size), y(value)) for size, value in zip(sizes, line, strict=True) if value is not None]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        parts.append(f'<polyline stroke="{colour}" points="{path}"/>')
        parts += [f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3" fill="{colour}"/>' for across, down in points]
        parts.append(_label(points[-1][0] + 8, points[-1][1] + 4, name, "start"))
    parts += [f'<path class="even" d="M{x(sizes[-4]):.1f},{y(10**low):.1f}L{x(sizes[-1]):.1f},{y(10**low * 64):.1f}"/>',
              _label(x(sizes[-1]) + 8, y(10**low * 64) + 4, "linear", "start")]  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def named(size: int) -> str:
    """Return a size in bytes as people write it."""
    return f"{size // 2**20} MB" if size >= 2**20 else f"{size // 2**10} KB"


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="grid" d="M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}"/>'
