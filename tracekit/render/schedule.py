"""Schedules as text and as a time line."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.program.function_names import brief
from tracekit.render.communication import role_text
from tracekit.render.heatmap import SHADES
from tracekit.render.picture import picture_head
from tracekit.render.text import Json, Style, cell, more, table, traces_text

COLUMNS = 72
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")
"""Of processors, again and again (Tableau's ten without pink and grey)."""


def schedule_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """A line for each thread: what it did in each part of the run."""
    result = report["result"]
    summary = result["summary"]
    lines = [f"{report['module']}, {traces_text(report)}", "", *summary_lines(summary)]
    shown = result["threads"][: limit or None]
    step = -(-summary["slices"] // COLUMNS)
    parts = [[sum(row["slices"][at : at + step]) for at in range(0, summary["slices"], step)] for row in shown]
    most = max((max(row) for row in parts), default=0)
    lines.append("")
    lines += table(
        ("thread", "accesses", "from s", "to s", "moves", "processors", "what it did over the run", "role"),
        [
            (
                cell(row["thread"]),
                cell(row["accesses"]),
                seconds(row["begin"]),
                seconds(row["end"]),
                cell(row["migrations"]),
                ",".join(map(str, row["processors"])) or "-",
                "|" + "".join(_shade(count, most) for count in counts) + "|",
                role_text(row["role"]),
            )
            for row, counts in zip(shown, parts)
        ],
        frozenset({0, 1, 2, 3, 4}),
        style,
    )
    lines += more(len(result["threads"]), len(shown), "thread")
    lines += ["", style("processors", "bold")]
    lines += table(
        ("processor", "accesses", "seconds"),
        [(cell(row["processor"]), cell(row["accesses"]), seconds(row["nanoseconds"])) for row in result["processors"]],
        frozenset({0, 1, 2}),
        style,
    )
    return "\n".join(lines) + "\n"


def summary_lines(summary: Json) -> list[str]:
    """How much is known of time."""
    if not summary["hand_overs"]:
        return ["No thread filled a buffer, or the trace is of an older recorder: there are no times."]
    timed = summary["accesses_timed"] / max(summary["accesses"], 1)
    return [
        (
            f"{counted(summary['hand_overs'], 'hand-over')} of {counted(summary['threads'], 'thread')} in "
            f"{seconds(summary['nanoseconds'])} seconds; {counted(summary['migrations'], 'move')} to another "
            f"processor; {timed:.1%} of the accesses lie before a thread's last hand-over, so their time is known"
        )
    ]


def seconds(nanoseconds: int | None) -> str:
    """Seconds with milliseconds."""
    return "-" if nanoseconds is None else f"{nanoseconds / 1e9:.3f}"


def _shade(count: int, most: int) -> str:
    return SHADES[0] if count == 0 else SHADES[max(1, round(count / most * (len(SHADES) - 1)))]


def write_image(report: Json, path: str) -> None:
    """The picture that ``tracekit analyze --image`` asks for."""
    if not path.endswith(".svg"):
        raise TracekitError(f"The picture of a schedule is drawn as .svg, not as {Path(path).name}.")
    Path(path).write_text(svg(report["result"]))


ROW, LEFT, WIDTH, TOP, MOST_THREADS = 22, 200, 800, 40, 64


def svg(result: Json) -> str:
    """A line for each thread: colours are processors, heights how much it did."""
    threads, summary = result["threads"][:MOST_THREADS], result["summary"]
    most = max((max(row["slices"], default=0) for row in threads), default=0) or 1
    height, width = TOP + ROW * len(threads) + 30, LEFT + WIDTH + 20
    title = "Threads over time: the colour is the processor, the height how many accesses"
    parts = picture_head(title, width, height)
    for place, row in enumerate(result["processors"][:16]):
        colour = COLOURS[row["processor"] % len(COLOURS)]
        x = LEFT + 50 * place
        parts.append(
            f'<rect x="{x}" y="6" width="12" height="12" fill="{colour}"/><text x="{x + 16}" y="16">'
            f"{row['processor']}</text>"
        )
    bar = WIDTH / max(summary["slices"], 1)
    for number, row in enumerate(threads):
        y = TOP + ROW * number
        name = f"{row['thread']} {brief(row['role'])}"
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name[:28])}'
            f"<title>{escape(name)}</title></text>"
            f'<path d="M{LEFT} {y + ROW - 2}h{WIDTH}" stroke="#ddd"/>'
        )
        for place, (count, on) in enumerate(zip(row["slices"], row["on"])):
            if count:
                tall = max((ROW - 4) * count / most, 1)
                parts.append(
                    f'<rect x="{LEFT + bar * place:.1f}" y="{y + ROW - 2 - tall:.1f}" width="{max(bar, 0.5):.2f}" '
                    f'height="{tall:.1f}" fill="{COLOURS[on % len(COLOURS)] if on >= 0 else "#999"}"/>'
                )
    for step in range(5):
        parts.append(
            f'<text x="{LEFT + WIDTH * step / 4:.0f}" y="{height - 10}" text-anchor="middle">'
            f"{summary['nanoseconds'] * step / 4e9:.3g} s</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
