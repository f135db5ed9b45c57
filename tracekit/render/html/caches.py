"""The section of cache."""

from __future__ import annotations

from tracekit import sizes
from tracekit.render.caches import COUNTS, level_row
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, number_cell, table, text
from tracekit.render.objects import object_name
from tracekit.render.places import instruction_text
from tracekit.render.reuse import by_misses


def section(report: Json, shown: Shown) -> str:
    """The levels and the rows; nothing of a trace without accesses."""
    result = report["result"]
    summary = result["summary"]
    if not summary["touches"]:
        return ""
    levels = [
        f'<tr><th scope="row">{text(level["name"])}</th>{number_cell(level["size"], sizes.shown(level["size"]))}'
        f"{number_cell(level['ways'])}{''.join(number_cell(level[count]) for count in COUNTS)}"
        f"{number_cell(level['misses'] / max(level['hits'] + level['misses'], 1), level_row(level)[-1])}</tr>"
        for level in result["levels"]
    ]
    columns = [
        (name, True) for name in ("Size", "Ways", *(name.capitalize() for name in COUNTS.values()), "Miss ratio")
    ]
    parts = [
        (
            f"<p>{summary['touches']:,} touches of lines of {text(sizes.shown(summary['line']))}, "
            f"{summary['memory_writes']:,} writes to memory.</p>"
        ),
        table("cache-levels", "Levels", (("Level", False), *columns), levels),
    ]
    misses = [(f"{level['name']} misses", True) for level in result["levels"]]
    for name, of in (("instructions", instruction_text), ("objects", object_name)):
        key = name.removesuffix("s")
        chosen = by_misses(result[name])[: shown.rows]
        rows = [
            f"<tr><td>{text(of(row[key]))}</td>{number_cell(row['touches'])}{''.join(map(number_cell, row['misses']))}"
            "</tr>"
            for row in shown.names.shown(chosen)
        ]
        parts.append(
            table(f"cache-{name}", f"Misses by {key}", ((key.capitalize(), False), ("Touches", True), *misses), rows)
        )
        if len(result[name]) > len(chosen):
            parts.append(f"<p>... and {len(result[name]) - len(chosen):,} more rows.</p>")
    return "\n".join(parts)
