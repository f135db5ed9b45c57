"""Speed of exports: nanoseconds of processor time and by the clock for each access, and bytes.

    python -m benchmarks.exports [--repeat N] [--format NAME]... [--discard] TRACE ...

Each figure is the median of --repeat runs, which are interleaved. `replay` takes the accesses out of the trace alone.
What has to be compiled is compiled before, and the start of Python is not in it. Files are written to a folder for
temporary files; with --discard to nowhere, as a pipe into a simulator is about.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracekit.commands import export as command
from tracekit.formats.export import FORMATS, arrow, champsim, counters, drmemtrace, exported
from tracekit.replay.engine import count_events
from tracekit.replay.trace import Trace

COLUMNS = ["subject", "address", "size"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    names = ["replay", *command.FORMATS, command.ARCHIVE, *command.TABLE_FORMATS]
    parser.add_argument("--format", action="append", choices=names, help="default: all")
    parser.add_argument("--discard", action="store_true", help="write no file: how many bytes it has is not known")
    options = parser.parse_args()
    print(f"{'':24}{'format':16}{'processor ns':>14}{'M/s':>8}{'clock ns':>10}{'bytes':>8}")
    for trace in options.traces:
        _measure(trace, options.format or names, options.repeat, options.discard)


def _measure(trace: Path, names: list[str], repeat: int, discard: bool) -> None:
    """Print the rows of a trace."""
    with Trace(trace) as opened:
        counts = count_events(opened.reader, opened.program)
    accesses = counts["load"] + counts["store"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(os.devnull) if discard else Path(folder) / "out"
        for name in names:
            _run(name, trace, out)
        turns = [{name: _run(name, trace, out) for name in names} for _ in range(repeat)]
    for name in names:
        processor, clock, size = (statistics.median(each) / accesses for each in zip(*(turn[name] for turn in turns)))
        speed = 1e-6 / processor
        print(f"{trace.stem:24}{name:16}{processor * 1e9:14.1f}{speed:8.1f}{clock * 1e9:10.1f}{size:8.2f}", flush=True)


def _run(name: str, trace: Path, out: Path) -> tuple[float, float, int]:
    """Seconds of processor time, by the clock, and bytes of one export."""
    with Trace(trace) as opened, out.open("wb") as file:
        processor, clock = time.process_time(), time.perf_counter()
        _writer(name)(opened.batches(["load", "store"], COLUMNS), file)
        file.flush()
        return time.process_time() - processor, time.perf_counter() - clock, file.tell()


def _writer(name: str) -> Callable[[Any, Any], None]:
    """What writes batches into a file."""
    if name == "replay":
        return lambda batches, file: deque(batches, 0).clear()
    if name == command.ARCHIVE:

        def known(instructions: Any) -> Any:
            return counters(instructions, champsim.counters, None)

        return lambda batches, file: drmemtrace.write(batches, file, known, 0, 1, lambda stream: 1 + stream)
    if name in command.TABLE_FORMATS:
        return lambda batches, file: arrow.write(name, arrow.accesses(batches, False), file)
    return lambda batches, file: file.writelines(exported(batches, FORMATS[name]))


if __name__ == "__main__":
    main()
