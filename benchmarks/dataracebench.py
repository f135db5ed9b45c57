"""Recall and precision of `races` on DataRaceBench: its programs without `target`, each compiled and run.

    git clone https://github.com/LLNL/dataracebench
    python benchmarks/dataracebench.py [--fortran] [--threads 4] [--runs 5] [--no-lock-orders] dataracebench

Those in C and C++, or, with `--fortran`, those in Fortran, compiled by flang 19. A program's name says
whether it has a race. Kernels of PolyBench are compiled with their smallest data; a program that goes on for ever is
interrupted after some seconds, and what it did until then is judged. With `--runs` a program in which nothing was found
runs again, so often at most, as DataRaceBench's own script runs each: some have their race in some runs only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TRACEKIT = [sys.executable, "-m", "tracekit"]
RUN, ANALYSE = 5, 300
"""Seconds after which a program is ended, and those after which its analysis is given up."""
POLYBENCH = "-DMINI_DATASET -DPOLYBENCH_NO_FLUSH_CACHE -DPOLYBENCH_TIME -D_POSIX_C_SOURCE=200112L".split()


class Verdict(NamedTuple):
    """What became of a program: `found` is the number of races, or None, and `why`."""

    name: str
    races: bool
    found: int | None
    why: str = ""

    def line(self) -> str:
        """A line for the reader."""
        if self.found is None:
            return f"{self.name}: not judged, {self.why}"
        right = (self.found > 0) == self.races
        return f"{self.name}: {self.found} found{'' if right else ', missed' if self.races else ', false'}"


def programs(folder: Path, fortran: bool) -> list[Path]:
    """Those that need no device."""
    patterns = ["micro-benchmarks/DRB*.c", "micro-benchmarks/DRB*.cpp"]
    if fortran:
        patterns = ["micro-benchmarks-fortran/DRB*.f95", "micro-benchmarks-fortran/DRB*.F95"]
    found = [path for pattern in patterns for path in folder.glob(pattern)]
    device = re.compile(r"^\s*(#\s*pragma\s+|!\$)omp.*\btarget\b", re.MULTILINE | re.IGNORECASE)
    return sorted(path for path in found if not device.search(text(path)))


def text(path: Path) -> str:
    """A program's source."""
    return path.read_text(errors="replace")


def failure(*command: str | Path) -> str:
    """Run a command; returns what it says if it fails, else nothing."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return (run.stderr.strip() or "no message") if run.returncode else ""


def compiled(path: Path, to: Path) -> str:
    """Compile a program; returns what the compiler says if it does not."""
    if path.suffix.lower() == ".f95":
        return compiled_fortran(path, to)
    sources, options = [path], ["-fopenmp", "--threads", "-g", "-O0", "-w"]
    if "polybench" in text(path).lower():
        utilities = path.parent / "utilities"
        sources.append(utilities / "polybench.c")
        options += [*POLYBENCH, f"-I{path.parent}", f"-I{utilities}", f"-I{path.parent / 'polybench'}"]
    compiler = "c++" if path.suffix == ".cpp" else "cc"
    return failure(*TRACEKIT, compiler, *options, *sources, "-o", to, "-lm")


def compiled_fortran(path: Path, to: Path) -> str:
    """The same of a program in Fortran, whose module files go beside the program."""
    return failure(*TRACEKIT, "fc", "-fopenmp", "--threads", "-g", "-O0", "-w", "-J", to.parent, path, "-o", to)


def recorded(program: Path, trace: Path, threads: int) -> None:
    """Record a run, in a process group of its own, which is ended if it takes long."""
    process = subprocess.Popen(
        [*TRACEKIT, "record", "-f", "-o", str(trace), "--", str(program)],
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=RUN)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def judged(path: Path, folder: Path, threads: int, runs: int, lock_orders: bool) -> Verdict:
    """Compile, record and analyse a program, until something is found."""
    races = path.stem.endswith("-yes")
    program = folder / path.stem
    if wrong := compiled(path, program):
        return Verdict(path.name, races, None, wrong.splitlines()[-1])
    verdict = Verdict(path.name, races, None)
    for _ in range(runs):
        if not verdict.found:
            verdict = judged_run(path, program, folder / "trace.zst", threads, lock_orders)
    program.unlink()
    return verdict


def judged_run(path: Path, program: Path, trace: Path, threads: int, lock_orders: bool) -> Verdict:
    """Of one run."""
    races = path.stem.endswith("-yes")
    recorded(program, trace, threads)
    command = [*TRACEKIT, "analyze", "-m", "races", "--json", *["--no-lock-orders"] * (not lock_orders), str(trace)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=ANALYSE, check=False)
    except subprocess.TimeoutExpired:
        return Verdict(path.name, races, None, f"the analysis takes more than {ANALYSE} s")
    finally:
        trace.unlink(missing_ok=True)
    if run.returncode:
        return Verdict(path.name, races, None, (run.stderr.strip().splitlines() or ["no message"])[-1])
    return Verdict(path.name, races, len(json.loads(run.stdout)["result"]["races"]))


def main() -> None:
    """A line for each program, then recall and precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fortran", action="store_true", help="the programs in Fortran, not those in C and C++")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--runs", type=int, default=1, help="run a program so often at most, until something is found")
    parser.add_argument("--no-lock-orders", action="store_true", help="leave out races of other orders of locks")
    parser.add_argument("--only", default="", help="beginnings of names, with commas")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    every = programs(options.folder, options.fortran)
    chosen = [path for path in every if path.name.startswith(tuple(options.only.split(",")))]
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for path in chosen:
            verdicts.append(judged(path, Path(folder), options.threads, options.runs, not options.no_lock_orders))
            print(verdicts[-1].line(), flush=True)
    known = [verdict for verdict in verdicts if verdict.found is not None]
    with_race = [verdict for verdict in known if verdict.races]
    reported = [verdict for verdict in known if verdict.found]
    right = sum(verdict.races for verdict in reported)
    print(f"\n{len(known)} of {len(verdicts)} programs judged, {len(with_race)} with a race")
    print(f"recall {right} of {len(with_race)}: {right / max(1, len(with_race)):.2f}")
    print(f"precision {right} of {len(reported)}: {right / max(1, len(reported)):.2f}")


if __name__ == "__main__":
    main()
