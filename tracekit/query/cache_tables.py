"""Tables of the simulator of caches and of reuse distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracekit.query.places import OBJECT_COLUMNS, instruction_cells, instruction_columns, object_cells
from tracekit.query.schema import Json, Table, number, numbers, ratio, text


def _levels(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["levels"]:
        touches = row["hits"] + row["misses"]
        names = ("name", "size", "ways", "hits", "misses", "write_backs", "prefetches")
        yield (*(row[name] for name in names), row["misses"] / touches if touches else None)


def _instructions(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["instructions"]:
        yield (*instruction_cells(row["instruction"]), row["touches"], row["misses"])


def _objects(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["objects"]:
        yield (*object_cells(row["object"]), row["touches"], row["misses"])


def _curve(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["curve"]:
        yield (row["size"], row["misses"], row["miss_ratio"])


def _reuse_instructions(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["instructions"]:
        yield (*instruction_cells(row["instruction"]), row["touches"], row["cold"], row["misses"])


def _reuse_objects(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["objects"]:
        yield (*object_cells(row["object"]), row["touches"], row["cold"], row["misses"])


_TOUCHES = number("touches", "lines of the cache that loads and stores touch")
_MISSES = numbers("misses", "of them not found, level by level: misses[1] is of the first")
_COLD = number("cold", "of them never touched before")
_SIZED = numbers("misses", "of them not found in a cache of each size that the module's option `sizes` has")

TABLES = (
    Table(
        "cache_levels",
        ("cache",),
        "The levels of the simulated cache; --set cache.levels=... says which there are.",
        (
            text("name", "L1, L2, ..."),
            number("size", "bytes"),
            number("ways", "lines of a set"),
            number("hits", "touches that it holds"),
            number("misses", "touches that it does not"),
            number("write_backs", "changed lines that it gave up"),
            number("prefetches", "lines that were fetched ahead"),
            ratio("miss_ratio", "misses of hits and misses"),
        ),
        _levels,
    ),
    Table(
        "cache_instructions",
        ("cache",),
        "Misses of the simulated cache, instruction by instruction.",
        (*instruction_columns(), _TOUCHES, _MISSES),
        _instructions,
    ),
    Table(
        "objects",
        ("cache",),
        "Objects, by allocation site or variable, with touches and misses of the simulated cache.",
        (*OBJECT_COLUMNS, _TOUCHES, _MISSES),
        _objects,
    ),
    Table(
        "reuse_curve",
        ("reuse",),
        "How often a cache of each size, fully associative with LRU, would miss.",
        (
            number("size", "bytes"),
            number("misses", "touches that it would not hold"),
            ratio("miss_ratio", "of all touches"),
        ),
        _curve,
    ),
    Table(
        "reuse_instructions",
        ("reuse",),
        "Misses by exact reuse distances, instruction by instruction.",
        (*instruction_columns(), _TOUCHES, _COLD, _SIZED),
        _reuse_instructions,
    ),
    Table(
        "reuse_objects",
        ("reuse",),
        "Misses by exact reuse distances, by allocation site or variable.",
        (*OBJECT_COLUMNS, _TOUCHES, _COLD, _SIZED),
        _reuse_objects,
    ),
)
