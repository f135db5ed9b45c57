"""The front of a segment of the trace: loads of bytes that nothing was stored to in it before.

What they depend on lies before the segment, if anywhere. A shadow of integers has rows with a bit *open* where nothing
was stored yet; the bits below it are the number of the newest first load of its bytes, and each first load knows the
next older one: those of other instructions, or of other bytes of the row. What is noted once is not noted again, for
the modules that use this count nothing. Dividing a word copies its row, so that the parts share first loads; each of
these has its own bytes.

When segments are joined, the first loads of the later one are loads again, after all of the earlier one, and what was
stored in the later one is laid over the shadow of the earlier one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import USED, Arena, take
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.initial_pages import InitialPages
from tracekit.containers.kernels.shadow import (
    NOWHERE,
    PAGE_BITS,
    PAGES,
    SCRATCH,
    WORDS,
    page_of,
    parts_of,
    turn_to,
    writing,
)
from tracekit.jit.kernel import inlined, kernel

FIRST_LOAD = np.dtype(
    [
        ("start", "<i8"),  # its bytes, which lie in one word
        ("length", "<u4"),
        ("next", "<u4"),  # the next older one of the row, 0: none
        ("instruction", "<u4"),
        ("stream", "<u4"),
        ("scope", "<u4"),  # for the module
        ("moved", "<u4"),
    ]
)


class Front(NamedTuple):
    """What a segment notes."""

    loads: Arena  # FIRST_LOAD
    lately: NDArray[np.int64]  # [instruction]: the first load that was found last


@inlined
def in_row(memory: Any, row: Any, at: Any, end: Any) -> Any:
    """How many of the bytes at .. end - 1 lie in the row of the byte `at`."""
    width = 8 >> parts_of(memory, row)
    return min((at & -width) + width - at, end - at)


@inlined
def note_first(
    front: Any,
    rows: Any,
    row: Any,
    bit: Any,
    instruction: Any,
    stream: Any,
    scope: Any,
    moved: Any,
    start: Any,
    length: Any,
) -> None:
    """An instruction loads bytes of an open row. `bit`: the open one; `scope`, `moved`: what else tells loads apart."""
    known = front.loads.rows[np.uint64(front.lately[np.uint64(instruction)])]
    if not (_is_same(known, instruction, stream, scope, moved) and _covers(known, start, length)):
        _note(front, rows, row, bit, instruction, stream, scope, moved, start, length)


@inlined
def _is_same(known: Any, instruction: Any, stream: Any, scope: Any, moved: Any) -> Any:
    return known.instruction == instruction and known.stream == stream and known.scope == scope and known.moved == moved


@inlined
def _covers(known: Any, start: Any, length: Any) -> Any:
    behind = start - known.start
    return behind >= 0 and behind + length <= np.int64(known.length)


@kernel
def _note(
    front: Front,
    rows: Any,
    row: Any,
    bit: Any,
    instruction: Any,
    stream: Any,
    scope: Any,
    moved: Any,
    start: Any,
    length: Any,
) -> None:
    newest = np.int64(rows[row]) & (bit - 1)
    number = newest
    while number != 0:
        known = front.loads.rows[number]
        if _is_same(known, instruction, stream, scope, moved) and _covers(known, start, length):
            front.lately[instruction] = number
            return
        number = np.int64(known.next)
    number = np.int64(take(front.loads, 1))
    first = front.loads.rows[number]
    first.start = start
    first.length = length
    first.next = newest
    first.instruction = instruction
    first.stream = stream
    first.scope = scope
    first.moved = moved
    front.lately[instruction] = number
    rows[row] = bit | number


# -- joining ---------------------------------------------------------------------------------------


@kernel
def empty_again(memory: Any, initial: InitialPages) -> None:
    """Clear the pages that were cleared as a whole in a segment."""
    for row in range(1, initial.emptied.control[USED]):
        clear(memory, np.int64(initial.emptied.rows[row].key) << PAGE_BITS, 1 << PAGE_BITS)
    for row in range(1, initial.ranges.control[USED]):
        first, last = np.int64(initial.ranges.rows[row].first), np.int64(initial.ranges.rows[row].last)
        clear(memory, first << PAGE_BITS, (last - first + 1) << PAGE_BITS)


@kernel
def lay_over(memory: Any, later: Any, bit: Any) -> None:
    """Take in what was stored or cleared in a segment: the rows of its shadow `later` without the open bit."""
    empty_again(memory, later.initial)
    for page in range(SCRATCH + 1, later.control[PAGES]):
        turn_to(memory, later.pages[page].stream)
        number = later.pages[page].number
        is_known = _is_known(memory, memory.initial, number)
        for word in range(page * WORDS, (page + 1) * WORDS):
            parts = np.int64(later.granules[word])
            width = 8 >> parts
            address = (number << PAGE_BITS) | ((word & (WORDS - 1)) << 3)
            row = (later.granules.size + word) << parts
            for part in range(row, row + (1 << parts)):
                stored = np.int64(later.rows[part])
                if stored & bit == 0 and (stored != 0 or is_known):
                    for own in writing(memory, address, width):
                        memory.rows[own] = stored
                address += width


@inlined
def _is_known(memory: Any, initial: Any, number: Any) -> Any:
    """Whether a page may have a history that has to be cleared."""
    if initial is not None:
        return True
    return page_of(memory, np.uint64(number)) != NOWHERE
