"""What do segments gain? Whole analyses with one thread, with threads that share addresses, and in segments, in turn:
the first time, and again, when what segments begin with is known (what is kept of that is removed before).

    python -m benchmarks.segments [--module camp] [--jobs 2] [--repeat 3] TRACE...

Prints medians of the time by the clock and of processor time, and both as ratios to one thread.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tracekit.jit.cache import home


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return ended - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def forget() -> None:
    """Remove what earlier analyses have kept of beginnings of segments."""
    for path in (home() / "code").glob("beginnings-*"):
        path.unlink(missing_ok=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="camp")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    chosen = parser.parse_args()
    jobs = ["-j", str(chosen.jobs)]
    ways = {"-j 1": ["-j", "1"], "by address": [*jobs, "--segments", "1"], "in segments": jobs, "again": jobs}
    print(f"{'trace':16}{'':14}{'clock':>8}{'ratio':>7}{'processor':>11}{'ratio':>7}")
    for trace in chosen.traces:
        analyze = [sys.executable, "-m", "tracekit", "analyze", "-m", chosen.module, "--json"]
        times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for turn in range(chosen.repeat + 1):  # the first one compiles
            forget()
            for way, options in ways.items():
                taken = measured([*analyze, *options, trace])
                if turn > 0:
                    times[way].append(taken)
        medians = {way: [statistics.median(each) for each in zip(*taken)] for way, taken in times.items()}
        for way, (clock, processor) in medians.items():
            alone = medians["-j 1"]
            ratios = clock / alone[0], processor / alone[1]
            print(f"{Path(trace).stem:16}{way:14}{clock:8.2f}{ratios[0]:7.2f}{processor:11.2f}{ratios[1]:7.2f}")


if __name__ == "__main__":
    main()
