"""The sections of cache and tlb."""

from __future__ import annotations

from tracekit import sizes
from tracekit.render.caches import COUNTS, columns, level_row, summary_text
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.misses import by_misses, copies_text, joined, object_text


def section(report: Json, shown: Shown) -> str:
    """The levels and the rows; nothing of a trace without accesses."""
    result = report["result"]
    summary = result["summary"]
    if not summary["touches"]:
        return ""
    name = report["module"]
    levels = [
        f'<tr><th scope="row">{text(level["name"])}</th>{number_cell(*_size(level))}'
        f"{number_cell(level['ways'])}{''.join(number_cell(level[count]) for count in COUNTS if count in level)}"
        f"{number_cell(level['misses'] / max(level['hits'] + level['misses'], 1), level_row(level)[-1])}</tr>"
        for level in result["levels"]
    ]
    heads = [(head.capitalize(), True) for head in columns(result)]
    parts = [
        f"<p>{text(summary_text(summary))}.</p>",
        table(f"{name}-levels", "Levels", (("Level", False), *heads), levels),
    ]
    misses = [(f"{level['name']} misses", True) for level in result["levels"]]
    coherence = ("invalidations",) if "invalidations" in summary else ()
    misses += [(name.capitalize(), True) for name in coherence]
    for kind, of, order in (("instructions", copies_text, joined), ("objects", object_text, by_misses)):
        key = kind.removesuffix("s")
        ordered = order(result[kind])
        chosen = ordered[: shown.rows]
        rows = [
            f"<tr><td>{text(of(row))}</td>{number_cell(row['touches'])}{''.join(map(number_cell, row['misses']))}"
            f"{''.join(number_cell(row[name]) for name in coherence)}</tr>"
            for row in shown.names.shown(chosen)
        ]
        parts.append(
            table(f"{name}-{kind}", f"Misses by {key}", ((key.capitalize(), False), ("Touches", True), *misses), rows)
        )
        parts += more(len(ordered), len(chosen))
    return "\n".join(parts)


def _size(level: Json) -> tuple[int, str]:
    """Of a cache in bytes, of a TLB in entries."""
    if "entries" in level:
        return level["entries"], format(level["entries"], ",")
    return level["size"], sizes.shown(level["size"])
