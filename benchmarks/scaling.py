"""How far do segments scale? Measures each part of an analysis in segments, and simulates it on more cores.

    python -m benchmarks.scaling [--module camp] [--segments 64] [--cores 1,2,16,64] [--known] [--first] TRACE...

Measured, in processor time of this machine: the pass ahead up to the beginning of each segment, the analysis of each,
its joining, making the result, and the analysis of the whole. Simulated: one core goes ahead and hands segments to the
others, and takes the last ones when it is done; segments are joined in order as they end (as today), or, with --tree,
two by two beside one another. With --known an earlier analysis has kept what segments begin with, and no core goes
ahead. With --first a first pass (tracekit/analysis/first_pass.py) goes before all else, on one core. What cores share,
memory and caches, is not simulated.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracekit.analysis.passes import prepare, replay_through
from tracekit.formats.reader import TraceReader
from tracekit.modules import registry
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import NoOptions, make_options
from tracekit.program.program import Program
from tracekit.replay.totals import trace_totals
from tracekit.replay.window import Restriction
from tracekit.segments.analysis import Segment, SegmentedAnalysis


@dataclass
class Measured:
    """Seconds of processor time."""

    ready: list[float] = field(default_factory=list)
    """Of the pass ahead, up to where it knows all of a segment, its end too."""
    analysed: list[float] = field(default_factory=list)
    joined: list[float] = field(default_factory=list)
    result: float = 0.0
    whole: float = 0.0
    first: float = 0.0
    """Of the first pass; not in `whole`."""


def simulated(parts: Measured, cores: int, tree: bool = False) -> float:
    """Seconds until the result is there, on so many cores of which one goes ahead at first."""
    free = [0.0] * (cores - 1) + [parts.ready[-1]]
    heapq.heapify(free)
    ends = []
    for ready, taken in zip(parts.ready, parts.analysed, strict=True):
        begun = max(heapq.heappop(free), ready)
        ends.append(begun + taken)
        heapq.heappush(free, ends[-1])
    if tree:
        rounds = math.ceil(math.log2(len(ends))) if len(ends) > 1 else 0
        return max(ends) + rounds * max(parts.joined) + parts.result
    joined = 0.0
    for end, taken in zip(ends, parts.joined, strict=True):
        joined = max(joined, end) + taken
    return joined + parts.result


class MeasuredAnalysis(SegmentedAnalysis):
    """Notes how long each part takes; one thread after another."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.measured = Measured()
        self._begun = time.thread_time()

    def _begin(self, segment: Segment) -> Segment:
        self.measured.ready.append(time.thread_time() - self._begun - sum(self.measured.joined))
        return super()._begin(segment)

    def _analysed(self, segment: Segment) -> Mapping[str, CallbackRunner]:
        begun = time.thread_time()
        found = super()._analysed(segment)
        self.measured.analysed.append(time.thread_time() - begun)
        return found

    def _join(self) -> None:
        begun = time.thread_time()
        super()._join()
        self.measured.joined.append(time.thread_time() - begun)


def timed(work: Callable[[], object]) -> float:
    """Seconds of processor time of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def look_first(trace: TraceReader, program: Program, module: Any) -> float:
    """Make the first pass of a module, whether it pays or not; returns what it took. Kernels are compiled before."""
    from tracekit.dependence import final_stores

    os.environ[final_stores.SETTING] = "always"
    kind = module.first_pass({"accesses": module.accesses, "loads": 0, "stores": 0}, 0)

    def look() -> None:
        replay, runners = prepare(trace, program, {kind: NoOptions()}, 1)
        replay_through(replay, runners, Restriction(None, trace, program), 1)
        module.found_first = runners[kind.__name__].result()[0]

    look()
    return timed(look)


def measure(path: Path, name: str, given: Sequence[str], segments: int, first: bool) -> Measured:
    """Analyse a trace by one module in segments and as a whole; kernels are compiled before."""
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
        kind: Any = registry.load(name)
        module = kind(program, make_options(kind.Options, dict(each.split("=", 1) for each in given)))
        module.accesses = trace_totals(trace, program)["accesses"]
        taken = look_first(trace, program, module) if first else 0.0
        cuts = [module.accesses * number // segments for number in range(1, segments)]

        def in_segments(places: Sequence[int]) -> MeasuredAnalysis:
            analysis = MeasuredAnalysis(trace, program, {name: CallbackRunner(module, name, 1)})
            analysis.run(1, places)
            return analysis

        in_segments(cuts[:1])
        parts = in_segments(cuts).measured
        runner = CallbackRunner(module, name, 1)
        whole = MeasuredAnalysis(trace, program, {name: runner})
        parts.whole = timed(lambda: whole.run(1, []))
        parts.result = timed(runner.result)
        parts.whole += parts.result
        parts.first = taken
    return parts


def main() -> None:
    """Measure, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="camp")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="of the module")
    parser.add_argument("--segments", type=int, default=64)
    parser.add_argument("--cores", default="1,2,16,64")
    parser.add_argument("--tree", action="store_true")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    chosen = parser.parse_args()
    cores = [int(number) for number in chosen.cores.split(",")]
    print(f"{'trace':14}{'first':>8}{'whole':>8}{'ahead':>8}{'segments':>10}{'joining':>9}{'result':>8}", end="")
    print("".join(f"{number:>6} c." for number in cores))
    for path in chosen.traces:
        parts = measure(path, chosen.module, chosen.set, chosen.segments, chosen.first)
        if chosen.known:
            parts.ready = [0.0] * len(parts.ready)
        print(
            f"{path.stem:14}{parts.first:8.2f}{parts.whole:8.2f}{parts.ready[-1]:8.2f}{sum(parts.analysed):10.2f}",
            end="",
        )
        print(f"{sum(parts.joined):9.2f}{parts.result:8.2f}", end="")
        alone = parts.first + parts.whole
        times = [parts.first + simulated(parts, number, chosen.tree) for number in cores]
        print("".join(f"{alone / each:8.2f}" for each in times))


if __name__ == "__main__":
    main()
