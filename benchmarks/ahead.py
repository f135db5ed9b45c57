"""Where does the time of the pass ahead of an analysis in segments go?

    python -m benchmarks.ahead [--module camp] [--repeat 3] TRACE...

Goes over whole traces as the pass ahead does, and prints nanoseconds of processor time for each access, the best of so
many: decoding alone (decoded), with replaying (replayed), and with callbacks, contexts and objects (all); and the same
all without stores, without loads, and without loops and functions, whose events are left out. Last: all of it by
compiled paths, over the last three quarters, when they are there.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.modules import registry
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.compiling import paths_for
from tracekit.modules.options import make_options
from tracekit.program.program import Program
from tracekit.replay.compiled.cost_model import SETTING
from tracekit.replay.engine import BATCH, Replay
from tracekit.replay.totals import trace_totals

PARTS: dict[str, tuple[str, ...]] = {
    "all": (),
    "no stores": ("store",),
    "no loads": ("load",),
    "no levels": ("function_entry", "function_exit", "loop_invocation", "loop_iteration", "loop_exit"),
}
"""What is measured of the whole pass -> events that are left out."""


def decoded(trace: TraceReader, program: Program) -> None:
    """Read all records."""
    source = RecordSource(trace, program.arity, False)
    for stream in source.streams():
        for _ in source.records(stream):
            pass


def replayed(trace: TraceReader, program: Program, pilot: Any, left_out: Collection[str], feeds: bool) -> None:
    """Replay what the pass ahead wants, and run its callbacks, or not."""
    runner = CallbackRunner(pilot, "ahead", 1)
    wanted = {name: columns for name, columns in runner.columns.items() if name not in left_out}
    columns = {column for each in wanted.values() for column in each}
    for batch in Replay(trace, program, BATCH, set(wanted), columns).batches(show_progress=False):
        if feeds:
            runner.feed(batch, 0)


def compiled(trace: TraceReader, program: Program, pilot: Any, total: int) -> float:
    """Seconds of processor time for an access of the last three quarters of `total`, by compiled paths."""
    runner = CallbackRunner(pilot, "ahead", 1)
    columns = {column for each in runner.columns.values() for column in each}
    replay = Replay(trace, program, BATCH, set(runner.columns), columns)
    runner.begin(replay.example())
    replay.compiled = paths_for(trace, program, [runner], 1)
    accesses, begun = 0, time.thread_time()
    for batch in replay.batches(show_progress=False):
        runner.feed(batch, 0)
        if accesses < total // 4:
            accesses, begun = int(runner.worker.clock[0]), time.thread_time()
    return (time.thread_time() - begun) / (total - accesses)


def best(work: Callable[[], None], repeat: int) -> float:
    """The least seconds of processor time; what it compiles is compiled before."""
    work()
    times = []
    for _ in range(repeat):
        begun = time.thread_time()
        work()
        times.append(time.thread_time() - begun)
    return min(times)


def measured(path: Path, name: str, repeat: int) -> dict[str, float]:
    """Nanoseconds for an access."""
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
        kind: Any = registry.load(name)
        module = kind(program, make_options(kind.Options, {}))
        module.accesses = trace_totals(trace, program)["accesses"]
        pilot = module.segments().pilot
        taken = {
            "decoded": best(lambda: decoded(trace, program), repeat),
            "replayed": best(lambda: replayed(trace, program, pilot, (), False), repeat),
        }
        for part, left_out in PARTS.items():
            taken[part] = best(partial(replayed, trace, program, pilot, left_out, True), repeat)
        parts = {part: 1e9 * seconds / module.accesses for part, seconds in taken.items()}
        os.environ[SETTING] = "always"
        parts["compiled"] = 1e9 * min(compiled(trace, program, pilot, module.accesses) for _ in range(1 + repeat))
        del os.environ[SETTING]
        return parts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="camp")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    chosen = parser.parse_args()
    print(f"{'trace':14}" + "".join(f"{part:>11}" for part in ("decoded", "replayed", *PARTS, "compiled")))
    for path in chosen.traces:
        parts = measured(path, chosen.module, chosen.repeat)
        print(f"{path.stem:14}" + "".join(f"{nanoseconds:11.1f}" for nanoseconds in parts.values()), flush=True)


if __name__ == "__main__":
    main()
