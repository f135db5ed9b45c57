"""What `tracekit cc --windows` costs the real programs, in counted instructions, in time, and where they are compiled.

    python benchmarks/windows.py count      # no window open, by callgrind; needs valgrind
    python benchmarks/windows.py inside     # in a window over all, of the program alone, by callgrind
    python benchmarks/windows.py time       # no window open, a window over all, sampled, with snapshots
    python benchmarks/windows.py sample     # sampled alone, which takes no more memory or time than the program
    python benchmarks/windows.py compile    # processor time of native, without --windows, with it

`count` and `time` print ratios to the native program at -O2, but for a window over all: that is over a recording of a
build without --windows, as what `inside` prints. Medians of --repeat interleaved runs.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fetch
import measure
import programs
from programs import Program

COUNTED = 1
"""The size of the input where instructions are counted."""


@contextmanager
def options(*given: str) -> Iterator[None]:
    """What tracekit cc is given, for a while."""
    before = list(measure.VALUES)
    measure.VALUES[:] = given
    try:
        yield
    finally:
        measure.VALUES[:] = before


def built(program: Program, kind: str) -> Path:
    """The executable: `native`, `plain` (instrumented without windows) or `windows`."""
    with options(*(["--windows"] if kind == "windows" else [])):
        return measure.build(program, instrumented=kind != "native")


@contextmanager
def discarded(folder: Path, app: Path) -> Iterator[tuple[dict[str, str], list[int]]]:
    """The environment, and descriptors to inherit, of a program that records into a pool that nobody reads."""
    from tracekit.recorder.pool import Pool
    from tracekit.recorder.session import program_environment

    pool, environment = Pool(), program_environment(str(app))
    pool.discard()
    ours, _, others = environment["LD_PRELOAD"].partition(":")
    subprocess.run(["strip", "-o", folder / "preload.so", ours], check=True)
    yield (
        {**environment, "LD_PRELOAD": f"{folder}/preload.so:{others}", "TRACEKIT_POOL": str(pool.descriptor)},
        [pool.descriptor],
    )
    pool.close()


@contextmanager
def unrecorded(folder: Path, app: Path) -> Iterator[tuple[dict[str, str], list[int]]]:
    """The same of a program that nobody records."""
    del folder, app
    yield dict(os.environ), []


def instructions(program: Program, kind: str, how: Callable[..., Any] = unrecorded) -> int:
    """How many the program takes, by itself."""
    arguments, stdin = program.arguments(COUNTED)
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "app"
        subprocess.run(["strip", "-o", app, built(program, kind)], check=True)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(app), *arguments]
        with open(stdin or os.devnull, "rb") as source, how(Path(folder), app) as (environment, inherited):
            done = subprocess.run(
                command,
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                pass_fds=inherited,
                check=False,
            )
    found = re.search(rb"Collected : (\d+)", done.stderr)
    if found is None:
        raise SystemExit(f"valgrind counted nothing: {done.stderr.decode()[-500:]}")
    return int(found[1])


def count(program: Program, repeat: int) -> list[float]:
    """Instructions with --windows over native ones."""
    del repeat
    return [instructions(program, "windows") / instructions(program, "native")]


def inside(program: Program, repeat: int) -> list[float]:
    """Instructions in a window over all, over those of a build without --windows."""
    del repeat
    return [instructions(program, "windows", discarded) / instructions(program, "plain", discarded)]


def recorded(program: Program, size: int, kind: str, *how: str) -> float:
    """Seconds of a run under `tracekit record`."""
    arguments, stdin = program.arguments(size)
    trace = fetch.cache() / "traces" / f"windows-{program.name}.zst"
    trace.parent.mkdir(parents=True, exist_ok=True)
    command = [*measure.TRACEKIT, "record", *how, "-f", "-o", str(trace), "--", str(built(program, kind)), *arguments]
    seconds = measure.run(command, stdin).seconds
    trace.unlink()
    return seconds


def alone(program: Program, size: int, kind: str) -> float:
    """Seconds of a run that nobody records."""
    arguments, stdin = program.arguments(size)
    return measure.run([str(built(program, kind)), *arguments], stdin).seconds


def time(program: Program, repeat: int) -> list[float]:
    """With --windows over native; a window over all over a build without; sampled over native; snapshots over none."""
    size = SIZE[0] or program.full
    works: dict[str, Callable[[], float]] = {
        "native": lambda: alone(program, size, "native"),
        "windows": lambda: alone(program, size, "windows"),
        "plain": lambda: recorded(program, size, "plain"),
        "inside": lambda: recorded(program, size, "windows", "--window", "on=start"),
        "sampled": lambda: recorded(program, size, "windows", "--sample", "2%"),
        "snapshots": lambda: recorded(program, size, "plain", "--snapshots", "1s"),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            times[name].append(work())
    median = {name: statistics.median(each) for name, each in times.items()}
    return [
        median["windows"] / median["native"],
        median["inside"] / median["plain"],
        median["sampled"] / median["native"],
        median["snapshots"] / median["plain"],
    ]


def sample(program: Program, repeat: int) -> list[float]:
    """Sampled over native by the clock, seconds more, and processor time over native: all that record starts counts."""
    size = SIZE[0] or program.full
    native, sampled, processor_native, processor_sampled = [], [], [], []
    for _ in range(repeat):
        before = children_time()
        native.append(alone(program, size, "native"))
        between = children_time()
        sampled.append(recorded(program, size, "windows", "--sample", "2%"))
        processor_native.append(between - before)
        processor_sampled.append(children_time() - between)
    alone_for, recorded_for = statistics.median(native), statistics.median(sampled)
    processors = statistics.median(processor_sampled) / statistics.median(processor_native)
    return [recorded_for / alone_for, recorded_for - alone_for, processors]


def children_time() -> float:
    """Seconds that all children have taken of processors so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_time(command: list[str]) -> float:
    """Seconds that a command and its children take of processors."""
    before = children_time()
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(measure.ROOT)})
    return children_time() - before


def compile_(program: Program, repeat: int) -> list[float]:
    """Without --windows over native, with it over native, and with it over without."""
    from tracekit.recorder import toolchain

    plus = program.language == "c++"
    compilers = {
        "native": [toolchain.find_clang().path, *(["--driver-mode=g++"] if plus else [])],
        "plain": [*measure.TRACEKIT, "c++" if plus else "cc"],
        "windows": [*measure.TRACEKIT, "c++" if plus else "cc", "--windows"],
    }
    times: dict[str, list[float]] = {name: [] for name in compilers}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeat):
            for name, compiler in compilers.items():
                command = [*compiler, "-O2", "-w", *program.flags(), *map(str, program.sources()), *program.libraries]
                times[name].append(processor_time([*command, "-o", f"{folder}/app"]))
    native, plain, windows = (statistics.median(times[name]) for name in compilers)
    return [plain / native, windows / native, windows / plain]


SIZE = [0]
"""The size of inputs of timed runs; 0: that of one second natively."""

WORKS: dict[str, tuple[list[str], Callable[[Program, int], list[float]]]] = {
    "count": (["no window open"], count),
    "inside": (["inside"], inside),
    "time": (["no window open", "inside", "sampled 2%", "snapshots 1s"], time),
    "sample": (["sampled 2%", "seconds more", "processors"], sample),
    "compile": (["plain", "windows", "windows/plain"], compile_),
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(WORKS))
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--size", type=int, default=0, help="input size of timed runs; default: a second natively")
    given = parser.parse_args()
    sys.path.insert(0, str(measure.ROOT))
    SIZE[0] = given.size
    columns, work = WORKS[given.what]
    print(f"{'program':14}" + "".join(f"{column:>16}" for column in columns), flush=True)
    found: list[list[float]] = []
    for program in programs.PROGRAMS:
        if given.only and program.name not in given.only.split(","):
            continue
        found.append(work(program, given.repeat))
        print(f"{program.name:14}" + "".join(f"{ratio:16.3f}" for ratio in found[-1]), flush=True)
    means = [statistics.geometric_mean(column) for column in zip(*found)]
    print(f"{'geomean':14}" + "".join(f"{ratio:16.3f}" for ratio in means))


if __name__ == "__main__":
    main()
