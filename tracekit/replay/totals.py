"""What a trace holds, counted without deriving an event: records by id (runs: iterations), times what each path does.

The collector counts the same way while it records; `check` compares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit import progress
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.image import LOADS, STORES, PathFlag
from tracekit.formats.limits import LONGEST_RUN
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program
from tracekit.program.validation import runs

MOST = 1 << 62
"""Iterations of a path at most, over all streams."""


class Counter:
    """Counts records. ``records`` and ``repeats``, both int64 by id: how many, and how often they run their blocks."""

    def __init__(self, program: Program) -> None:
        self._arity = program.arity.astype(np.int64)
        flags = np.zeros(len(program.arity), np.uint32)
        used = program.path_row != NONE
        flags[used] = program.paths["flags"][program.path_row[used]]
        self._run = flags & PathFlag.RUN != 0
        self._ground_truth = self._run & (flags & PathFlag.GROUND_TRUTH != 0)
        self._any = bool(self._run.any())
        self.records = np.zeros(len(program.arity), np.int64)
        self.repeats = np.zeros(len(program.arity), np.int64)

    def add(self, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
        """Count whole records. Raises TracekitError for runs that no program makes."""
        counts = np.bincount(ids, minlength=len(self.records))
        self.records += counts
        self.repeats += np.where(self._run, 0, counts)
        if not self._any:
            return
        chosen = np.flatnonzero(self._run[ids] & ~self._ground_truth[ids])
        if len(chosen):
            after = np.cumsum(self._arity[ids])
            iterations = words[after[chosen] - 1]
            longest = int(iterations.max())
            if longest > LONGEST_RUN:
                raise TracekitError(f"The trace is damaged: a run has {longest} iterations.")
            np.add.at(self.repeats, ids[chosen], iterations.astype(np.int64))
            if int(self.repeats.max()) > MOST:
                raise TracekitError("The trace is damaged: its runs have more iterations than any program makes.")


def count_records(reader: TraceReader, program: Program) -> Counter:
    """How many records each id has, over all streams."""
    counter = Counter(program)
    source = RecordSource(reader, program.arity)
    records = sum(frame.items for frame in reader.chunk_frames())
    with progress.step("counting records", records, lambda: int(counter.records.sum())):
        for stream in source.streams():
            for ids, words in source.records(stream):
                counter.add(ids, words)
    return counter


def trace_totals(reader: TraceReader, program: Program) -> dict[str, int]:
    """The totals that a trace states in its end, or, if it was cut off or states too few, those of what it holds."""
    stated: dict[str, int] = (reader.done or {}).get("totals") or {}
    if all(isinstance(stated.get(name), int) for name in ("accesses", "loads", "stores")):
        return stated
    return totals(program, count_records(reader, program))


def totals(program: Program, counter: Counter) -> dict[str, int]:
    """The totals of a trace with the records of `counter`; the names are those of the DONE frame."""
    counts = counter.records
    per_block = {
        "loads": np.isin(program.ops["kind"], LOADS),
        "stores": np.isin(program.ops["kind"], STORES),
    }
    used = np.flatnonzero(program.path_row != NONE)
    paths, repeats = counts[used], counter.repeats[used].astype(object)
    row = program.path_row[used]
    words = int(paths @ program.paths["words"][row].astype(np.int64))
    event_words = sum(int(counts[code]) * len(BY_CODE[code].words) for code in RECORDED)
    result = {
        "path_records": int(paths.sum()),
        "blocks": int(repeats @ program.paths["blocks"][row].astype(np.int64)),
        "words": words + event_words,
    }
    for name, chosen in per_block.items():
        library = int(counts[CODE["library_" + name.rstrip("s")]])
        result[name] = int(repeats @ per_path(program, chosen)[row]) + library
    result["events"] = int(counts[:FIRST_PATH].sum())
    result["accesses"] = result["loads"] + result["stores"]
    result["raw_bytes"] = 8 * (result["path_records"] + result["events"] + result["words"])
    return result


def per_path(program: Program, chosen: NDArray[Any]) -> NDArray[np.int64]:
    """How many of the `chosen` operations each path holds."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    first = program.blocks["first_op"].astype(np.int64)
    per_block = before[first + program.blocks["ops"]] - before[first]
    members = program.path_blocks["block"][runs(program.paths["first"], program.paths["blocks"])]
    sums = np.concatenate([[0], np.cumsum(per_block[members])])
    ends = np.cumsum(program.paths["blocks"].astype(np.int64))
    result: NDArray[np.int64] = sums[ends] - sums[ends - program.paths["blocks"]]
    return result
