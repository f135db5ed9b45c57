"""Task graphs as text and as a picture: work and span, the critical path, groups of nodes, what if."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.program.function_names import brief
from tracekit.render.names import brief_step
from tracekit.render.picture import picture_head
from tracekit.render.places import place_text, without_folder
from tracekit.render.text import Json, Style, cell, clipped, more, table, traces_text

PROCESSORS = (2, 4, 8, 16, 32, 64)
LONGEST = 56
"""Letters of a place in the picture, and of a context in a table."""


def taskgraph_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The tables, what lies on the critical path first."""
    result = report["result"]
    chosen = {
        "lines": [row for row in result["lines"] if row["critical_work"]][: limit or None],
        "groups": by_critical(result["groups"])[: limit or None],
        "what_if": result["what_if"][: limit or None],
    }
    tables, folder = without_folder(chosen, report)
    below = f", files below {folder}" if folder else ""
    summary = result["summary"]
    lines = [f"{report['module']}, {traces_text(report)}{below}", "", *summary_lines(summary)]
    lines += ["", style("most speedup that the graph allows", "bold"), *_speedup_table(summary, style)]
    lines += ["", style("critical path by source line", "bold"), *_line_table(tables["lines"], summary["span"], style)]
    lines += more(sum(row["critical_work"] > 0 for row in result["lines"]), len(tables["lines"]), "line")
    lines += ["", style("nodes by where they begin", "bold")]
    lines += _group_table(tables["groups"], has_footprints(result), style)
    lines += more(len(result["groups"]), len(tables["groups"]), "group")
    if tables["what_if"]:
        lines += ["", style("what if", "bold"), *_what_if_table(tables["what_if"], style)]
    return "\n".join(lines) + "\n"


def _speedup_table(summary: Json, style: Style) -> list[str]:
    bounds = [speedup(summary, number) for number in PROCESSORS]
    rows = [
        ("at most", *(f"{most:.2f}" for _, most in bounds)),
        ("at least", *(f"{least:.2f}" for least, _ in bounds)),
    ]
    return table(("processors", *map(str, PROCESSORS)), rows, frozenset(range(1, len(PROCESSORS) + 1)), style)


def _line_table(lines: Sequence[Json], span: int, style: Style) -> list[str]:
    """Lines with their part of the critical path, whose length is `span`."""
    rows = [
        (
            cell(row["critical_work"]),
            f"{row['critical_work'] / max(span, 1):.1%}",
            cell(row["work"]),
            line_text(row["line"]),
        )
        for row in lines
    ]
    return table(("on the path", "share", "all work", "line"), rows, frozenset({0, 1, 2}), style)


def _group_table(groups: Sequence[Json], measured: bool, style: Style) -> list[str]:
    """Groups of nodes, with their working sets if they are measured."""
    heads = (
        *("nodes", "work", "on the path", "longest"),
        *(FOOTPRINTS if measured else ()),
        *("kind", "begins", "thread created"),
    )
    return table(heads, [group_cells(row, measured) for row in groups], frozenset(range(6 if measured else 4)), style)


def _what_if_table(rows: Sequence[Json], style: Style) -> list[str]:
    heads = ("work", "span", "parallelism", "faster")
    return table(heads, [what_if_cells(row) for row in rows], frozenset({0, 1, 2}), style)


def group_cells(row: Json, measured: bool) -> tuple[str, ...]:
    """A group of nodes, with its working sets if they are measured."""
    return (
        cell(row["count"]),
        cell(row["work"]),
        cell(row["critical_work"]),
        cell(row["longest"]),
        *(map(cell, footprints_of(row)) if measured else ()),
        row["group"]["kind"],
        short_context(row["group"]["begins"]),
        short_context(row["group"]["created"]),
    )


def line_text(line: Json) -> str:
    """A line and its function; of one that was inlined also the function that it was inlined into, if that is known."""
    text = f"{place_text(line)} {clipped(line['function'])}"
    within = line.get("within", line["function"])
    return text if within == line["function"] else f"{text}, in {clipped(within)}"


def summary_lines(summary: Json) -> list[str]:
    """Work, span and parallelism, and what the graph is made of."""
    nodes, edges = summary["nodes"], summary["edges"]
    lines = [
        (
            f"work {summary['work']:,} {summary['counted_in']}, span {summary['span']:,}: "
            f"parallelism {parallelism(summary):.2f}"
        )
    ]
    if edges["lock"]:
        without = summary["work"] / max(summary["span_without_locks"], 1)
        lines.append(f"without the order of locks: span {summary['span_without_locks']:,}, parallelism {without:.2f}")
    lines.append(
        f"{counted(nodes['task'], 'task')} of {counted(summary['threads'], 'thread')}; "
        f"{counted(nodes['create'], 'creation')}, {counted(nodes['join'], 'join')}, "
        f"{counted(nodes['barrier'], 'barrier')}, {counted(nodes['sync'], 'other synchronisation')}; "
        f"{counted(sum(edges.values()), 'edge')}"
    )
    lines.append(
        f"{counted(summary['blocks'], 'block')}, {counted(summary['loads'], 'load')} and "
        f"{counted(summary['stores'], 'store')} of {counted(summary['bytes'], 'byte')}"
    )
    if summary["broken_records"]:
        lines.append(f"{counted(summary['broken_records'], 'record')} broke the rules; see: tracekit check")
    return lines


def parallelism(row: Json) -> float:
    """Work over span."""
    return float(row["work"] / max(row["span"], 1))


def speedup(summary: Json, processors: int) -> tuple[float, float]:
    """Bounds on the speedup of a scheduler that leaves no processor idle while a task could run (Graham, Brent)."""
    work, span = max(summary["work"], 1), summary["span"]
    return work / ((work - span) / processors + span), min(processors, work / max(span, 1))


def by_critical(rows: Sequence[Json]) -> list[Json]:
    """Groups with most work on the critical path first."""
    return sorted(rows, key=lambda row: (-row["critical_work"], -row["work"], row["first"]))


FOOTPRINTS = ("bytes each", "most bytes")
"""Heads of the columns of working sets: the mean over a group's nodes, and the largest."""


def has_footprints(result: Json) -> bool:
    """Whether groups have the working sets of their nodes."""
    return bool(result["groups"]) and all("footprint" in row for row in result["groups"])


def footprints_of(row: Json) -> tuple[int, int]:
    """Bytes that a node of a group touches, on average and at most."""
    return round(row["footprint"] / max(row["count"], 1)), row["largest_footprint"]


def context_text(context: Json | None) -> str:
    """`main > main:12:3`; of what began with the program or a thread, nothing."""
    if context is None:
        return "-"
    return " > ".join([context["root"], *context["path"]])


def short_context(context: Json | None) -> str:
    """The root and as many of the last steps as fit in a cell, at least one: `main > ... > loop f:3`.

    If not all do, functions are named without their parameters.
    """
    whole = context_text(context)
    if context is not None and len(whole) > LONGEST:
        root, *path = (brief_step(step, 0) for step in (context["root"], *context["path"]))
        context = {"root": root, "path": path}
        whole = context_text(context)
    if context is None or len(whole) <= LONGEST or len(context["path"]) < 2:
        return clipped(whole)
    last = [clipped(context["path"][-1])]
    for step in reversed(context["path"][1:-1]):
        if len(" > ".join([context["root"], "...", step, *last])) > LONGEST:
            break
        last.insert(0, step)
    return " > ".join([clipped(context["root"]), "...", *last])


def what_if_cells(row: Json) -> tuple[str, ...]:
    """Work and span if something is faster."""
    faster = ", ".join(f"{clipped(brief(function['name']))} {function['factor']:g} times" for function in row["faster"])
    return cell(row["work"]), cell(row["span"]), f"{parallelism(row):.2f}", faster


# -- the picture ---------------------------------------------------------------------------------------

ROWS = 60
"""Groups that the picture shows."""
HEIGHT, ARCS, LABELS, BARS, MARGIN = 20, 130, 560, 260, 30
COLOURS = {
    "continue": "#999999",
    "create": "#1a7f37",
    "join": "#08519c",
    "barrier": "#7b3294",
    "lock": "#b35806",
    "signal": "#c51b7d",
}


def write_image(report: Json, path: str) -> None:
    """The picture that ``tracekit analyze --image`` asks for."""
    if not path.endswith(".svg"):
        raise TracekitError(f"The picture of a task graph is drawn as .svg, not as {Path(path).name}.")
    Path(path).write_text(svg(report["result"]))


def svg(result: Json) -> str:
    """Groups of tasks from the first to the last, arcs for what orders them, bars of their work.

    A graph of any size has as many rows as its tasks have contexts, but no more than ROWS.
    """
    tasks = by_critical([row for row in result["groups"] if row["group"]["kind"] == "task"])
    kept = sorted(tasks[:ROWS], key=lambda row: (row["first"], row["group"]["id"]))
    place = {row["group"]["id"]: number for number, row in enumerate(kept)}
    width, height = ARCS + LABELS + BARS, MARGIN + HEIGHT * len(kept) + 30
    title = "Groups of tasks of the graph, and what orders them"
    parts = [*picture_head(title, width, height), *_key()]
    for source, destination, kind, count in between_tasks(result):
        if source in place and destination in place:
            parts.append(_arc(place[source], place[destination], {"kind": kind, "count": count}, max(len(kept), 2)))
    most = max((row["work"] for row in kept), default=0) or 1
    for number, row in enumerate(kept):
        parts += _row(number, row, most)
    if len(tasks) > len(kept):
        left = tasks[len(kept) :]
        rest = f"... and {sum(row['count'] for row in left):,} tasks in {counted(len(left), 'more group')}"
        parts.append(f'<text x="{ARCS}" y="{MARGIN + HEIGHT * len(kept) + 14}">{rest}</text>')
    return "\n".join([*parts, "</svg>", ""])


def between_tasks(result: Json) -> list[tuple[str, str, str, int]]:
    """Source, destination, kind and count of what orders groups of tasks, whatever events lie between them.

    The kind is that of the first edge on the way that is more than the next thing that a thread does; the count is
    that of the rarest edge there.
    """
    is_task = {row["group"]["id"]: row["group"]["kind"] == "task" for row in result["groups"]}
    leading: dict[str, list[Json]] = {}
    for edge in result["group_edges"]:
        leading.setdefault(edge["source"], []).append(edge)
    found: dict[tuple[str, str, str], int] = {}
    for source in (name for name, task in is_task.items() if task):
        seen: set[tuple[str, str]] = set()
        ways = [(source, "continue", 0)]
        while ways:
            at, kind, count = ways.pop()
            for edge in leading.get(at, ()):
                way = (edge["destination"], kind if kind != "continue" else edge["kind"])
                times = min(count or edge["count"], edge["count"])
                if is_task[way[0]]:
                    key = (source, *way)
                    found[key] = max(found.get(key, 0), times)
                elif way not in seen:
                    seen.add(way)
                    ways.append((*way, times))
    return [(*key, count) for key, count in found.items()]


def _key() -> list[str]:
    parts = []
    for number, (kind, colour) in enumerate(COLOURS.items()):
        at = ARCS + 90 * number
        parts.append(
            f'<path d="M{at} 14h20" stroke="{colour}" stroke-width="2"/><text x="{at + 25}" y="18">{kind}</text>'
        )
    at = ARCS + LABELS
    parts.append(
        f'<text x="{at}" y="18">work,</text><text x="{at + 42}" y="18" fill="#b30000">on the critical path</text>'
    )
    return parts


def _arc(source: int, destination: int, edge: Json, rows: int) -> str:
    """Downwards on the outer side, upwards (a group that comes again) dashed."""
    first, last = (MARGIN + HEIGHT * number + HEIGHT // 2 for number in (source, destination))
    reach = 14 + (ARCS - 30) * math.sqrt(abs(destination - source) / rows)
    thick = 1 + math.log10(max(edge["count"], 1))
    dashes = ' stroke-dasharray="4 3"' if destination <= source else ""
    x = ARCS - 6
    title = f"{edge['kind']}: {edge['count']:,}"
    return (
        f'<path d="M{x} {first}C{x - reach:.0f} {first} {x - reach:.0f} {last} {x} {last}" fill="none" '
        f'stroke="{COLOURS[edge["kind"]]}" stroke-width="{thick:.1f}" opacity="0.75"{dashes}>'
        f"<title>{escape(title)}</title></path>"
    )


def _row(number: int, row: Json, most: int) -> list[str]:
    y = MARGIN + HEIGHT * number
    group = row["group"]
    place = context_text(group["begins"])
    if len(place) > LONGEST:
        place = f"...{place[-LONGEST:]}"
    label = f"{row['count']:,} {group['kind']} {place}"
    whole = (
        f"{group['kind']}, begins {context_text(group['begins'])}, thread created {context_text(group['created'])}: "
        f"{row['count']:,} nodes, work {row['work']:,}, on the critical path {row['critical_work']:,}"
    )
    weight = ' font-weight="bold"' if row["on_critical_path"] else ""
    parts = [f'<text x="{ARCS}" y="{y + 14}"{weight}>{escape(label)}<title>{escape(whole)}</title></text>']
    for column, colour in (("work", "#bbb"), ("critical_work", "#b30000")):
        bar = (BARS - 80) * row[column] / most
        if row[column]:
            parts.append(
                f'<rect x="{ARCS + LABELS}" y="{y + 4}" width="{max(bar, 1):.1f}" height="12" fill="{colour}"/>'
            )
    if row["work"]:
        at = ARCS + LABELS + (BARS - 80) * row["work"] / most + 4
        parts.append(f'<text x="{at:.0f}" y="{y + 14}">{row["work"]:,}</text>')
    return parts
