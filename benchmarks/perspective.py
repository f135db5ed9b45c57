"""Speed of the preset perspective: million accesses a second of processor time, one thread, kernels warm.

    python benchmarks/perspective.py [--only bzip2,lua] [--repeat 3] [--size 1]

*count*: the pass that finds the hottest loop. *events*: replay of what the four modules want, fed to nobody. Then each
module alone, its replay included, and all four in one pass.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import programs

sys.path.insert(0, str(Path(__file__).parents[1]))

from tracekit.analysis.passes import prepare
from tracekit.analyzers.dependence import Dependence
from tracekit.analyzers.perspective import Perspective, PerspectiveOptions
from tracekit.formats.reader import TraceReader
from tracekit.modules.contract import NoOptions
from tracekit.modules.scheduler import run
from tracekit.program.program import Program


def seconds(trace: TraceReader, program: Program, options: dict[Any, Any], feed: bool = True) -> tuple[float, Any]:
    """Processor time of one pass through the modules, and the first one's result."""
    replay, runners = prepare(trace, program, options, 1)
    begin = time.process_time()
    if not feed:
        replay.compiled = None
    run(replay.batches(), list(runners.values()) if feed else [], 1)
    spent = time.process_time() - begin
    return spent, next(iter(runners.values())).result()[0] if len(options) == 1 else None


def measured(path: Path, repeat: int) -> dict[str, float]:
    """What is measured -> seconds, medians."""
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
        counted: list[float] = []

        def count(module: Any) -> Any:
            spent, result = seconds(trace, program, {module: NoOptions()})
            counted.append(spent)
            return result

        for _ in range(repeat + 1):
            members = dict(Perspective(program, PerspectiveOptions()).modules())
            members["dependence"] = Dependence.settled(members["dependence"], None, count)
        works: dict[str, Callable[[], float]] = {"events": lambda: seconds(trace, program, members, feed=False)[0]}
        for name, options in members.items():
            works[name] = lambda name=name, options=options: seconds(trace, program, {name: options})[0]  # type: ignore[misc]
        works["all four"] = lambda: seconds(trace, program, members)[0]
        times: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(repeat + 1):
            for name, work in works.items():
                spent = work()
                if turn > 0:  # the first loads kernels
                    times[name].append(spent)
        medians = {name: statistics.median(each) for name, each in times.items()}
        return {"count": statistics.median(counted[1:]), **medians}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="bzip2,lua,sqlite3")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", type=int, default=1)
    options = parser.parse_args()
    measure.VALUES += ["--values=loads", "--pointers"]
    for name in options.only.split(","):
        program = programs.EVERYTHING[name]
        path = measure.trace_path(program, options.size)
        if not path.exists():
            measure.recorded(program, options.size)
        accesses = measure.info(path)["accesses"] / 1e6
        times = measured(path, options.repeat)
        print(
            f"{name}, {accesses:.1f} M accesses: "
            + ", ".join(f"{what} {accesses / spent:.1f}" for what, spent in times.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
