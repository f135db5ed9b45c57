"""What threads cost: recording two that take locks against one, `cc --threads`, and how fast races and its like are.

    python -m benchmarks.parallel [--repeat 5] [--rounds 4000000]

All figures are of processor time: of recording, the program's and the collector's, medians of runs that take turns; of
analyses, of a run a tenth as long, of one core, replay and the making of the profile included, the fastest of three.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import tracekit
from tracekit.replay.totals import trace_totals

SOURCE = Path(__file__).with_suffix(".c")
TRACEKIT = [sys.executable, "-m", "tracekit"]
MODULES = ("races", "taskgraph", "paths")


def seconds_of(command: list[str]) -> float:
    """Processor time of a command and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def medians(commands: Mapping[str, list[str]], repeat: int) -> dict[str, float]:
    """Seconds of each command; they take turns."""
    runs: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            runs[name].append(seconds_of(command))
    return {name: statistics.median(seconds) for name, seconds in runs.items()}


def analysed(trace: Path, module: str) -> float:
    """Million accesses a second of processor time."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        profile = tracekit.analyze(trace, module, jobs=1)
        best = min(best, time.process_time() - begun)
    with tracekit.open(trace) as opened:
        accesses: int = trace_totals(opened.reader, opened.program)["accesses"]
    assert profile.result
    return accesses / best / 1e6


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program, more in (("plain", []), ("ordered", ["--threads"])):
            command = [*TRACEKIT, "cc", *more, "-O2", "-pthread", str(SOURCE), "-o", str(folder / program)]
            subprocess.run(command, check=True)

        def run(program: str, threads: int, kind: str, record: bool = True) -> list[str]:
            command = [str(folder / program), str(threads), str(options.rounds), kind]
            trace = str(folder / f"{program}-{threads}-{kind}.zst")
            return [*TRACEKIT, "record", "-f", "-o", trace, "--", *command] if record else command

        commands = {
            f"{program} {threads} {kind}": run(program, threads, kind)
            for program in ("plain", "ordered")
            for threads in (1, 2)
            for kind in ("mutex", "atomic")
        }
        commands |= {
            f"unrecorded {threads} {kind}": run("plain", threads, kind, record=False)
            for threads in (1, 2)
            for kind in ("mutex", "atomic")
        }
        nothing = [str(folder / "plain"), "1", "0", "mutex"]
        commands["nothing"] = [*TRACEKIT, "record", "-f", "-o", str(folder / "nothing.zst"), "--", *nothing]
        found = medians(commands, options.repeat)
        start = found.pop("nothing")
        for name, seconds in found.items():
            print(f"{name:24} {seconds - start * (not name.startswith('unrecorded')):7.2f} s")

        def ratio(what: str, one: str, other: str) -> None:
            print(f"{what}: {(found[one] - start) / (found[other] - start):.2f}")

        ratio("two threads with locks against one", "plain 2 mutex", "plain 1 mutex")
        ratio("cc --threads, mutexes", "ordered 1 mutex", "plain 1 mutex")
        ratio("cc --threads, an atomic operation for 16 accesses", "ordered 1 atomic", "plain 1 atomic")
        ratio("the same, two threads", "ordered 2 atomic", "plain 2 atomic")
        for kind in ("mutex", "atomic"):
            trace = folder / f"short-{kind}.zst"
            short = [str(folder / "ordered"), "2", str(options.rounds // 10), kind]
            subprocess.run([*TRACEKIT, "record", "-o", str(trace), "--", *short], check=True, capture_output=True)
            for module in MODULES:
                speed = analysed(trace, module)
                print(f"{module}, {kind}: {speed:.0f} million accesses a second")


if __name__ == "__main__":
    main()
