"""Speed of replay without a module: chunks to records (decode), and records to events (derive), one core.

    python -m benchmarks.decode [TRACE ...]        without a trace: a synthetic one, shaped like sqlite3's

The synthetic trace has three blocks for four accesses, a call for every seventh block, loops of a few blocks and
addresses that half follow a stride and half jump within 1 MiB. Nanoseconds of processor time and accesses per second,
with decode included, from the fastest of 5 times of each piece of the work: a busy machine disturbs some pieces.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tracekit
from tests.naive.program_builder import Layout, ProgramBuilder
from tests.naive.trace_file import Record, write_trace
from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.formats.records import RecordSource
from tracekit.replay.engine import Replay, count_events
from tracekit.replay.trace import Trace

RUNS = 5
LOOPS, CALLEES = 40, 30


class Synthetic:
    """A program of loops that call leaf functions, and the records of a run of it."""

    def __init__(self, records: int, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.b = ProgramBuilder()
        main = self.b.function("main")
        self.blocks = [self.block(main, BlockFlag.ENTRY)]
        callees = [self.b.function(f"leaf{k}") for k in range(CALLEES)]
        self.leaves = [(self.block(f, BlockFlag.ENTRY), self.block(f, BlockFlag.RETURNS)) for f in callees]
        bodies = [self.loop(main) for _ in range(LOOPS)]
        self.paths = {block: self.b.path(block) for block in range(len(self.b.blocks))}
        self.layout: Layout = self.b.layout()
        visits = [self.blocks[0]]
        while len(visits) < records:
            body = bodies[int(self.rng.zipf(1.5)) % LOOPS]
            visits += body * int(self.rng.integers(2, 30))
        self.records = self.with_words(visits)

    def block(self, function: int, flags: int = 0, loop: int = NONE, continues: int = NONE) -> int:
        """A block of none to three accesses, 1.3 on average."""
        block = self.b.block(function, flags, loop, continues)
        for _ in range(int(self.rng.choice(4, p=(0.2, 0.4, 0.3, 0.1)))):
            self.b.op(block, OpKind.LOAD if self.rng.random() < 0.7 else OpKind.STORE, int(self.rng.choice((1, 4, 8))))
        return block

    def loop(self, function: int) -> list[int]:
        """The blocks that one iteration of a new loop visits."""
        loop = self.b.loop(function)
        visits = [self.block(function, BlockFlag.LOOP_HEADER, loop)]
        for _ in range(int(self.rng.integers(1, 8))):
            visits.append(self.block(function, 0, loop))
            if self.rng.random() < 0.35:
                leaf = int(self.rng.integers(CALLEES))
                call = self.b.call(visits[-1], f"leaf{leaf}")
                visits += [*self.leaves[leaf], self.block(function, 0, loop, call)]
        return visits

    def with_words(self, visits: list[int]) -> list[Record]:
        """Records with addresses: each operation strides, or jumps within 1 MiB."""
        accesses = [op["block"] for op in self.b.ops if op["kind"] != OpKind.CALL]
        counts = {block: accesses.count(block) for block in self.paths}
        next_word = self.rng.integers(1 << 40, (1 << 40) + (1 << 20), (len(self.b.blocks), 4))
        strides = np.where(self.rng.random(next_word.shape) < 0.5, 8, 0)
        jumps = self.rng.integers(0, 1 << 20, 1 << 16)
        records: list[Record] = []
        for k, block in enumerate(visits):
            words = [
                int(next_word[block, j] + (0 if strides[block, j] else jumps[(k + j) % len(jumps)]))
                for j in range(counts[block])
            ]
            next_word[block] += strides[block]
            records.append((self.layout.path_number(self.paths[block]), words))
        return records


def least(run: Callable[[], Iterable[int]]) -> tuple[float, int]:
    """Seconds that `run` takes when nothing disturbs it, and the sum of what it yields.

    It yields the same pieces each time: of each the fastest of RUNS times is taken, after one run that warms up.
    """
    total, times = sum(run()), []
    for _ in range(RUNS):
        pieces = run()  # what builds tables is not the trace's length
        ends = [time.process_time()]
        for _ in pieces:
            ends.append(time.process_time())
        ends.append(time.process_time())  # of what comes after the last piece
        times.append(np.diff(ends))
    return float(np.min(times, axis=0).sum()), total


ASKED: dict[str, dict[str, Any]] = {
    "all events": {},
    "loads and stores": {"events": ("load", "store"), "columns": ("subject", "address", "size")},
    "their addresses": {"events": ("load", "store"), "columns": ("address",)},
    "nothing": {"events": ("thread_exit",), "columns": ("subject",)},
}
"""What replay is asked for."""


def measure(trace: Trace) -> str:
    """Decode alone, and decode with derive for what is ASKED, as one line."""
    program = trace.program
    counts = count_events(trace.reader, program)
    accesses = counts["load"] + counts["store"]

    def decode() -> Iterator[int]:
        source = RecordSource(trace.reader, program.arity)
        return (len(ids) for stream in source.streams() for ids, _ in source.records(stream))

    decoding, records = least(decode)
    figures = [f"decode {1e9 * decoding / accesses:5.2f} ns/access"]
    for name, asked in ASKED.items():
        both, events = least(lambda asked=asked: map(len, Replay(trace.reader, program, **asked).batches()))
        figures.append(f"{name} {1e9 * both / accesses:5.2f} = {accesses / both / 1e6:5.1f} M/s ({events:,} events)")
    return f"{records:>11,} records {accesses:>11,} accesses   {'   '.join(figures)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    parser.add_argument("--records", type=int, default=1_000_000, help="records of the synthetic trace")
    arguments = parser.parse_args()
    for path in arguments.traces:
        with tracekit.open(path) as trace:
            print(f"{path:<24} {measure(trace)}")
    if not arguments.traces:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "trace.zst")
            made = Synthetic(arguments.records)
            write_trace(Path(path), made.layout, {0: made.records}, chunk=1 << 18)
            with tracekit.open(path) as trace:
                print(f"{'synthetic':<24} {measure(trace)}")


if __name__ == "__main__":
    main()
