"""The section of layout: a picture of each structure with heat per field, its fields as a table, and what to do."""

from __future__ import annotations

from tracekit.counted import counted
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, number_cell, table, text
from tracekit.render.layout import advice_text, ahead_text, saved_text, structure_name, untouched_text
from tracekit.render.text import cell

LINE = 64
WIDTH = 768
HEIGHT = 28
DARKEST = 0.78
"""Opacity of a field that each visit uses: text on it keeps a contrast of 4.5, on light pages and on dark ones."""
MOST_LINES = 16
"""Lines of a structure that the picture has."""
CHARACTER = 7.5
"""Width of a character of a field's name, and of what lies at its left and right."""
LEGEND = (
    f"In the pictures a row is {LINE} bytes, a line of the cache; the redder a field, the more of the visits touch it. "
    "What has no frame is padding."
)


def section(report: Json, shown: Shown) -> str:
    """Structures, then loads; nothing of a trace without either."""
    result = shown.names.shown(report["result"])
    parts = [_structure(number, row) for number, row in enumerate(result["structures"][: shown.rows])]
    if result.get("loads"):
        rows = [
            f"<tr><td>{text(cell(row['instruction']))}</td><td>{text(row['kind'])}</td>{number_cell(row['begun'])}"
            f"{number_cell(row['percent'])}<td>{text(ahead_text(row))}</td></tr>"
            for row in result["loads"][: shown.rows]
        ]
        head = (("Load", False), ("Kind", False), ("Visits begun", True), ("%", True), ("Prefetch", False))
        parts.append(table("layout-loads", "Loads that begin most visits", head, rows))
    if result["structures"]:
        parts.insert(0, f'<p class="legend">{text(LEGEND)}</p>')
    return "\n".join(parts)


def _structure(number: int, row: Json) -> str:
    name = structure_name(row)
    rows = [
        f'<tr><th scope="row">{text(field["field"])}</th><td>{text(field["type"])}</td>{number_cell(field["offset"])}'
        f"{number_cell(field['size'])}{number_cell(field['loads'])}{number_cell(field['stores'])}"
        f"{number_cell(field['percent'])}</tr>"
        for field in row["fields"]
    ]
    head = (
        *(("Field", False), ("Type", False), ("Offset", True), ("Size", True), ("Loads", True), ("Stores", True)),
        ("% of visits", True),
    )
    advice = "".join(f"<li>{text(advice_text(each))}: {text(saved_text(each))}</li>" for each in row["advice"])
    return (
        f"<h3>{text(name)}</h3><p>{counted(row['size'], 'byte')}, {counted(row['objects'], 'object')}, "
        f"{counted(row['visits'], 'visit')}.</p>"
        f'<div class="scroll" role="region" aria-label="{text(f"Picture of {name}")}" tabindex="0">{picture(row)}</div>'
        f"{f'<ul>{advice}</ul>' if advice else ''}"
        f"{table(f'layout-{number}', f'Fields of {name}', head, rows)}"
        f"{''.join(f'<p>{text(line[0].upper() + line[1:])}.</p>' for line in untouched_text(row))}"
    )


def picture(row: Json) -> str:
    """Lines of a cache downwards, bytes to the right; the more of the visits touch a field, the stronger its colour."""
    lines = min(-(-row["size"] // LINE), MOST_LINES)
    hot = ", ".join(f"{field['field']} {field['percent']:g}%" for field in row["fields"] if field["percent"])
    boxes = "".join(_boxes(field, lines) for field in row["fields"])
    label = text(f"{structure_name(row)}: share of the visits that touch each field: {hot or 'none'}")
    return (
        f'<svg class="layout" role="img" aria-label="{label}" width="{WIDTH}" height="{lines * HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {lines * HEIGHT}">{boxes}</svg>'
    )


def _label(name: str, room: int) -> str:
    """As much of a field's name as has so many characters: all, or the last of its parts, or the beginning of this.

    Of several fields that share bytes it is the beginning of all their names.
    """
    last = name if len(name) <= room or ", " in name else name.rpartition(".")[2]
    if len(last) <= room:
        return last
    return last[: room - 1] + "\N{HORIZONTAL ELLIPSIS}" if room > 2 else ""


def _boxes(field: Json, lines: int) -> str:
    """A field, which may lie in several lines."""
    scale, made = WIDTH / LINE, []
    at, end = field["offset"], field["offset"] + field["size"]
    while at < end and at // LINE < lines:
        stop = min(end, (at // LINE + 1) * LINE)
        x, y, width = at % LINE * scale, at // LINE * HEIGHT, (stop - at) * scale
        label = _label(field["field"], int(width / CHARACTER) - 1)
        made.append(
            f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{HEIGHT}" fill="#d7301f" '
            f'fill-opacity="{DARKEST * field["percent"] / 100:.2f}" stroke="currentColor">'
            f"<title>{text(field['field'])}: {field['percent']:g}%</title></rect>"
            f'<text x="{x + 4:g}" y="{y + HEIGHT - 9}" font-size="12" fill="currentColor">{text(label)}</text>'
        )
        at = stop
    return "".join(made)
