"""Tables of objects: allocation sites, lifetimes, pointers, structures and their fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracekit.query.places import (
    OBJECT_COLUMNS,
    instruction_cells,
    instruction_columns,
    object_cells,
)
from tracekit.query.schema import Json, Table, number, ratio, text, truth, words
from tracekit.render.layout import advice_text
from tracekit.render.objects import scope_name

SITES = ("object_lifetime", "privateer")


def _allocations(report: Json) -> Iterator[tuple[Any, ...]]:
    for site, row in enumerate(report["result"]["sites"], 1):
        yield (
            site,
            *object_cells(row["object"]),
            row["objects"],
            row["bytes"],
            row["never_freed"],
            row["scope"]["kind"],
            scope_name(row["scope"]),
        )


def _lives(report: Json) -> Iterator[tuple[Any, ...]]:
    for site, row in enumerate(report["result"]["sites"], 1):
        for life in row["lives"]:
            yield (site, life["scope"]["kind"], scope_name(life["scope"]), life["objects"])


def _structures(report: Json) -> Iterator[tuple[Any, ...]]:
    for structure, row in enumerate(report["result"]["structures"], 1):
        yield (
            structure,
            row["type"] or None,
            *object_cells(row["group"]),
            row["size"],
            row["objects"],
            row["accesses"],
            row["array"],
            row.get("unseen"),
            row.get("only_in_bulk"),
            [advice_text(advice) for advice in row["advice"]],
        )


def _fields(report: Json) -> Iterator[tuple[Any, ...]]:
    for structure, row in enumerate(report["result"]["structures"], 1):
        for field in row["fields"]:
            names = ("field", "type", "offset", "size", "loads", "stores", "visits", "percent")
            yield (structure, *(field[name] for name in names))


def _prefetches(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["loads"]:
        names = ("kind", "begun", "percent", "loads", "stride", "ahead", "bytes_ahead")
        yield (*instruction_cells(row["instruction"]), *(row.get(name) for name in names))


_SITE = number("site", "a number, from 1, for lives to name it by")

TABLES = (
    Table(
        "allocations",
        SITES,
        "Allocation sites in their contexts, and how long their objects live.",
        (
            _SITE,
            *OBJECT_COLUMNS,
            number("objects", "how many were made"),
            number("bytes", "all that they ever had"),
            number("never_freed", "how many lived to the end"),
            text("scope_kind", "iteration, invocation, call or run: what holds the whole life of every object"),
            text("scope", "that scope"),
        ),
        _allocations,
    ),
    Table(
        "lives",
        SITES,
        "How many objects of each site lived in which scope.",
        (
            number("site", "allocations.site"),
            text("scope_kind", "iteration, invocation, call or run"),
            text("scope", "the innermost scope that holds their lives"),
            number("objects", "how many"),
        ),
        _lives,
    ),
    Table(
        "structures",
        ("layout",),
        "Structures of the program's heap and globals, and what a better layout would be.",
        (
            number("structure", "a number, from 1, for fields to name it by"),
            text("type", "its name"),
            *OBJECT_COLUMNS,
            number("size", "bytes of one"),
            number("objects", "how many there were"),
            number("accesses", "loads and stores of their fields"),
            truth("is_array", "whether they are elements of arrays"),
            words("unseen", "fields that no recorded access touches"),
            words("only_in_bulk", "fields that copies, memset and the library touch only"),
            words("advice", "what to split and reorder, and what it saves"),
        ),
        _structures,
    ),
    Table(
        "fields",
        ("layout",),
        "Fields of structures, and how often each is used.",
        (
            number("structure", "structures.structure"),
            text("field", "its name"),
            text("type", "its type"),
            number("offset", "bytes from the structure's beginning"),
            number("size", "bytes"),
            number("loads", "of the field"),
            number("stores", "of the field"),
            number("visits", "visits of an object that touch it"),
            ratio("percent", "of all visits"),
        ),
        _fields,
    ),
    Table(
        "prefetches",
        ("layout",),
        "Loads that often begin a line of the cache, and how far ahead to fetch them.",
        (
            *instruction_columns(),
            text("pattern", "strided, indirect, pointer or other: how the address follows from others"),
            number("begun", "how often it is the first to touch a line"),
            ratio("percent", "of all such first touches"),
            number("loads", "how often it loads"),
            number("stride", "bytes from one load to the next, if strided"),
            number("ahead", "how many iterations ahead to fetch"),
            number("bytes_ahead", "the same in bytes"),
        ),
        _prefetches,
    ),
)
