"""Records and analyses real programs and affine kernels, and prints the figures of docs/performance.md.

    python benchmarks/fetch.py
    python benchmarks/run.py record                     # recording: time, size, same output and status
    python benchmarks/run.py analyze                    # decode and camp on small inputs
    python benchmarks/run.py memory                     # analyze's memory on a trace and on one ten times longer
    python benchmarks/run.py start                      # tracekit --help, warm start of analyze
    python benchmarks/run.py together                   # record, and then analyze -m dependence (or --module)
    python benchmarks/run.py record --recorder blocks   # the same with one record for each basic block
    python benchmarks/run.py record --workers 1,2       # recorded with one worker, and with two
    python benchmarks/run.py record --values all        # the same with the values of loads and stores
    python benchmarks/run.py record --group kernels --only gemm,lu --repeat 3 --size 100

Medians of --repeat interleaved runs. Groups are never averaged together.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import measure
import programs
from programs import Program

GROUPS = {"programs": programs.PROGRAMS, "kernels": programs.KERNELS}


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "analyze", "memory", "start", "together"])
    parser.add_argument("--group", choices=list(GROUPS), action="append", help="default: both")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--size", type=int, help="input size; default: full for record, small for the others")
    parser.add_argument("--module", default="dependence", help="what `together` analyses with")
    parser.add_argument("--recorder", choices=["paths", "blocks"], default="paths")
    parser.add_argument("--workers", default="0", help="numbers of workers, separated by commas; 0: record's default")
    parser.add_argument("--values", choices=["loads", "stores", "all"], help="record the values moved, too")
    parser.add_argument("--pointers", action="store_true", help="record where pointers come from, too")
    options = parser.parse_args()
    measure.RECORDER[0] = options.recorder
    measure.VALUES += [f"--values={options.values}"] if options.values else []
    measure.VALUES += ["--pointers"] if options.pointers else []
    WORKERS[:] = map(int, options.workers.split(","))
    if options.what == "start":
        start(options.repeat)
        return 0
    MODULE[0] = options.module
    actions: dict[str, Callable[[Program, int, int], bool]] = {
        "record": record,
        "analyze": analyze,
        "memory": memory,
        "together": together,
    }
    action = actions[options.what]
    good = True
    for group in options.group or list(GROUPS):
        wanted = [name for name in options.only.split(",") if name]
        chosen = [program for program in GROUPS[group] if not wanted or program.name in wanted]
        if not chosen:
            continue
        print(f"\n{group}")
        GEOMEANS.clear()
        for number, program in enumerate(chosen):
            if number == 0:
                print(header(options.what), flush=True)
            size = options.size or (program.full if options.what in ("record", "together") else program.small)
            good &= action(program, size, options.repeat)
        print_geomeans()
    return 0 if good else 1


WORKERS = [0]
"""With how many workers `record` records, one column for each; 0: its default."""

MODULE = ["dependence"]
"""What `together` analyses with."""

HEADERS = {
    "record": (
        "program         native s  alone  WORKERS   accesses M  bits/access  paths/block  values/access   "
        "file MB  waited s  check  same"
    ),
    "analyze": "program         accesses M  decode M/s  events M/s   camp M/s   lamp M/s  analyze s  peak MB",
    "together": "program         native s  recorded  analysed  together   (times native, on the clock, all cores)",
    "memory": "program         accesses M   peak MB   accesses M   peak MB   (ten times longer)",
}
GEOMEANS: dict[str, list[float]] = {}


def header(what: str) -> str:
    """The line above a group."""
    columns = [f"recorded by {count}" if count else "recorded" for count in WORKERS]
    return HEADERS[what].replace("WORKERS", " ".join(columns))


def record(program: Program, size: int, repeat: int) -> bool:
    """Native, instrumented but not recorded, and recorded runs in turns; the others as ratios to the first.

    What the trace holds, and how long the program waited, are those of the last run, with the last number of workers.
    """
    natives, alone = [], []
    recordings: dict[int, list[measure.Run]] = {count: [] for count in WORKERS}
    for _ in range(repeat):
        natives.append(measure.native(program, size))
        alone.append(measure.unrecorded(program, size))
        for count in WORKERS:
            recordings[count].append(measure.recorded(program, size, count))
    found = measure.info(measure.trace_path(program, size))
    small = measure.trace_path(program, program.small)
    if program.small != size:
        measure.recorded(program, program.small)
    checked = measure.passes_check(small)
    runs = (*natives, *alone, *(run for each in recordings.values() for run in each))
    same = all((run.stdout, run.status) == (natives[0].stdout, natives[0].status) for run in runs)
    native, instrumented = (median(run.seconds for run in each) for each in (natives, alone))
    ratios = {count: median(run.seconds for run in recordings[count]) / native for count in WORKERS}
    figures = {
        "alone": instrumented / native,
        "bits_per_access": found["bits_per_access"],
        **{f"recorded by {count}" if count else "recorded": ratio for count, ratio in ratios.items()},
        "paths_per_block": found["path_records"] / found["blocks"],
        "values_per_access": found["values_recorded"] / found["accesses"],
    }
    remember(**figures)
    print(
        f"{program.name:14} {native:9.2f} {figures['alone']:6.2f} "
        f"{' '.join(f'{ratio:{13 if count else 8}.2f}' for count, ratio in ratios.items())} "
        f"{found['accesses'] / 1e6:12.1f} {found['bits_per_access']:12.3f} {figures['paths_per_block']:12.4f} "
        f"{figures['values_per_access']:14.5f} {found['file_bytes'] / 1e6:9.2f} "
        f"{found['metadata'].get('seconds_waited', 0):9.2f} {'ok' if checked else 'BAD':>6} "
        f"{'yes' if same else 'NO':>5}",
        flush=True,
    )
    return checked and same


def analyze(program: Program, size: int, repeat: int) -> bool:
    """Decode alone, decode and derive, and with camp and lamp: in this process, kernels warm."""
    trace = _trace(program, size)
    accesses = measure.info(trace)["accesses"] / 1e6
    works: dict[str, Callable[[], float]] = {
        "decode": lambda: measure.decode_seconds(trace),
        "events": lambda: measure.replay_seconds(trace, None),
        "camp": lambda: measure.replay_seconds(trace, "camp"),
        "lamp": lambda: measure.replay_seconds(trace, "lamp"),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            times[name].append(work())
    rates = {name: accesses / median(values) for name, values in times.items()}
    whole = measure.analyze(trace)
    remember(**{f"{name}_rate": rate for name, rate in rates.items()})
    print(
        f"{program.name:14} {accesses:11.2f} {rates['decode']:11.1f} {rates['events']:11.1f} {rates['camp']:10.2f} "
        f"{rates['lamp']:10.2f} {whole.seconds:10.1f} {whole.peak_bytes / 1e6:8.0f}",
        flush=True,
    )
    return whole.status == 0


def together(program: Program, size: int, repeat: int) -> bool:
    """Record and then analyse, each as a user would, over the native run: what a profile costs in all."""
    trace = _trace(program, program.small)
    measure.analyze(trace, MODULE[0])  # what has to be compiled is compiled
    natives, recordings, analyses = [], [], []
    for _ in range(repeat):
        natives.append(measure.native(program, size))
        recordings.append(measure.recorded(program, size))
        analyses.append(measure.analyze(measure.trace_path(program, size), MODULE[0]))
    native, recorded, analysed = (median(run.seconds for run in each) for each in (natives, recordings, analyses))
    figures = {"recorded": recorded / native, "analysed": analysed / native, "together": (recorded + analysed) / native}
    remember(**figures)
    print(f"{program.name:14} {native:9.2f} {' '.join(f'{figure:9.2f}' for figure in figures.values())}", flush=True)
    return all(run.status == 0 for run in analyses)


def memory(program: Program, size: int, repeat: int) -> bool:
    """Peak memory of `tracekit analyze -m camp` on a trace, and on that of a run ten times as long."""
    del repeat
    cells, good = [], True
    for factor in (1, 10):
        trace = _trace(program, size * factor)
        run = measure.analyze(trace)
        good &= run.status == 0
        cells.append(f"{measure.info(trace)['accesses'] / 1e6:11.2f} {run.peak_bytes / 1e6:9.0f}")
    print(f"{program.name:14} {cells[0]}  {cells[1]}", flush=True)
    return good


def start(repeat: int) -> None:
    """`tracekit --help`, and a warm `tracekit analyze` of a tiny trace."""
    tiny = programs.EVERYTHING["trisolv"]
    trace = _trace(tiny, 1)
    measure.analyze(trace)
    help_text = [*measure.TRACEKIT, "--help"]
    print(f"tracekit --help    {median(measure.run(help_text).seconds for _ in range(repeat)):.3f} s")
    print(
        f"tracekit analyze   {median(measure.analyze(trace).seconds for _ in range(repeat)):.3f} s, warm, of "
        f"{measure.info(trace)['accesses'] / 1e6:.2f} M accesses"
    )


def _trace(program: Program, size: int) -> Path:
    measure.recorded(program, size)
    return measure.trace_path(program, size)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def remember(**figures: float) -> None:
    for name, value in figures.items():
        GEOMEANS.setdefault(name, []).append(value)


def print_geomeans() -> None:
    for name, values in GEOMEANS.items():
        mean = math.exp(statistics.fmean(math.log(max(value, 1e-9)) for value in values))
        print(f"geomean of {name.replace('_', ' ')}: {mean:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
