"""Simulated caches and TLBs as text: the levels, and what misses most."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit import sizes
from tracekit.render.addresses import addresses_text
from tracekit.render.misses import misses_text
from tracekit.render.text import Json, Style, cell, table

COUNTS = {"hits": "hits", "misses": "misses", "write_backs": "write-backs", "prefetches": "prefetches"}
"""Columns of a level, and what they are called."""


def cache_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The levels, and rows with most misses of the first level first."""
    result = report["result"]
    summary = result["summary"]
    levels = table(
        ("level", *columns(result)), [level_row(level) for level in result["levels"]], frozenset(range(1, 8)), style
    )
    coherence = ("invalidations",) if "invalidations" in summary else ()

    def cells(row: Json) -> list[str]:
        return [cell(number) for number in (row["touches"], *row["misses"], *(row[each] for each in coherence))]

    misses = [f"{level['name']} misses" for level in result["levels"]]
    head = [summary_text(summary), "", *levels]
    return misses_text(report, head, ("touches", *misses, *coherence), cells, limit, style)


def summary_text(summary: Json) -> str:
    """Of caches or of TLBs: what was touched, and what that cost."""
    if "page" in summary:
        pages = f"pages of {sizes.shown(summary['page'])}"
        return f"{summary['touches']:,} touches of {pages}, {summary['walks']:,} page walks"
    cores = ""
    if "invalidations" in summary:
        cores = f", {summary['invalidations']:,} invalidations and {summary['transfers']:,} transfers between cores"
    return (
        f"{summary['touches']:,} touches of lines of {sizes.shown(summary['line'])}, "
        f"{summary['memory_writes']:,} writes to memory{cores}{addresses_text(summary)}"
    )


def columns(result: Json) -> list[str]:
    """What stands beside the name of a level."""
    known = result["levels"][0]
    size = "entries" if "entries" in known else "size"
    return [size, "ways", *(text for name, text in COUNTS.items() if name in known), "miss ratio"]


def level_row(level: Json) -> list[str]:
    """A level; the ratio is of the touches that reach it."""
    return [
        level["name"],
        sizes.shown(level["size"]) if "size" in level else cell(level["entries"]),
        cell(level["ways"]),
        *(cell(level[count]) for count in COUNTS if count in level),
        format(level["misses"] / max(level["hits"] + level["misses"], 1), ".4%"),
    ]
