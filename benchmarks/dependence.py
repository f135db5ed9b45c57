"""Speed of the dependence engine alone, on synthetic event streams: nanoseconds per access.

    python benchmarks/dependence.py [--context 0|1] [STREAM ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.naive.program_builder import ProgramBuilder
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.replay.dependence import DependenceEngine
from tracekit.replay.program import Program

BATCH = 1 << 16
ROW = np.dtype([("kind", "u1"), ("subject", "<u4"), ("address", "<u8"), ("size", "<u8")])
Rows = NDArray[Any]


@dataclass
class Workbench:
    """A program with three nested loops in main, a callee, and `ops` loads and stores to use at will."""

    program: Program
    loads: list[int]
    stores: list[int]
    call: int


def workbench() -> Workbench:
    b = ProgramBuilder()
    main, leaf = b.function("main"), b.function("leaf")
    loops = [b.loop(main)]
    for _ in range(2):
        loops.append(b.loop(main, loops[-1]))
    for loop in loops:
        body = b.block(main, BlockFlag.LOOP_HEADER, loop)
    loads = [b.op(body, OpKind.LOAD, 8) for _ in range(16)]
    stores = [b.op(body, OpKind.STORE, 8) for _ in range(16)]
    call = b.call(body, "leaf")
    entry = b.block(leaf, BlockFlag.ENTRY)
    loads += [b.op(entry, OpKind.LOAD, 8) for _ in range(4)]
    layout = b.layout()
    return Workbench(b.program(), [layout.op[op] for op in loads], [layout.op[op] for op in stores], layout.op[call])


def event(name: str, subject: int = 0, address: int = 0, size: int = 0) -> Rows:
    return np.array([(CODE[name], subject, address, size)], ROW)


def accesses(bench: Workbench, columns: list[tuple[str, int, Any, int]], trips: int) -> Rows:
    """The iterations of the innermost loop: per trip one iteration event and one access per column."""
    rows = np.zeros((trips, len(columns) + 1), ROW)
    rows["kind"][:, 0] = CODE["loop_iteration"]
    rows["kind"][0, 0] = CODE["loop_invocation"]
    rows["subject"][:, 0] = 2
    for place, (name, op, address, size) in enumerate(columns, 1):
        rows["kind"][:, place] = CODE[name]
        rows["subject"][:, place] = (bench.loads if name == "load" else bench.stores)[op]
        rows["address"][:, place] = address
        rows["size"][:, place] = size
    return np.concatenate([rows.ravel(), event("loop_exit", 2)])


def matrix(bench: Workbench) -> Rows:
    """c[i][j] += a[i][k] * b[k][j], 8-byte elements, 96 x 96 x 96."""
    n = 96
    k = np.arange(n, dtype=np.uint64)
    parts = []
    for i in range(n):
        parts.append(event("loop_iteration" if i else "loop_invocation", 0))
        for j in range(n):
            parts.append(event("loop_iteration" if j else "loop_invocation", 1))
            c = 0x300000 + 8 * (i * n + j)
            parts.append(accesses(bench, [("load", 0, 0x100000 + 8 * (i * n + k), 8),
                                          ("load", 1, 0x200000 + 8 * (k * n + j), 8),
                                          ("load", 2, c, 8), ("store", 0, c, 8)], n))
        parts.append(event("loop_exit", 1))
    parts.append(event("loop_exit", 0))
    return np.concatenate(parts)


def scattered(bench: Workbench) -> Rows:
    """Read and update random words of 32 MiB, and a counter."""
    rng = np.random.default_rng(1)
    trips = 500_000
    where = (0x10000000 + 8 * rng.integers(0, 1 << 22, trips)).astype(np.uint64)
    return accesses(bench, [("load", 0, where, 8), ("store", 0, where, 8), ("load", 1, 0x1000, 8),
                            ("store", 1, 0x1000, 8)], trips)


def stack(bench: Workbench) -> Rows:
    """An interpreter's mix: sixteen hot words on a stack, four-byte operands, a call in every iteration."""
    rng = np.random.default_rng(2)
    trips = 300_000
    rows = np.zeros((trips, 13), ROW)
    rows["kind"][:, 0] = CODE["loop_iteration"]
    rows["kind"][0, 0] = CODE["loop_invocation"]
    rows["subject"][:, 0] = 2
    for place in range(1, 11):
        name = "load" if place % 3 else "store"
        op = rng.integers(0, 16, trips)
        rows["kind"][:, place] = CODE[name]
        rows["subject"][:, place] = np.array(bench.loads if name == "load" else bench.stores)[op]
        size = 4 if place % 2 else 8
        rows["address"][:, place] = 0x7FFF0000 + 8 * op + 1024 * (size == 4)
        rows["size"][:, place] = size
    rows["kind"][:, 11], rows["subject"][:, 11], rows["size"][:, 11] = CODE["function_entry"], 1, bench.call
    rows["kind"][:, 12], rows["subject"][:, 12] = CODE["function_exit"], 1
    return np.concatenate([rows.ravel(), event("loop_exit", 2)])


def bytes_(bench: Workbench) -> Rows:
    """A compressor's mix: bytes of a 256 KiB window, a table of two-byte and one of four-byte counters."""
    rng = np.random.default_rng(3)
    trips = 400_000
    window = (0x20000000 + rng.integers(0, 1 << 18, trips)).astype(np.uint64)
    code = (0x21000000 + 2 * rng.integers(0, 1 << 12, trips)).astype(np.uint64)
    count = (0x22000000 + 4 * (rng.geometric(0.02, trips) % 256)).astype(np.uint64)
    return accesses(bench, [("load", 0, window, 1), ("load", 1, window + np.uint64(1), 1), ("load", 2, code, 2),
                            ("store", 0, code, 2), ("load", 3, count, 4), ("store", 1, count, 4)], trips)


STREAMS: dict[str, Callable[[Workbench], Rows]] = {
    "matrix": matrix, "scattered": scattered, "stack": stack, "bytes": bytes_,
}


def measure(bench: Workbench, rows: Rows, context: bool, repeats: int) -> tuple[float, int, float]:
    """Median nanoseconds of processor time per access, accesses, and MiB of shadow."""
    columns = [np.ascontiguousarray(rows[name]) for name in ("kind", "subject", "address", "size")]
    total = int(np.isin(rows["kind"], (CODE["load"], CODE["store"])).sum())
    times = []
    for _ in range(repeats):
        engine = DependenceEngine(bench.program, context)
        engine.feed_columns(0, *(column for column in _entry()))
        begin = time.process_time()
        for first in range(0, len(rows), BATCH):
            engine.feed_columns(0, *(column[first : first + BATCH] for column in columns))
        times.append((time.process_time() - begin) / total * 1e9)
    return float(np.median(times)), total, engine.result().shadow_bytes / 2**20


def _entry() -> list[Rows]:
    rows = event("function_entry", 0, 0, NONE)
    return [rows[name] for name in ("kind", "subject", "address", "size")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, choices=(0, 1))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("stream", nargs="*", default=list(STREAMS))
    options = parser.parse_args()
    bench = workbench()
    for name in options.stream:
        rows = STREAMS[name](bench)
        for context in (True, False) if options.context is None else (bool(options.context),):
            nanoseconds, total, shadow = measure(bench, rows, context, options.repeats)
            print(f"{name:10} {'camp' if context else 'lamp'} {total / 1e6:6.2f} M accesses {nanoseconds:6.1f} ns each"
                  f" {1e3 / nanoseconds:6.1f} M/s  shadow {shadow:6.1f} MiB")


if __name__ == "__main__":
    main()
