"""Exact reuse distances: a mark for the last access of each line, on a line of time; a distance is a count of marks.

Olken's tree (Efficient methods for calculating the success function of fixed space replacement policies, 1981) as a
Fenwick tree over time, whose leaves are words of 64 marks. An access takes the next slot of time, and the mark of its
line moves there. The distance is the number of marks between: of the other lines that were touched since. Both walks
through the tree end where those of the two slots meet, so what was touched lately costs little.

When the slots are used up the marks move together (``compact``); three quarters of the slots are free then, or there
are twice as many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, limited
from tracekit.containers.kernels.shadow import Shadow, changing
from tracekit.jit.kernel import inlined, kernel

# Elements of Slots.control; the first two are those of an arena.
NEXT = 2  # the next slot
CAPACITY = 3  # slots that are in use, a power of two
LINES = 4  # lines touched so far: as many marks
NEWEST = 5  # the line of the last access, once there was one: any number can be a line
CONTROL = 6
"""How many there are."""

COLD = -1
"""The distance of a first access."""

SLOTS = 1 << 16
"""To begin with."""


@limited
class Slots(NamedTuple):
    """The slots of time."""

    rows: NDArray[np.int64]  # by slot: the line that took it
    marks: NDArray[np.uint64]  # a bit for each slot: whether that was the line's last access
    sums: NDArray[np.int32]  # Fenwick tree over the words of `marks`, from 1 on: how many are set
    control: NDArray[np.int64]


@inlined
def ones(word: Any) -> Any:
    """How many bits of a u8 are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def marks_after(marks: Any, sums: Any, slot: Any, now: Any) -> Any:
    """How many slots behind `slot` are marked; `now` is the next one."""
    word, last = slot >> 6, now >> 6
    behind = np.uint64(slot & 63)
    count = ones((marks[np.uint64(word)] >> behind) >> np.uint64(1))
    upper, lower = last + 1, word + 1
    while upper > lower:
        count += np.int64(sums[np.uint64(upper)])
        upper -= upper & -upper
    while lower > upper:
        count -= np.int64(sums[np.uint64(lower)])
        lower -= lower & -lower
    return count


@inlined
def move(marks: Any, sums: Any, slot: Any, now: Any) -> None:
    """Unmark `slot`, and mark the later one `now`."""
    marks[np.uint64(slot >> 6)] ^= np.uint64(1) << np.uint64(slot & 63)
    marks[np.uint64(now >> 6)] |= np.uint64(1) << np.uint64(now & 63)
    less, greater = (slot >> 6) + 1, (now >> 6) + 1
    while less != greater:  # at the latest at the root
        if less < greater:
            sums[np.uint64(less)] -= np.int32(1)
            less += less & -less
        else:
            sums[np.uint64(greater)] += np.int32(1)
            greater += greater & -greater


@inlined
def touch(slots: Any, last: Any, line: Any) -> Any:
    """An access to a line: how many other lines were touched since its last one, or COLD."""
    control = slots.control
    if line == control[NEWEST] and control[NEXT] > 0:
        return 0
    if control[NEXT] == control[CAPACITY]:
        compact(slots.rows, slots.marks, slots.sums, control, last)
    control[NEWEST] = line
    now = control[NEXT]
    distance = COLD
    for row in changing(last, line << 3, 8):
        slot = np.int64(last.rows[np.uint64(row)]) - 1
        if slot >= 0:
            distance = marks_after(slots.marks, slots.sums, slot, now)
            move(slots.marks, slots.sums, slot, now)
        last.rows[np.uint64(row)] = now + 1
    if distance == COLD:
        begin(slots.marks, slots.sums, control, now)
    slots.rows[np.uint64(now)] = line
    control[NEXT] = now + 1
    return distance


@kernel
def begin(marks: Any, sums: Any, control: Any, now: Any) -> None:
    """Mark the slot `now`, for a line that had no mark; the arrays are those of Slots."""
    control[LINES] += 1
    marks[now >> 6] |= np.uint64(1) << np.uint64(now & 63)
    place = (now >> 6) + 1
    while place <= control[CAPACITY] >> 6:
        sums[place] += np.int32(1)
        place += place & -place


@kernel
def compact(rows: Any, marks: Any, sums: Any, control: Any, last: Shadow) -> None:
    """Move the marked slots to the beginning, and double the slots if more than a quarter of them is marked.

    rows, marks, sums, control: those of Slots; last: of each line the slot of its last access plus 1, changed, too.
    Without room for more slots the arena is marked as exhausted.
    """
    kept = 0
    for slot in range(control[NEXT]):
        if (marks[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1):
            rows[kept] = rows[slot]
            kept += 1
    while 4 * kept > control[CAPACITY]:
        if 2 * control[CAPACITY] > rows.size:
            control[EXHAUSTED] = 1
            kept = 0  # what is said from now on is never shown
        else:
            control[CAPACITY] *= 2
    control[NEXT] = kept
    words = control[CAPACITY] >> 6
    for word in range(words):
        marked = min(max(kept - 64 * word, 0), 64)
        marks[word] = np.uint64(0)
        if marked > 0:
            marks[word] = ~np.uint64(0) >> np.uint64(64 - marked)
        sums[word + 1] = marked
    for place in range(1, words + 1):
        above = place + (place & -place)
        if above <= words:
            sums[above] += sums[place]
    for slot in range(kept):
        for row in changing(last, rows[slot] << 3, 8):
            last.rows[row] = slot + 1
