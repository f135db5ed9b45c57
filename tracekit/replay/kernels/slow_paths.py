"""Slow paths of compiled code, which Numba compiles: stack objects, checks, frames that tail calls left behind.

The functions of SLOW_PATHS append events to the columns, from row 0 on, and return how many; the caller hands them on.
"""

from __future__ import annotations

from typing import NamedTuple

from tracekit.jit.kernel import inlined
from tracekit.replay.kernels import accesses
from tracekit.replay.kernels.frames import free_objects, pop
from tracekit.replay.kernels.layouts import TOP, Columns, Int, Stream, Tables


class Step(NamedTuple):
    """Fields of a dynamic step (layouts.DYNAMIC_STEP)."""

    subject: Int
    object: Int
    base: Int
    flags: Int


@inlined
def begin_object(tables: Tables, stream: Stream, out: Columns, step: Step, address: Int, size: Int) -> Int:
    """A stack object of the top frame begins."""
    return accesses.begin(stream, stream.frames[stream.scalars[TOP]], step, out, 0, address, size)


@inlined
def finish_object(tables: Tables, stream: Stream, out: Columns, step: Step, address: Int, size: Int) -> Int:
    """One ends before its frame."""
    return accesses.finish(stream, stream.frames[stream.scalars[TOP]], step, out, 0, address)


@inlined
def check_object(tables: Tables, stream: Stream, out: Columns, step: Step, address: Int, size: Int) -> Int:
    """Count an access that leaves its object; no event."""
    registers = stream.frames[stream.scalars[TOP]].register_base
    accesses.check_object(tables, stream, registers, step, address, size)
    return 0


@inlined
def is_inside(tables: Tables, stream: Stream, out: Columns, step: Step, address: Int, size: Int) -> Int:
    """Whether these bytes lie inside the object that an address is based on: then check_object would count nothing."""
    registers = stream.frames[stream.scalars[TOP]].register_base
    start, length, known = accesses.object_bounds(tables, stream, registers, step)
    if known == accesses.BOUNDED:
        return address - start <= length and size <= length - (address - start)
    return known == accesses.ANYWHERE


@inlined
def free_all(tables: Tables, stream: Stream, out: Columns, step: Step, address: Int, size: Int) -> Int:
    """All stack objects of the top frame end."""
    return free_objects(stream, stream.frames[stream.scalars[TOP]], out, 0)


@inlined
def pop_tails(tables: Tables, stream: Stream, out: Columns, step: Step, address: Int, size: Int) -> Int:
    """The frames that tail-called the one that has returned return with it."""
    n = 0
    while stream.scalars[TOP] >= 0 and stream.frames[stream.scalars[TOP]].tail:
        n = pop(stream, out, n, 0)
    return n


SLOW_PATHS = (begin_object, finish_object, check_object, free_all, pop_tails)
PREDICATES = (is_inside,)
"""Those that say whether something holds, and make no events."""
