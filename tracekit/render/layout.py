"""Profiles of layout as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.counted import counted
from tracekit.render.objects import object_name
from tracekit.render.places import without_folder
from tracekit.render.text import Json, Style, cell, more, table, traces_text

LONGEST = 90
"""Characters of a list of fields."""


def layout_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Structures with their fields and what to do, then objects, then loads."""
    result, folder = without_folder(report["result"], report)
    summary, structures = result["summary"], result["structures"]
    lines = [f"{report['module']}, {traces_text(report)}" + (f", files below {folder}" if folder else "")]
    lines.append(
        f"{counted(summary['accesses'], 'access')}, {summary['in_structures']:,} of them to "
        f"{counted(summary['structures'], 'structure')}; {counted(summary['visits'], 'visit')}"
    )
    for row in structures[: limit or None]:
        lines += ["", *_structure(row, style)]
    lines += more(len(structures), len(structures[: limit or None]), "structure")
    for name, heading in HEADINGS.items():
        if result.get(name):
            shown = result[name][: limit or None]
            lines += ["", style(heading, "bold"), *TABLES[name](shown, style)]
            lines += more(len(result[name]), len(shown), "row")
    return "\n".join(lines) + "\n"


def structure_name(row: Json) -> str:
    """`node in heap list.c:3:5`, `array of node in global table`, `24 bytes in heap list.c:3:5`.

    Elements of an array with others between, of which nothing is known, are `node every 64 bytes of heap list.c:3:5`.
    """
    name = row["type"] or counted(row["size"], "byte")
    if row.get("each"):
        return f"{name} every {counted(row['each'], 'byte')} of {object_name(row['group'])}"
    return f"{'array of ' if row['array'] else ''}{name} in {object_name(row['group'])}"


def _structure(row: Json, style: Style) -> list[str]:
    sizes = (row["size"], "byte"), (row["objects"], "object"), (row["visits"], "visit")
    counts = ", ".join(counted(number, what) for number, what in sizes)
    where = f"{row['in_order']:g}% in order, {counted(row['lines'], 'line')}"
    lines = [style(structure_name(row), "bold"), f"{counts}, {where}"]
    lines += _fields(row["fields"], style)
    for advice in row["advice"]:
        lines.append(style(f"{advice_text(advice)}: {saved_text(advice)}", "green"))
    for names in row["together"]:
        lines.append(f"together: {_listed(names)}")
    if row["apart"]:
        lines.append(f"apart: {_listed([f'{first} and {second}' for first, second in row['apart']])}")
    if row["also"]:
        lines.append(f"its memory may also be accessed as: {_listed(row['also'])}")
    lines += untouched_text(row)
    if row["holes"]:
        lines.append(f"holes: {counted(row['holes'], 'byte')}")
    return lines


def _fields(fields: Sequence[Json], style: Style) -> list[str]:
    """The fields as a table; what copies touch has a column where there are any."""
    bulk = any(field.get("in_bulk") for field in fields)
    cells = [
        (
            f"{field['offset']}",
            f"{field['size']}",
            field["field"],
            field["type"],
            f"{field['loads']:,}",
            f"{field['stores']:,}",
            *([f"{field['in_bulk']:,}"] if bulk else []),
            f"{field['percent']:.1f}",
            bar(field["percent"]),
        )
        for field in fields
    ]
    head = ("offset", "size", "field", "type", "loads", "stores", *(["in bulk"] if bulk else []), "% visits", "")
    return table(head, cells, frozenset({0, 1, *range(4, len(head) - 1)}), style)


def untouched_text(row: Json) -> list[str]:
    """Fields without a load or store of their own: what is known of them, a line each."""
    if "unseen" not in row:  # a profile of a version that did not tell the two apart
        return [f"no load or store of at most 16 bytes: {_listed(row['never'])}"] if row["never"] else []
    lines = []
    if row["only_in_bulk"]:
        times = {field["field"]: field["in_bulk"] for field in row["fields"]}
        listed = _listed([f"{name} ({times[name]:,})" for name in row["only_in_bulk"]])
        lines.append(f"only in bulk (copies, memset, the library; how often): {listed}")
    if row["unseen"]:
        lines.append(f"no access recorded: {_listed(row['unseen'])}")
    if row.get("open"):
        listed = _listed(row["open"])
        lines.append(
            f"array of open length, of which what lies behind {counted(row['size'], 'byte')} is not looked at: {listed}"
        )
    if row["unplaced"] and (row["only_in_bulk"] or row["unseen"] or row.get("advice")):
        accesses = counted(row["unplaced"], "access")
        lines.append(
            f"of {accesses} to these objects it is not known to what structure: any of its fields may be theirs"
        )
    return lines


def bar(percent: float, width: int = 20) -> str:
    """A share as a bar."""
    return "#" * round(width * percent / 100)


def advice_text(advice: Json) -> str:
    """What to do, in one line."""
    if advice["kind"] == "reorder":
        return f"reorder: {_listed(advice['order'])} ({counted(advice['size'], 'byte')})"
    keep, move = _listed(advice["keep"]), _listed(advice["move"])
    return (
        f"split: keep {keep} ({counted(advice['size'], 'byte')}); move {move} ({counted(advice['moved_size'], 'byte')})"
    )


def saved_text(advice: Json) -> str:
    """What it saves."""
    return f"saves {advice['percent']:g}% of the lines, {counted(advice['bytes_saved'], 'byte')}"


def _listed(names: Sequence[str]) -> str:
    """The first names; one at least, of which there may be a beginning."""
    text = ""
    for number, name in enumerate(names):
        if not number and len(name) > LONGEST:
            name = name[:LONGEST].rpartition(", ")[0] + ", ..." if ", " in name[:LONGEST] else name
        if number and len(text) + len(name) > LONGEST:
            return f"{text} and {len(names) - number} more"
        text += (", " if text else "") + name
    return text


def _pools(rows: Sequence[Json], style: Style) -> list[str]:
    cells = [
        (
            structure_name({**row, "array": False}),
            f"{row['visits']:,}",
            f"{row['in_order']:g}",
            f"{row['near']:g}",
            f"{row['bytes_saved']:,}",
        )
        for row in rows
    ]
    head = ("objects", "visits", "% in order", "% near", "bytes saved")
    return table(head, cells, frozenset({1, 2, 3, 4}), style)


def _clusters(rows: Sequence[Json], style: Style) -> list[str]:
    cells = [
        (
            _side(row["first"]),
            _side(row["then"]),
            f"{row['visits']:,}",
            f"{row['percent']:g}",
            f"{row['same_number']:g}",
        )
        for row in rows
    ]
    return table(("after", "comes", "visits", "%", "% same number"), cells, frozenset({2, 3, 4}), style)


def _side(row: Json) -> str:
    return f"{row['type'] + ' in ' if row['type'] else ''}{object_name(row['group'])}"


def _loads(rows: Sequence[Json], style: Style) -> list[str]:
    cells = [
        (cell(row["instruction"]), row["kind"], f"{row['begun']:,}", f"{row['percent']:g}", ahead_text(row))
        for row in rows
    ]
    return table(("load", "kind", "visits begun", "%", "prefetch"), cells, frozenset({2, 3}), style)


def ahead_text(row: Json) -> str:
    """How far ahead to prefetch, or why not."""
    if row["kind"] == "strided":
        far = f"{row['ahead']:,} ahead, {row['bytes_ahead']:+,} bytes" if row["ahead"] else "-"
        return f"stride {row['stride']:,}: {far}"
    if row["kind"] == "indirect":
        return f"{row['ahead'] or 1:,} ahead, through {cell(row['index'])}"
    if row["kind"] == "pointer":
        return f"each {row['gap']:,.1f} accesses, the address follows from the value loaded before"
    return "-"


HEADINGS = {
    "pools": "to pool: visited in the order of their making, and scattered",
    "clusters": "to cluster: visited one after the other",
    "loads": "loads that begin most visits",
}
TABLES: dict[str, Any] = {"pools": _pools, "clusters": _clusters, "loads": _loads}
