"""The windows that a run was recorded in (`record --paused`), as the records of a trace tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import LOADS, STORES, PathFlag
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program
from tracekit.replay.totals import per_path

BEGIN, END, EXIT = CODE["window_begin"], CODE["window_end"], CODE["thread_exit"]


def is_windowed(reader: TraceReader) -> bool:
    """Whether the trace holds windows of the run only."""
    return bool(reader.meta.get("windows"))


@dataclass
class RecordedWindow:
    """One of them: its number, when its first thread began and its last one ended (nanoseconds), what it holds."""

    number: int
    begin: int
    end: int | None = None
    """None: it was open when the program ended."""
    threads: int = 0
    accesses: int = 0

    def as_json(self) -> dict[str, Any]:
        """What `info --json` and profiles say of it; times in seconds since the program's start."""
        return {
            "window": self.number,
            "begin": self.begin / 1e9,
            "end": None if self.end is None else self.end / 1e9,
            "threads": self.threads,
            "accesses": self.accesses,
        }


def recorded_windows(reader: TraceReader, program: Program) -> list[RecordedWindow]:
    """All windows in the order of their numbers; none for a trace of a whole run. Decodes the records of the trace."""
    if not is_windowed(reader):
        return []
    found: dict[int, RecordedWindow] = {}
    source = RecordSource(reader, program.arity)
    weights = _Accesses(program)
    for stream in source.streams():
        at: RecordedWindow | None = None
        exited = False
        for ids, words in source.records(stream):
            accesses, after = weights.before(ids, words)
            last = 0
            for mark in np.flatnonzero((ids == BEGIN) | (ids == END)).tolist():
                number, time = words[after[mark] - 2 : after[mark]].tolist()
                if at is not None:
                    at.accesses += int(accesses[mark] - accesses[last])
                last, at = mark, _passed(found, at, int(ids[mark]) == BEGIN, number, time)
            if at is not None:
                at.accesses += int(accesses[-1] - accesses[last])
            exited = exited or bool((ids == EXIT).any())
        if at is not None and not exited:
            at.end = None
    return [found[number] for number in sorted(found)]


def _passed(
    found: dict[int, RecordedWindow], at: RecordedWindow | None, begins: bool, number: int, time: int
) -> RecordedWindow | None:
    """A thread comes to the begin or the end of a window; the window that it is in now."""
    if not begins:
        if at is not None and at.end is not None:
            at.end = max(at.end, time)
        return None
    window = found.setdefault(number, RecordedWindow(number, time, time))
    window.begin = min(window.begin, time)
    window.threads += 1
    return window


class _Accesses:
    """Loads and stores of records, as the totals of a trace count them."""

    def __init__(self, program: Program) -> None:
        self._arity = program.arity.astype(np.int64)
        used = program.path_row != NONE
        row = program.path_row[used]
        chosen = np.isin(program.ops["kind"], LOADS).astype(np.int64) + np.isin(program.ops["kind"], STORES)
        self._of = np.zeros(len(program.arity), np.int64)
        self._of[used] = per_path(program, chosen)[row]
        self._of[[CODE["library_load"], CODE["library_store"]]] = 1
        flags = np.zeros(len(program.arity), np.uint32)
        flags[used] = program.paths["flags"][row]
        self._of[flags & PathFlag.GROUND_TRUTH != 0] = 0
        self._run = (flags & PathFlag.RUN != 0) & (flags & PathFlag.GROUND_TRUTH == 0)

    def before(self, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Accesses before each record and after the last one (ids + 1); words up to the end of each record (ids)."""
        after = np.cumsum(self._arity[ids])
        counts = self._of[ids]
        runs = np.flatnonzero(self._run[ids])
        counts[runs] *= words[after[runs] - 1].astype(np.int64)
        return np.concatenate([[0], np.cumsum(counts)]), after
