"""Reuse distances as text and SVG: a miss-ratio curve, and what misses most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracekit import sizes
from tracekit.counted import counted
from tracekit.render.addresses import addresses_text
from tracekit.render.misses import misses_text
from tracekit.render.picture import picture_head
from tracekit.render.text import Json, Style, cell, table

BAR = 50
"""Letters of the longest bar."""

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 640, 240, 60, 24, 20, 40
"""Of the drawing: its inside, and what is around it."""


def reuse_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The curve as bars, and rows with most misses of the smallest size first."""
    result = report["result"]
    summary = result["summary"]
    curve = table(
        ("cache", "misses", "miss ratio", ""),
        [curve_row(point) for point in shown_points(result["curve"])],
        frozenset({0, 1, 2}),
        style,
    )
    misses = [f"misses {sizes.shown(size)}" for size in summary["sizes"]]
    head = [summary_text(summary), "", *curve]
    return misses_text(report, head, ("touches", "first", *misses), counts, limit, style)


def summary_text(summary: Json) -> str:
    """What was touched."""
    touches, lines = counted(summary["touches"], "touch"), counted(summary["lines"], "line")
    touched = f"{touches} of {lines} of {sizes.shown(summary['line'])}"
    return touched + addresses_text(summary)


def counts(row: Json) -> list[str]:
    """The numbers of a row."""
    return [cell(number) for number in (row["touches"], row["cold"], *row["misses"])]


def shown_points(curve: Sequence[Json]) -> list[Json]:
    """The points at powers of two, and the last one."""
    return [point for point in curve if point["size"] & (point["size"] - 1) == 0 or point is curve[-1]]


def curve_row(point: Json) -> tuple[str, str, str, str]:
    """A line of the curve: size, misses, share, bar."""
    share = point["miss_ratio"]
    return sizes.shown(point["size"]), cell(point["misses"]), f"{share:.4%}", "#" * math.ceil(share * BAR)


def svg(curve: Sequence[Json]) -> str:
    """The curve as an SVG element: the size to the right, on a scale of logarithms, the share of misses upwards."""
    low, high = math.log2(curve[0]["size"]), math.log2(curve[-1]["size"])
    across = WIDTH / max(high - low, 1)

    def x(size: int) -> float:
        return LEFT + (math.log2(size) - low) * across

    def y(share: float) -> float:
        return TOP + HEIGHT * (1 - share)

    title = "Share of accesses that miss, by the size of the cache"
    parts = picture_head(title, LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<path d="M{LEFT} {y(share):.1f}h{WIDTH}" stroke="#ccc"/>'
            f'<text x="{LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        )
    labels = [point["size"] for point in curve if point["size"] & (point["size"] - 1) == 0]
    for size in labels[:: math.ceil(len(labels) / 8)]:
        parts.append(
            f'<path d="M{x(size):.1f} {TOP}v{HEIGHT}" stroke="#eee"/>'
            f'<text x="{x(size):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{sizes.shown(size)}</text>'
        )
    path = " ".join(f"{x(point['size']):.1f},{y(point['miss_ratio']):.1f}" for point in curve)
    parts.append(f'<polyline points="{path}" fill="none" stroke="#b30000" stroke-width="2"/>')
    return "\n".join([*parts, "</svg>", ""])
