"""What compiled paths gain: processor time of a replay through a module with them and without, in turn.

    python -m benchmarks.compiled_paths [--module NAME]... [--repeat N] TRACE ...

Decoding is part of both; the result is not, and neither is compiling: all paths that a replay would have compiled in
the end are there from its first record on. Medians of the ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

from tracekit.analysis.passes import prepare
from tracekit.formats.reader import TraceReader
from tracekit.modules import registry
from tracekit.program.program import Program
from tracekit.replay.compiled.compiler import CompiledPaths
from tracekit.replay.compiled.cost_model import SETTING

ALL_RECORDS = 1 << 62


def prepared(trace: TraceReader, program: Program, name: str) -> tuple[Any, Any]:
    """A replay, and the one runner that it feeds."""
    replay, runners = prepare(trace, program, {name: registry.load(name).Options()}, 1)
    replay.compiled = None
    return replay, next(iter(runners.values()))


def with_paths(trace: TraceReader, program: Program, name: str) -> tuple[Any, Any]:
    """The same with compiled paths, made of all records of the trace."""
    replay, runner = prepared(trace, program, name)
    counted, _ = prepared(trace, program, name)
    paths = CompiledPaths([runner], trace.content_hash.encode(), ALL_RECORDS)
    for stream in counted.streams:
        for ids, _ in stream.source:
            paths.sample.add(ids)
    replay.compile_paths(paths, replay.streams[0])
    paths.wait()
    replay.compiled = paths
    return replay, runner


def seconds(replay: Any, runner: Any) -> float:
    """Processor time of a replay."""
    begin = time.process_time()
    for batch in replay.batches():
        runner.feed(batch, 0)
    return time.process_time() - begin


def main() -> None:
    """Print a line for each module and trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("traces", nargs="+")
    arguments = parser.parse_args()
    os.environ[SETTING] = "0"
    for path in arguments.traces:
        with TraceReader(path) as trace:
            program = Program.from_images(trace.images())
            for name in arguments.module or ["dependence", "accesses", "footprint", "camp"]:
                seconds(*prepared(trace, program, name))  # compiles the kernels
                spent, ratios, share = [], [], 0.0
                for _ in range(arguments.repeat):
                    without = seconds(*prepared(trace, program, name))
                    replay, runner = with_paths(trace, program, name)
                    spent.append(seconds(replay, runner))
                    ratios.append(spent[-1] / without)
                    share = replay.compiled.share(replay.position())
                print(
                    f"{os.path.basename(path):16} {name:12} {statistics.median(ratios):.2f} of the time without, "
                    f"{statistics.median(spent):.2f} s, {100 * share:.1f} % of the records",
                    flush=True,
                )


if __name__ == "__main__":
    main()
