"""Tables of what instructions and lines do to memory: accesses, value_pattern, histobin, footprint, heatmap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tracekit.query.places import instruction_cells, instruction_columns
from tracekit.query.schema import Json, Table, View, number, ratio, text


def _instructions(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["instructions"]:
        yield (*instruction_cells(row["instruction"]), row["loads"], row["stores"], row["bytes"])


def _values(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["instructions"]:
        yield (*instruction_cells(row["instruction"]), row["count"], row["pattern"], json.dumps(row["value"]))


def _bits(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["accesses"]:
        yield tuple(row[name] for name in ("kind", "size", "accesses", "ones", "zeros"))


def _footprint(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["slices"]:
        names = ("first_access", "nanoseconds", "accesses", "touched_bytes", "new_bytes", "total_bytes")
        yield tuple(row.get(name) for name in names)


def _heatmap(report: Json) -> Iterator[tuple[Any, ...]]:
    """Only cells in which something happened."""
    summary = report["result"]["summary"]
    accesses, length = summary.get("accesses_per_slice"), summary.get("nanoseconds_per_slice")
    for row in report["result"]["rows"]:
        for slice_, (loads, stores) in enumerate(zip(row["loads"], row["stores"])):
            if loads or stores:
                first, begin = (None if each is None else slice_ * each for each in (accesses, length))
                yield (row["start"], summary["bytes_per_row"], first, accesses, begin, loads, stores)


_LOADS = number("loads", "how often it loads")
_STORES = number("stores", "how often it stores")
_BYTES = number("bytes", "bytes that both move")
_ACCESSES = number("accesses", "loads and stores")

TABLES = (
    Table(
        "instructions",
        ("accesses",),
        "Loads and stores, instruction by instruction.",
        (*instruction_columns(), _LOADS, _STORES, _BYTES),
        _instructions,
    ),
    Table(
        "value_patterns",
        ("value_pattern",),
        "Instructions whose value follows a pattern; needs a trace with values.",
        (
            *instruction_columns(),
            number("count", "how often it ran"),
            text("pattern", "constant, or, with the module's options, linear or set"),
            text("value", "the value, or what linear and set have of them, as JSON"),
        ),
        _values,
    ),
    Table(
        "bits",
        ("histobin",),
        "Ones and zeros of the values of loads and stores; needs a trace with values.",
        (
            text("kind", "load or store"),
            number("size", "bytes of an access"),
            _ACCESSES,
            number("ones", "bits that are 1"),
            number("zeros", "bits that are 0"),
        ),
        _bits,
    ),
    Table(
        "footprint",
        ("footprint",),
        "The working set over time, slice by slice.",
        (
            number("first_access", "loads and stores before the slice; null with --axis seconds"),
            number("nanoseconds", "when the slice begins, with --axis seconds; else null"),
            _ACCESSES,
            number("touched_bytes", "memory that the slice touches"),
            number("new_bytes", "of that what nothing had touched before"),
            number("total_bytes", "all memory that has been touched by the end of the slice"),
        ),
        _footprint,
    ),
    Table(
        "heatmap",
        ("heatmap",),
        "Loads and stores over addresses and time: the cells in which there are any.",
        (
            text("start", "the first address of the cell, 0x..."),
            number("bytes", "how much memory a cell is"),
            number("first_access", "loads and stores before the cell's slice; null with --axis seconds"),
            number("accesses", "how many a slice has; null with --axis seconds"),
            number("nanoseconds", "when the slice begins, with --axis seconds; else null"),
            number("loads", "in the cell"),
            number("stores", "in the cell"),
        ),
        _heatmap,
    ),
)

_SUMS = "sum(loads)::BIGINT AS loads, sum(stores)::BIGINT AS stores, sum(loads + stores)::BIGINT AS accesses, "
_SHARE = "100.0 * sum(loads + stores) / nullif(sum(sum(loads + stores)) OVER (), 0) AS share"
_ORDER = "ORDER BY accesses DESC, 1, 2"
_SUMMED = (_LOADS, _STORES, _ACCESSES, _BYTES, ratio("share", "percent of all loads and stores"))

VIEWS = (
    View(
        "functions",
        "Loads and stores, function by function; what callees do is theirs.",
        (
            text("function", "the function whose text the instructions stand in"),
            text("file", "its source file"),
            *_SUMMED,
        ),
        "instructions",
        f"SELECT function, file, {_SUMS} sum(bytes)::BIGINT AS bytes, {_SHARE} FROM instructions "
        f"GROUP BY function, file {_ORDER}",
    ),
    View(
        "lines",
        "Loads and stores, line by line.",
        (text("file", "the source file"), number("line", "the line"), *_SUMMED),
        "instructions",
        f"SELECT file, line, {_SUMS} sum(bytes)::BIGINT AS bytes, {_SHARE} FROM instructions "
        f"GROUP BY file, line {_ORDER}",
    ),
)
