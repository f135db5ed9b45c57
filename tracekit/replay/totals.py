"""What a trace holds, counted without deriving an event: records by id, times what each path does.

The collector counts the same way while it records; `check` compares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.image import OpKind
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.replay.program import Program
from tracekit.replay.structure import runs

LOADS = (OpKind.LOAD, OpKind.ATOMIC, OpKind.COPY_FROM)
STORES = (OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_TO, OpKind.SET)


def count_records(reader: TraceReader, program: Program) -> NDArray[np.int64]:
    """How many records each id has, over all streams (int64, by id)."""
    counts = np.zeros(len(program.arity), np.int64)
    source = RecordSource(reader, program.arity)
    for stream in source.streams():
        for ids, _ in source.records(stream):
            counts += np.bincount(ids, minlength=len(counts))
    return counts


def totals(program: Program, counts: NDArray[np.int64]) -> dict[str, int]:
    """The totals of a trace with `counts` records of each id; the names are those of the DONE frame."""
    per_block = {
        "loads": np.isin(program.ops["kind"], LOADS),
        "stores": np.isin(program.ops["kind"], STORES),
    }
    used = np.flatnonzero(program.path_row != NONE)
    paths = counts[used]
    row = program.path_row[used]
    words = int(paths @ program.paths["words"][row].astype(np.int64))
    event_words = sum(int(counts[code]) * len(BY_CODE[code].words) for code in RECORDED)
    result = {
        "path_records": int(paths.sum()),
        "blocks": int(paths @ program.paths["blocks"][row].astype(np.int64)),
        "words": words + event_words,
    }
    for name, chosen in per_block.items():
        library = int(counts[CODE["library_" + name.rstrip("s")]])
        result[name] = int(paths @ _per_path(program, chosen)[row]) + library
    result["events"] = int(counts[:FIRST_PATH].sum())
    result["accesses"] = result["loads"] + result["stores"]
    result["raw_bytes"] = 8 * (result["path_records"] + result["events"] + result["words"])
    return result


def _per_path(program: Program, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many of the `chosen` operations each path holds."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    first = program.blocks["first_op"].astype(np.int64)
    per_block = before[first + program.blocks["ops"]] - before[first]
    members = program.path_blocks["block"][runs(program.paths["first"], program.paths["blocks"])]
    sums = np.concatenate([[0], np.cumsum(per_block[members])])
    ends = np.cumsum(program.paths["blocks"].astype(np.int64))
    result: NDArray[np.int64] = sums[ends] - sums[ends - program.paths["blocks"]]
    return result
