"""Runs: records that stand for many iterations of a loop (SPEC.md, "A path record").

derive.py replays a run's iterations one after another, each as if it were a record, and may stop before any of them.
Here is what makes that fast: once two iterations stand in the columns, those after them are known, for the addresses
of a STEADY run move by the same distance each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.limits import LONGEST_RUN
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.accesses import ANYWHERE, NOWHERE, affine, object_bounds
from tracekit.replay.kernels.frames import LOOP_INVOCATION, LOOP_ITERATION, NO, compare, violate
from tracekit.replay.kernels.layouts import (
    FILLED,
    GROUND_TRUTH_RUN,
    I8,
    RUN_DONE,
    RUNS,
    STEADY,
    STEP_GLOBAL,
    STEP_REGISTER,
    STEP_STACK,
    TOO_LONG,
    TOP,
    WRONG_RUN,
    Columns,
    Int,
    Stream,
    Tables,
)

PERIOD = 512
"""Events that are filled in at once: those that they are made from are still in the L1 cache."""


@kernel
def is_done(tables: Tables, stream: Stream, path: Any, out: Columns, cursor: I8, iterations: Int) -> Int:
    """Whether a run of so many iterations is replayed; those that can be filled in now are, before it says so."""
    scalars = stream.scalars
    if path.run == GROUND_TRUTH_RUN:
        _compare_run(tables, stream, path, iterations)
        return True
    if iterations > np.uint64(LONGEST_RUN):
        violate(stream, TOO_LONG)
        return True
    left = np.int64(iterations) - scalars[RUN_DONE]
    n, period = cursor[FILLED], np.int64(path.events)
    # The first iteration may be the loop's invocation, which has the same place in it as a loop_iteration, if both or
    # none are wanted; else it is no pattern for the others.
    needed = 2 if out.keep[LOOP_INVOCATION] == out.keep[LOOP_ITERATION] else 3
    if path.run == STEADY and left > 0 and scalars[RUN_DONE] >= needed and n >= 2 * period:
        count = min(left, (len(out.kind) - n) // period) if period > 0 else left
        frame = stream.frames[scalars[TOP]]
        if path.checked:
            while count > 0 and not _stays_inside(tables, stream, frame, path, count):
                count >>= 1  # the one that leaves its object is replayed, and counted, by itself
        if count > 0:
            if period > 0:
                _fill(out, n, period, count * period)
            stream.iterations[np.int64(frame.loop_base) + np.int64(frame.loops) - 1] += np.uint64(count)
            scalars[RUN_DONE] += count
            cursor[FILLED] = n + count * period
            left -= count
    return left == 0


@inlined
def _compare_run(tables: Tables, stream: Stream, path: Any, iterations: Int) -> None:
    """Compare the iterations that the run's loop has had in the top frame, 0 if it is not open, with those recorded."""
    block = tables.blocks[path.block]
    top = stream.scalars[TOP]
    if top < 0 or stream.frames[top].function != block.function:
        violate(stream, WRONG_RUN)  # whatever was recorded, all 64 bits set included
        return
    frame = stream.frames[top]
    depth = np.int64(tables.loops[block.loop].depth)
    level = np.int64(frame.loop_base) + depth - 1
    visits = np.uint64(0)
    if depth <= np.int64(frame.loops) and stream.open_loops[level] == block.loop:
        visits = stream.iterations[level] + np.uint64(1)
    compare(stream, RUNS, WRONG_RUN, visits, iterations)


@kernel
def _fill(out: Columns, n: Int, period: Int, count: Int) -> None:
    """Append `count` events that go on as those before `n` did, which repeat every `period` events but for the address.

    ``address[i] = address[i - period] + (address[i - period] - address[i - 2 * period])``, in pieces of a period,
    which grows as long as there are events enough before the piece.
    """
    begun, end = n - 2 * period, n + count
    while n < end:
        while period < PERIOD and n - begun >= 4 * period:
            period *= 2
        size = min(period, end - n)
        _repeat(out.kind, n, period, size)
        _repeat(out.subject, n, period, size)
        _repeat(out.size, n, period, size)
        _repeat(out.value, n, period, size)
        _go_on(out.address, n, period, size)
        n += size


@inlined
def _repeat(column: Any, n: Int, period: Int, size: Int) -> None:
    if column is not None:
        into, last = column[n : n + size], column[n - period : n - period + size]
        for k in range(len(into)):
            into[k] = last[k]


@inlined
def _go_on(column: Any, n: Int, period: Int, size: Int) -> None:
    if column is not None:
        into, last = column[n : n + size], column[n - period : n - period + size]
        before = column[n - 2 * period : n - 2 * period + size]
        for k in range(len(into)):
            into[k] = last[k] + (last[k] - before[k])


@kernel
def _stays_inside(tables: Tables, stream: Stream, frame: Any, path: Any, count: Int) -> Int:
    """Whether the next `count` iterations access the objects that their addresses are based on, and nothing beside."""
    registers = np.int64(frame.register_base)
    for member in range(np.int64(path.first), np.int64(path.first) + np.int64(path.blocks)):
        block = tables.blocks[tables.members[member]]
        for k in range(np.int64(block.first_step), np.int64(block.last_step)):
            step = tables.steps[k]
            if not step.flags & (STEP_GLOBAL | STEP_STACK):
                continue
            address = step.offset + affine(tables, stream, frame, step)
            if step.flags & STEP_REGISTER:
                address += stream.registers[registers + np.int64(step.base)]
            start, length, known = object_bounds(tables, stream, registers, step)
            if known == ANYWHERE:
                continue
            if known == NOWHERE:
                return False
            stride = _stride(tables, stream, frame, step)
            if float(count) * abs(float(np.int64(stride))) >= 2.0**63:
                return False
            if not (
                _inside(address + stride, step.size, start, length)
                and _inside(address + stride * np.uint64(count), step.size, start, length)
            ):
                return False
    return True


@inlined
def _inside(address: Int, size: Int, start: Int, length: Int) -> Int:
    return address - start <= length and size <= length - (address - start)


@inlined
def _stride(tables: Tables, stream: Stream, frame: Any, step: Any) -> Int:
    """How far the step's address moves from one iteration of the innermost loop to the next, modulo 2^64."""
    total = np.uint64(0)
    for k in range(np.int64(step.first_term), np.int64(step.first_term) + np.int64(step.terms)):
        term = tables.terms[k]
        if term.loop == frame.loop:
            total += term.stride
            if term.register != NO:
                total += stream.registers[np.int64(frame.register_base) + np.int64(term.register)]
    return total
