"""What appending to the five grammars of `whomp` takes, without replay: nanoseconds an access, one thread.

    python benchmarks/grammars.py [--to 3000000] [--repeat 3] TRACE...

Of each trace the medians of processor time: each grammar by itself, and all five as `whomp` makes them, in turn; and
the size of all. The streams are those of the first accesses, taken from the grammars that `whomp` writes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tracekit
import tracekit.whomp
from tracekit.jit.kernel import kernel
from tracekit.whomp.grammar import Written, empty_grammar
from tracekit.whomp.kernels.pending import append, append_all, flush


@kernel
def append_five(a: Any, b: Any, c: Any, d: Any, e: Any, streams: Any) -> None:
    """Accesses to the grammars of all dimensions."""
    for number in range(streams.shape[1]):
        append(a, streams[0, number], False)
        append(b, streams[1, number], False)
        append(c, streams[2, number], False)
        append(d, streams[3, number], False)
        append(e, streams[4, number], False)
    flush(a)
    flush(b)
    flush(c)
    flush(d)
    flush(e)


def streams_of(trace: str, most: int) -> Any:
    """A row of the first values for each dimension."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.whomp"
        tracekit.analyze(trace, "whomp", 1, window={"to": most}, grammars=str(path))
        return np.array([np.concatenate(list(tracekit.whomp.expand(path, name))) for name in tracekit.whomp.ALL])


def measure(streams: Any) -> tuple[list[float], int]:
    """Nanoseconds an access: of each grammar, of all five; and the bytes of all."""
    spent = []
    for stream in streams:
        grammar, begin = empty_grammar(), time.process_time_ns()
        append_all(grammar, stream)
        spent.append(time.process_time_ns() - begin)
    grammars = [empty_grammar() for _ in streams]
    begin = time.process_time_ns()
    append_five(*grammars, streams)
    spent.append(time.process_time_ns() - begin)
    size = sum(Written.of(grammar).size()["bytes"] for grammar in grammars)
    return [each / streams.shape[1] for each in spent], size


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=int, default=3_000_000, help="accesses of each trace")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    options = parser.parse_args()
    measure(np.zeros((5, 10), np.int64))  # what has to be compiled is compiled
    print(f"{'trace':12}", *(f"{name:>11}" for name in (*tracekit.whomp.ALL, "all five", "M/s", "bytes")))
    for trace in options.traces:
        streams = streams_of(trace, options.to)
        runs = [measure(streams) for _ in range(options.repeat)]
        medians = [statistics.median(times) for times in zip(*(times for times, _ in runs), strict=True)]
        print(f"{Path(trace).stem:12}", *(f"{each:11.1f}" for each in medians), end="")
        print(f"{1000 / medians[-1]:12.2f} {runs[0][1]:11,}", flush=True)


if __name__ == "__main__":
    main()
