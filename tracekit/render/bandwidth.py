"""A drawing of bandwidth: what memory gives and gets for each access, over the run."""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.render.picture import picture_head
from tracekit.render.text import Json

WIDTH, HEIGHT = 560, 200
LEFT, RIGHT, TOP, BELOW = 76, 16, 34, 34
STEPS = 4
SERIES = (("memory_read_bytes", "read", "#b30000", ""), ("memory_written_bytes", "written", "#08519c", "5 3"))
"""Column, what it is called, colour, dashes."""


def svg(slices: Sequence[Json]) -> str:
    """Two stepped lines as an SVG element: accesses to the right, bytes of memory traffic for each access upwards."""
    last = slices[-1]["first_access"] + slices[-1]["accesses"]
    most = max(row[name] / row["accesses"] for row in slices for name, *_ in SERIES) or 1.0

    def x(access: int) -> float:
        return float(LEFT + WIDTH * access / last)

    def y(row: Json, name: str) -> float:
        return float(TOP + HEIGHT * (1 - row[name] / row["accesses"] / most))

    title = "Bytes between caches and memory for each access, over the run"
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW
    parts = picture_head(title, width, height)
    for step in range(STEPS + 1):
        at = TOP + HEIGHT * (1 - step / STEPS)
        parts.append(
            f'<path d="M{LEFT} {at:.1f}h{WIDTH}" stroke="#ccc"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{most * step / STEPS:.3g} B</text>'
            f'<text x="{LEFT + WIDTH * step / STEPS:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">'
            f"{step / STEPS:.0%}</text>"
        )
    for number, (name, label, colour, dashes) in enumerate(SERIES):
        steps = " ".join(
            f"{x(row['first_access']):.1f},{y(row, name):.1f} {x(row['first_access'] + row['accesses']):.1f},"
            f"{y(row, name):.1f}"
            for row in slices
        )
        line = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dashes}"'
        parts.append(
            f'<polyline points="{steps}" {line}/><path d="M{LEFT + 110 * number} 16h24" {line}/>'
            f'<text x="{LEFT + 110 * number + 30}" y="20">{label}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
