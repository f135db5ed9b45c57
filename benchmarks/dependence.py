"""Speed of the dependence analyses alone, without decoding: nanoseconds of processor time per access.

    python -m benchmarks.dependence [--variant NAME]... [--trace FILE [--events N]] [STREAM ...]

Variants: those of the module dependence (flow, counts, kinds, distance, context), camp and lamp. On synthetic event
streams, or on the first N million events of a trace.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tracekit.analyzers.camp import Camp
from tracekit.analyzers.dependence import Dependence, Options
from tracekit.analyzers.lamp import Lamp
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.program.program import Program

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
            parts.append(
                accesses(
                    bench,
                    [
                        ("load", 0, 0x100000 + 8 * (i * n + k), 8),
                        ("load", 1, 0x200000 + 8 * (k * n + j), 8),
                        ("load", 2, c, 8),
                        ("store", 0, c, 8),
                    ],
                    n,
                )
            )
        parts.append(event("loop_exit", 1))
    parts.append(event("loop_exit", 0))
    return np.concatenate(parts)


def scattered(bench: Workbench) -> Rows:
    """Read and update random words of 32 MiB, and a counter."""
    rng = np.random.default_rng(1)
    trips = 500_000
    where = (0x10000000 + 8 * rng.integers(0, 1 << 22, trips)).astype(np.uint64)
    return accesses(
        bench, [("load", 0, where, 8), ("store", 0, where, 8), ("load", 1, 0x1000, 8), ("store", 1, 0x1000, 8)], trips
    )


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
    return accesses(
        bench,
        [
            ("load", 0, window, 1),
            ("load", 1, window + np.uint64(1), 1),
            ("load", 2, code, 2),
            ("store", 0, code, 2),
            ("load", 3, count, 4),
            ("store", 1, count, 4),
        ],
        trips,
    )


STREAMS: dict[str, Callable[[Workbench], Rows]] = {
    "matrix": matrix,
    "scattered": scattered,
    "stack": stack,
    "bytes": bytes_,
}


VARIANTS = {
    "flow": Options(),
    "counts": Options(counts=True),
    "kinds": Options(kinds="raw,war,waw"),
    "distance": Options(kinds="raw,war,waw", distance=True),
    "context": Options(kinds="raw,war,waw", distance=True, context=True),
    "camp": None,
    "lamp": None,
}


def consumer(program: Program, variant: str) -> Any:
    """What takes the batches of a variant."""
    options = VARIANTS[variant]
    if options is None:
        module = Camp if variant == "camp" else Lamp
        return CallbackRunner(module(program, module.Options()), variant, 1)
    return CallbackRunner(Dependence(program, options), "dependence", 1)


def measure(program: Program, rows: Rows, variant: str, repeats: int) -> tuple[float, int]:
    """Median nanoseconds of processor time per access, and accesses."""
    taken = getattr(consumer(program, variant), "columns", None)
    if taken is not None:
        rows = rows[np.isin(rows["kind"], [CODE[name] for name in taken])]
    columns = {name: np.ascontiguousarray(rows[name]) for name in ("kind", "subject", "address", "size")}
    total = int(np.isin(rows["kind"], (CODE["load"], CODE["store"])).sum())
    batches = [
        SimpleNamespace(stream=0, **{name: column[first : first + BATCH] for name, column in columns.items()})
        for first in range(0, len(rows), BATCH)
    ]
    consumer(program, variant).feed(batches[0], 0)  # compiles
    times = []
    for _ in range(repeats):
        taker = consumer(program, variant)
        begin = time.process_time()
        for batch in batches:
            taker.feed(batch, 0)
        times.append((time.process_time() - begin) / total * 1e9)
    return float(np.median(times)), total


def recorded(path: str, events: int) -> tuple[Program, Rows]:
    """The first `events` million events of a trace; of several streams' as if they were one."""
    parts, count = [], 0
    with tracekit.open(path) as trace:
        for batch in trace.batches():
            rows = np.zeros(len(batch), ROW)
            for name in ROW.names or ():
                rows[name] = getattr(batch, name)
            parts.append(rows)
            count += len(rows)
            if count >= events * 1_000_000:
                break
        return trace.program, np.concatenate(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=list(VARIANTS), action="append")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trace")
    parser.add_argument("--events", type=int, default=24)
    parser.add_argument("stream", nargs="*", default=list(STREAMS))
    options = parser.parse_args()
    bench = workbench()
    inputs = [(name, bench.program, STREAMS[name](bench)) for name in options.stream]
    if options.trace:
        inputs = [(options.trace.rpartition("/")[2], *recorded(options.trace, options.events))]
    for name, program, rows in inputs:
        if not options.trace:
            rows = np.concatenate([event("function_entry", 0, 0, NONE), rows])
        for variant in options.variant or VARIANTS:
            nanoseconds, total = measure(program, rows, variant, options.repeats)
            print(
                f"{name:18} {variant:8} {total / 1e6:6.2f} M accesses {nanoseconds:6.1f} ns each"
                f" {1e3 / nanoseconds:6.1f} M/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
