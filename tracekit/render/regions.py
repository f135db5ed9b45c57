"""The address space over time, as text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from tracekit.formats.errors import TracekitError
from tracekit.region_uses import OWN, USES
from tracekit.render.picture import picture_head
from tracekit.render.schedule import COLOURS
from tracekit.render.text import Json, Style, cell, more, table, traces_text
from tracekit.sizes import rounded

NONE = "The trace has no snapshots of the address space: `tracekit record --snapshots 1s` takes them."


def regions_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """A line for each snapshot, and one for each region."""
    result = report["result"]
    lines = [f"{report['module']}, {traces_text(report)}", ""]
    if not result["snapshots"]:
        return "\n".join([*lines, NONE]) + "\n"
    shown, regions = result["snapshots"][: limit or None], result["regions"][: limit or None]
    lines.append(style("address space over time", "bold"))
    lines += table(
        ("seconds", "resident", *USES),
        [(f"{row['time']:.3f}", rounded(row["resident"]), *(rounded(row[use]) for use in USES)) for row in shown],
        frozenset(range(2 + len(USES))),
        style,
    )
    lines += more(len(result["snapshots"]), len(shown), "snapshot")
    lines += ["", style("regions", "bold")]
    lines += table(
        ("address", "size", "access", "use", "from s", "to s", "what"),
        [
            (
                f"{row['first']:x}",
                rounded(row["bytes"]),
                row["protection"],
                row["use"],
                f"{row['from']:.3f}",
                f"{row['to']:.3f}",
                f"thread {row['thread']}" if row["thread"] else cell(row["name"]),
            )
            for row in regions
        ],
        frozenset({0, 1, 4, 5}),
        style,
    )
    lines += more(len(result["regions"]), len(regions), "region")
    return "\n".join(lines) + "\n"


def write_image(report: Json, path: str) -> None:
    """The picture that ``tracekit analyze --image`` asks for."""
    if not path.endswith(".svg"):
        raise TracekitError(f"The picture of an address space is drawn as .svg, not as {Path(path).name}.")
    Path(path).write_text(svg(report["result"]))


LEFT, WIDTH, TOP, HEIGHT = 90, 800, 40, 260


def svg(result: Json) -> str:
    """Bytes by use over time, on top of one another; the recorder's own are left out."""
    uses = [use for use in USES if use != OWN]
    rows = result["snapshots"]
    most = max((sum(row[use] for use in uses) for row in rows), default=0) or 1
    first = rows[0]["time"] if rows else 0.0
    last = max((row["time"] for row in rows), default=0.0)
    title = "Bytes of the address space by use, over the run"
    parts = picture_head(title, LEFT + WIDTH + 20, TOP + HEIGHT + 40)
    # The last snapshot lasts as long as the one before, so that one alone shows, too.
    step = (last - first) / (len(rows) - 1) if len(rows) > 1 else 1.0
    span = last + step - first
    edges = [LEFT + WIDTH * (row["time"] - first) / span for row in rows] + [LEFT + WIDTH]
    below = [0] * len(rows)
    for number, use in enumerate(uses):
        colour = COLOURS[number % len(COLOURS)]
        above = [low + row[use] for low, row in zip(below, rows)]
        points = _steps(edges, above, most) + _steps(edges, below, most)[::-1]
        largest = max((row[use] for row in rows), default=0)
        if largest:
            parts.append(
                f'<path d="M{"L".join(points)}Z" fill="{colour}"><title>{escape(use)}: at most {rounded(largest)}'
                "</title></path>"
            )
        parts.append(
            f'<rect x="{LEFT + 100 * number}" y="8" width="12" height="12" fill="{colour}"/>'
            f'<text x="{LEFT + 100 * number + 16}" y="18">{escape(use)}</text>'
        )
        below = above
    parts.append(
        f'<text x="{LEFT - 6}" y="{TOP + 10}" text-anchor="end">{rounded(most)}</text>'
        f'<text x="{LEFT - 6}" y="{TOP + HEIGHT}" text-anchor="end">0 B</text>'
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 18}">{first:.3f} s</text>'
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 18}" text-anchor="end">{last:.3f} s</text></svg>'
    )
    return "".join(parts) + "\n"


def _steps(edges: list[float], values: list[int], most: int) -> list[str]:
    """The corners of a line that keeps each value up to the next edge."""
    return [
        f"{edge:.1f} {TOP + HEIGHT * (1 - value / most):.1f}"
        for at, value in enumerate(values)
        for edge in (edges[at], edges[at + 1])
    ]
