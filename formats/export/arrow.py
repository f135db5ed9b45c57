"""Tables in Apache Arrow's file format or in Parquet: loads and stores, all events, the instructions that they name.

They are written by pyarrow, an optional dependence, part by part: the memory that it takes does not grow with a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import DELIVERED, NONE
from tracekit.formats.export.background import IN_USE, background_thread

FORMATS = ("parquet", "arrow")
TABLES = ("accesses", "events", "instructions", "objects")


PART = 1 << 20
"""Rows that are written at once at most."""

_NAMES = [""] + [event.name for event in DELIVERED]
_INDEX = np.zeros(256, np.int8)
_INDEX[[event.code for event in DELIVERED]] = np.arange(1, len(_NAMES))

_REPEATED = ("event", "size")
"""Columns of events that get a dictionary: for the others looking values up takes longer than compressing them."""
_ORDERED = ("stream", "instruction", "subject")
"""Those of which each part says the least and the greatest value, so that readers pass over it."""
_VALUES = 1 << 14
"""So many values of a column are encoded at once: they stay in the processor's cache."""

Table = tuple[Any, Iterator[Any]]
"""A schema, and record batches of it; each may be overwritten once IN_USE - 1 more have been taken."""


def write(form: str, table: Table, file: BinaryIO) -> None:
    """Write a table, in the format `form` of FORMATS."""
    schema, parts = table
    if form == "arrow":
        from pyarrow import ipc

        packed = ipc.IpcWriteOptions(compression="lz4")
        with ipc.new_file(file, schema, options=packed) as arrow, background_thread() as hand_over:
            for part in parts:
                hand_over(arrow.write_batch, part)
        return
    from pyarrow import parquet

    options: dict[str, Any] = {}
    if "event" in schema.names:
        options = {
            "use_dictionary": [name for name in _REPEATED if name in schema.names],
            "write_statistics": [name for name in _ORDERED if name in schema.names],
        }
    options |= {"compression": "zstd", "write_batch_size": _VALUES}
    with parquet.ParquetWriter(file, schema, **options) as writer, background_thread() as hand_over:
        for part in parts:
            hand_over(writer.write_batch, part)


def accesses(batches: Iterable[Any], values: bool) -> Table:
    """A row for each load and store; `values`: with the first eight bytes that it moved."""
    return _events(batches, "instruction", values)


def events(batches: Iterable[Any], values: bool) -> Table:
    """A row for each event. What `subject` and `size` are depends on it (SPEC.md, "Events")."""
    return _events(batches, "subject", values)


def instructions(rows: Iterable[Mapping[str, Any]], counters: NDArray[np.uint64], unknown: int) -> Table:
    """A row for each of the program's instructions, in their order; `rows` are as profiles show them.

    `counters`: the program counter of each, `unknown` where there is none.
    """
    arrow = _arrow()
    text, number = arrow.string(), arrow.uint32()
    schema = arrow.schema(
        [
            ("instruction", number),
            ("id", text),
            ("kind", text),
            ("function", text),
            ("file", text),
            ("line", number),
            ("column", number),
            ("program_counter", arrow.uint64()),
        ]
    )

    def parts() -> Iterator[Any]:
        shown = list(rows)
        columns = [
            arrow.array(np.arange(len(shown)), number),
            *(arrow.array([row[name] for row in shown], text) for name in ("id", "kind", "function", "file")),
            *(arrow.array([row[name] or None for row in shown], number) for name in ("line", "column")),
            arrow.array(counters, arrow.uint64(), mask=counters == np.uint64(unknown)),
        ]
        yield arrow.record_batch(columns, schema=schema)

    return schema, parts()


def objects(lives: Iterable[NDArray[Any]], names: Sequence[str], is_global: int) -> Table:
    """A row for each object, as it ends; `lives` are rows of tracekit.objects.lifetimes.

    `names`: of the global variables; `is_global`: their `kind`.
    """
    arrow = _arrow()
    count = arrow.uint64()
    schema = arrow.schema(
        [
            ("kind", arrow.string()),
            ("name", arrow.string()),
            ("instruction", arrow.uint32()),
            ("stream", arrow.uint32()),
            ("address", count),
            ("size", count),
            ("born", count),
            ("died", count),
        ]
    )

    def part(rows: NDArray[Any]) -> Any:
        named = rows["kind"] == is_global
        sites = rows["site"]
        columns = [
            arrow.array(np.where(named, "global", "heap")),
            arrow.array([names[site] if of else None for site, of in zip(sites.tolist(), named.tolist())], "string"),
            arrow.array(sites, mask=named | (sites == NONE)),
            arrow.array(rows["stream"]),
            arrow.array(rows["address"]),
            arrow.array(rows["size"]),
            arrow.array(rows["born"].astype(np.uint64)),
            arrow.array(rows["ended"].astype(np.uint64), mask=rows["ended"] < 0),
        ]
        return arrow.record_batch(columns, schema=schema)

    return schema, (part(rows) for rows in _whole(lives))


def _whole(parts: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """The same rows in parts of about PART."""
    held: list[NDArray[Any]] = []
    for part in parts:
        held.append(part)
        if sum(map(len, held)) >= PART:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def _events(batches: Iterable[Any], subject: str, values: bool) -> Table:
    arrow = _arrow()
    names = arrow.dictionary(arrow.int8(), arrow.string())
    fields = [
        ("stream", arrow.uint32()),
        ("event", names),
        (subject, arrow.uint32()),
        ("address", arrow.uint64()),
        ("size", arrow.uint64()),
        *([("value", arrow.uint64())] if values else []),
    ]
    schema = arrow.schema([arrow.field(name, kind, name == subject) for name, kind in fields])  # only that may be null
    dictionary = arrow.array(_NAMES)

    def part(held: Sequence[NDArray[Any]], rows: int) -> Any:
        stream, kind, subjects, *others = (column[:rows] for column in held)
        nowhere = subjects == NONE
        columns = [
            arrow.array(stream),
            arrow.DictionaryArray.from_arrays(arrow.array(kind), dictionary, safe=False),  # _INDEX has no others
            arrow.array(subjects, mask=nowhere if nowhere.any() else None),
            *map(arrow.array, others),
        ]
        return arrow.record_batch(columns, schema=schema)

    def parts() -> Iterator[Any]:
        kinds = ("u4", "i1", "u4", "u8", "u8", *(["u8"] if values else []))
        rounds = cycle([[np.empty(PART, kind) for kind in kinds] for _ in range(IN_USE)])
        held, rows = next(rounds), 0
        for batch in batches:
            given = (batch.subject, batch.address, batch.size, *((batch.value,) if values else ()))
            done = 0
            while done < len(batch.kind):
                taken = min(len(batch.kind) - done, PART - rows)
                held[0][rows : rows + taken] = batch.stream
                np.take(_INDEX, batch.kind[done : done + taken], out=held[1][rows : rows + taken])
                for column, values_of in zip(held[2:], given):
                    column[rows : rows + taken] = values_of[done : done + taken]
                rows, done = rows + taken, done + taken
                if rows == PART:
                    yield part(held, rows)
                    held, rows = next(rounds), 0  # the others may still be being written
        if rows:
            yield part(held, rows)

    return schema, parts()


def _arrow() -> Any:
    import pyarrow

    return pyarrow
