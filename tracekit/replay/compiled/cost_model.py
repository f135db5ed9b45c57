"""When compiled paths pay: how long the kernels would take, and from what length of a replay on to compile, or load."""

from __future__ import annotations

import os

from tracekit.formats.reader import TraceReader
from tracekit.jit.cache import CHECKS_BOUNDS

SETTING = "TRACEKIT_COMPILE_PATHS"
"""0: never; ``always``: every path, from the first records on, waiting for the compiler (for tests)."""
LONG_ENOUGH = 1 << 27
"""Work of a trace (work_of) from which on that is worth it: some 300 paths and the library take 4 to 4.5 s of processor
time, and a record gains 0 to 35 ns."""
LONG_ENOUGH_TO_LOAD = 1 << 26
"""Work from which on it is worth it to load what an earlier replay has compiled: that takes 0.4 to 0.5 s."""
WORK_OF_PATH = 300_000
"""Work for each path that is hot: where there is less, none is compiled. A path takes 10 to 30 ms of processor time,
and a record gains less the more paths there are, for their code leaves the caches: of vim, with 1,750 hot paths and
179 M records, nothing."""
LONG_ENOUGH_AHEAD = 1 << 26
"""Work from which on the pass ahead of segments takes the paths that a segment has compiled: that takes 0.2 s, and it
goes over less than half of a trace."""
USUAL = 7
"""Accesses for each record, on average, of programs without long runs. Where there are more, the kernels fill in runs
as fast as compiled paths call callbacks one by one (0.9 to 1.3 of the time), and more slowly than they call callbacks
for many accesses (0.02 to 0.9)."""
ACCESSES_OF_RUNS = 3
"""Accesses in runs that take the kernels as long as a usual record."""


def work_of(records: int, accesses: int, *, for_runs: bool) -> int:
    """How long the kernels take for a trace of so many records and accesses, in records of a usual program.

    0 if they are faster than compiled paths. `for_runs`: all modules take many accesses of a loop at once.
    """
    many = accesses - USUAL * records
    if many > 0 and not for_runs:
        return 0
    return records + max(many, 0) // ACCESSES_OF_RUNS


def pays(work: int, least: int = LONG_ENOUGH_TO_LOAD) -> bool:
    """Whether compiled paths may make a replay shorter, and nobody has turned them off."""
    setting = os.environ.get(SETTING, "")
    if setting in ("0", "always"):
        return setting == "always"
    return not CHECKS_BOUNDS and work >= least


def records_of(trace: TraceReader) -> int:
    """How many records a trace has."""
    return sum(frame.items for frame in trace.chunk_frames())
