"""Simulated caches and TLBs as text: the levels, and what misses most."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit import sizes
from tracekit.render.addresses import addresses_text
from tracekit.render.objects import object_name
from tracekit.render.places import instruction_text, without_folder
from tracekit.render.reuse import by_misses
from tracekit.render.text import Json, Style, cell, more, table, traces_text

COUNTS = {"hits": "hits", "misses": "misses", "write_backs": "write-backs", "prefetches": "prefetches"}
"""Columns of a level, and what they are called."""


def cache_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The levels, and rows with most misses of the first level first."""
    result = report["result"]
    summary = result["summary"]
    tables, folder = without_folder(
        {name: by_misses(result[name])[: limit or None] for name in ("instructions", "objects")}, report
    )
    below = f", files below {folder}" if folder else ""
    lines = [
        f"{report['module']}, {traces_text(report)}{below}",
        "",
        summary_text(summary),
        "",
        *table(
            ("level", *columns(result)), [level_row(level) for level in result["levels"]], frozenset(range(1, 8)), style
        ),
    ]
    names = [level["name"] for level in result["levels"]]
    coherence = ("invalidations",) if "invalidations" in summary else ()
    for name, of in (("instructions", instruction_text), ("objects", object_name)):
        key = name.removesuffix("s")
        lines += ["", style(name, "bold")]
        lines += table(
            (key, "touches", *(f"{level} misses" for level in names), *coherence),
            [
                (
                    of(row[key]),
                    cell(row["touches"]),
                    *map(cell, row["misses"]),
                    *(cell(row[each]) for each in coherence),
                )
                for row in tables[name]
            ],
            frozenset(range(1, 3 + len(names))),
            style,
        )
        lines += more(len(result[name]), len(tables[name]), key)
    return "\n".join(lines) + "\n"


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
    """What is told of a level beside its name."""
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
