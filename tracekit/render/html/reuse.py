"""The section of reuse."""

from __future__ import annotations

from tracekit import sizes
from tracekit.render.addresses import addresses_text
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.misses import by_misses, copies_text, joined, object_text
from tracekit.render.reuse import shown_points, svg


def section(report: Json, shown: Shown) -> str:
    """The curve as a drawing and as a table, and the rows; nothing of a trace without accesses."""
    result = report["result"]
    if not result["curve"]:
        return ""
    points = [
        f'<tr><th scope="row">{text(sizes.shown(point["size"]))}</th>{number_cell(point["misses"])}'
        f"{number_cell(point['miss_ratio'], format(point['miss_ratio'], '.4%'))}</tr>"
        for point in shown_points(result["curve"])
    ]
    curve = table("reuse-curve", "Misses by size", (("Cache", False), ("Misses", True), ("Share", True)), points)
    parts = [
        (
            f"<p>A fully associative cache with lines of {text(sizes.shown(result['summary']['line']))} and LRU "
            f"replacement{addresses_text(result['summary'])}.</p>"
            '<div class="scroll heat" role="region" aria-label="Miss-ratio curve" tabindex="0">'
            f"{svg(result['curve'])}</div><details><summary>The curve as a table</summary>{curve}</details>"
        )
    ]
    misses = [(f"Misses {sizes.shown(size)}", True) for size in result["summary"]["sizes"]]
    for name, of, order in (("instructions", copies_text, joined), ("objects", object_text, by_misses)):
        key = name.removesuffix("s")
        ordered = order(result[name])
        chosen = ordered[: shown.rows]
        rows = [
            f"<tr><td>{text(of(row))}</td>{number_cell(row['touches'])}{number_cell(row['cold'])}"
            f"{''.join(map(number_cell, row['misses']))}</tr>"
            for row in shown.names.shown(chosen)
        ]
        columns = ((key.capitalize(), False), ("Touches", True), ("First", True), *misses)
        parts.append(table(f"reuse-{name}", f"Touches by {key}", columns, rows))
        parts += more(len(ordered), len(chosen))
    return "\n".join(parts)
