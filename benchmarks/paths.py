"""Speed of path profiles and task graphs: decoding records, following and counting them, making the profile, one core.

    python -m benchmarks.paths [--repeat N] [--module taskgraph] TRACE ...

Nanoseconds of processor time for an access, from the fastest of the runs, and million accesses a second without the
last part, which depends on the program and not on how long it ran.
"""

from __future__ import annotations

import argparse
import time

import tracekit
from tracekit.formats.records import RecordSource
from tracekit.paths.counter import PathCounter
from tracekit.paths.profile import profile
from tracekit.replay.totals import trace_totals
from tracekit.replay.trace import Trace
from tracekit.taskgraph.collector import StepCollector
from tracekit.taskgraph.profile import TaskGraphProfile

MOST = 1 << 22


def times(trace: Trace, module: str) -> tuple[float, float, float, int]:
    """Seconds of decoding, of counting and of making the profile; how many records there are."""
    source = RecordSource(trace.reader, trace.program.arity)
    counter: PathCounter | StepCollector = PathCounter(trace.program, MOST)
    if module == "taskgraph":
        counter = StepCollector(trace.program, locks=True)
    decoding = counting = 0.0
    records = 0
    for stream in source.streams():
        batches = source.records(stream)
        while True:
            begun = time.thread_time()
            batch = next(batches, None)
            decoded = time.thread_time()
            decoding += decoded - begun
            if batch is None:
                break
            counter.add(stream, *batch)
            counting += time.thread_time() - decoded
            records += len(batch[0])
    begun = time.thread_time()
    if isinstance(counter, StepCollector):
        TaskGraphProfile(trace.program, counter, "blocks").result((), 1000)
    else:
        profile(trace.program, counter)
    return decoding, counting, time.thread_time() - begun, records


def main() -> None:
    """Print a line for each trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--module", choices=("paths", "taskgraph"), default="paths")
    parser.add_argument("traces", nargs="+")
    options = parser.parse_args()
    print("trace                   M accesses  M records  decode  count  count/record   M/s  profile s")
    for path in options.traces:
        with tracekit.open(path) as trace:
            accesses = trace_totals(trace.reader, trace.program)["accesses"]
            runs = [times(trace, options.module) for _ in range(options.repeat)]
            decoding, counting, making = (min(run[part] for run in runs) for part in range(3))
            records = runs[0][3]
            print(
                f"{path[-22:]:22}  {accesses / 1e6:10.1f}  {records / 1e6:9.1f}  {decoding / accesses * 1e9:6.2f}"
                f"  {counting / accesses * 1e9:5.2f}  {counting / records * 1e9:12.1f}"
                f"  {accesses / (decoding + counting) / 1e6:4.0f}  {making:9.2f}"
            )


if __name__ == "__main__":
    main()
