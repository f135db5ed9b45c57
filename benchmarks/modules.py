"""Speed of the modules with decoding: million accesses per second on one core, and two workers over one.

    python -m benchmarks.modules [--repeat N] [--module NAME]... TRACE ...

Each figure is the median of --repeat runs, which are interleaved: processor time with one worker (`-j 1`: decoding and
module in one thread), and by the clock how many times faster `-j 2` is. What has to be compiled is compiled before.
value_pattern takes the trace TRACE--values=loads--pointers.zst beside TRACE.zst.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import tracekit
from tracekit.replay.engine import count_events

MODULES: dict[str, tuple[str, dict[str, Any]]] = {
    "dependence, flow": ("dependence", {}),
    "dependence, all kinds, distance": ("dependence", {"kinds": "raw,war,waw", "distance": True}),
    "camp": ("camp", {}),
    "lamp": ("lamp", {}),
    "value_pattern": ("value_pattern", {}),
    "cache": ("cache", {}),
    "reuse": ("reuse", {}),
    "tlb": ("tlb", {}),
    "bandwidth": ("bandwidth", {}),
    "memory_errors": ("memory_errors", {}),
    "heatmap": ("heatmap", {}),
    "footprint": ("footprint", {}),
    "accesses": ("accesses", {}),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--module", action="append", choices=list(MODULES), help="default: all")
    options = parser.parse_args()
    wanted = options.module or list(MODULES)
    print(f"{'':32}" + "".join(f"{trace.stem:>16}" for trace in options.traces))
    print(f"{'accesses, M':32}" + "".join(f"{accesses_of(trace) / 1e6:16.1f}" for trace in options.traces))
    for name in wanted:
        cells = [_measured(trace, *MODULES[name], options.repeat) for trace in options.traces]
        print(f"{name:32}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def accesses_of(trace: Path) -> int:
    """How many loads and stores a trace has."""
    opened = tracekit.open(trace)
    counts = count_events(opened.reader, opened.program)
    return counts["load"] + counts["store"]


def _measured(trace: Path, module: str, module_options: dict[str, Any], repeat: int) -> str:
    """Million accesses per second, and two workers over one."""
    if module == "value_pattern":  # needs a trace with values
        trace = trace.with_name(f"{trace.stem}--values=loads--pointers.zst")
        if not trace.exists():
            return "-"
    taken: dict[str, list[float]] = defaultdict(list)
    for number in range(repeat + 1):
        for jobs in (1, 2):
            begun, clock = time.process_time(), time.perf_counter()
            tracekit.analyze(trace, module, jobs=jobs, **module_options)
            if number > 0:  # else it may have been compiled
                taken[f"processor {jobs}"].append(time.process_time() - begun)
                taken[f"clock {jobs}"].append(time.perf_counter() - clock)
    median = {name: statistics.median(times) for name, times in taken.items()}
    speed = accesses_of(trace) / median["processor 1"] / 1e6
    return f"{speed:.1f} ({median['clock 1'] / median['clock 2']:.2f})"


if __name__ == "__main__":
    main()
