"""The state of each byte: written or not, freed, beside a block. memory_errors/rules.py makes the tables.

They are Memcheck's addressability and validity bits (Seward and Nethercote, USENIX ATC 2005) as far as a trace shows
them, byte by byte, and BESIDE is AddressSanitizer's red zone (Serebryany et al., USENIX ATC 2012).

States lie in a shadow word by word; those of whole granules that a range covers lie in a second shadow (granules.py),
until one of a granule's bytes differs: what a program reserves and does not touch costs nothing here either. A granule
whose row is not zero has no words.

Everywhere `address` and `size`, in bytes, are int64, an address with the bits of the program's; a state is one of the
numbers below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.granules import WIDE_BITS, granule_of, set_wide, wide_at
from tracekit.containers.kernels.shadow import (
    PAGE_BITS,
    WORDS,
    Shadow,
    alike,
    changing,
    fill,
    first_of_two,
    only_row,
    page_of,
    reading,
    reading_range,
    writing,
)
from tracekit.jit.kernel import inlined, kernel

UNKNOWN = 0  # of no object that is known
WRITTEN = 1
UNWRITTEN = 2  # of a live object, and never written
BESIDE = 3  # the allocator's own bytes in front of a heap block and behind it
FREED = 4  # and above: FREED + the row of `deaths`

FEW = 64
"""Accesses of more bytes are looked at run by run."""

CONTROL = 2
"""How many elements States.control has: those of granules.py."""


class States(NamedTuple):
    """A state for each byte."""

    words: Shadow  # u4: the state
    wide: Shadow  # u4: the state; that of granules
    control: NDArray[np.int64]  # (CONTROL)


@inlined
def _wide_state(states: Any, address: Any) -> Any:
    """The state of the granule of a byte, if it has one."""
    return wide_at(states.wide, states.control, address)


@inlined
def worst(states: Any, address: Any, size: Any) -> Any:
    """The greatest state (int64) of `size` bytes, at least one."""
    row, _ = only_row(states.words, address, size)
    return worst_of(states, row, address, size)


@inlined
def worst_of(states: Any, row: Any, address: Any, size: Any) -> Any:
    """The same of bytes whose `only_row` is known."""
    if row >= 0:
        found = np.int64(states.words.rows[np.uint64(row)])
        least = found
    elif size > FEW:
        return _worst_of_many(states, address, size)
    else:
        row = first_of_two(states.words, address, size)
        if row >= 0:  # most that are not aligned
            first, second = np.int64(states.words.rows[np.uint64(row)]), np.int64(states.words.rows[np.uint64(row + 1)])
            found, least = max(first, second), min(first, second)
        else:
            found, least = _worst_of_few(states.words, address, size)
    if least == 0:
        found = max(found, _wide_state(states, address))
        if granule_of(address) != granule_of(address + size - 1):
            found = max(found, _wide_state(states, address + size - 1))
    return found


@kernel
def _worst_of_few(words: Any, address: Any, size: Any) -> Any:
    """The greatest state of `size` bytes, and the least, which is at most 1."""
    found, least = np.int64(0), np.int64(1)
    for row in reading(words, address, size):
        state = np.int64(words.rows[row])
        found = max(found, state)
        least = min(least, state)
    return found, least


@kernel
def _worst_of_many(states: States, address: Any, size: Any) -> Any:
    found, done = np.int64(0), np.int64(0)
    while done < size:
        state, same = run(states, address + done, size - done)
        found = max(found, state)
        done += same
    return found


@kernel
def run(states: States, address: Any, left: Any) -> Any:
    """The state of the byte at `address`, and how many of the `left` bytes from there on are known to have it, too."""
    words = states.words
    first, last, taken = reading_range(words, address, left)
    same = alike(words.rows, first, last - first + 1)
    state = np.int64(words.rows[first])
    if same <= last - first:
        page = page_of(words, np.uint64(address) >> np.uint64(PAGE_BITS))
        part = 8 >> np.int64(words.granules[(page << 9) + ((address >> 3) & (WORDS - 1))])
        taken = same * part - (address & (part - 1))
    if state == 0:
        state = _wide_state(states, address)
        # inside a granule that has a state no word has one; else what is behind is another granule's
        taken = min(taken, (1 << WIDE_BITS) - (address & ((1 << WIDE_BITS) - 1)))
    return state, np.int64(taken)


@inlined
def state_at(states: Any, address: Any) -> Any:
    """The state of one byte."""
    return worst(states, address, np.int64(1))


@inlined
def assign(states: Any, address: Any, size: Any, state: Any) -> None:
    """Give `size` bytes a state."""
    if ((address + (1 << WIDE_BITS) - 1) >> WIDE_BITS) < ((address + size) >> WIDE_BITS):
        _assign_wide(states, address, size, state)
    elif size > 0:
        _put(states, address, size, state)


@kernel
def _assign_wide(states: States, address: Any, size: Any, state: Any) -> None:
    """Give `size` bytes a state; whole granules are among them."""
    first = (address + (1 << WIDE_BITS) - 1) >> WIDE_BITS
    behind = (address + size) >> WIDE_BITS
    start, stop = first << WIDE_BITS, behind << WIDE_BITS
    if start > address:
        _put(states, address, start - address, state)
    clear(states.words, start, stop - start)
    set_wide(states.wide, states.control, first, behind, state)
    if address + size > stop:
        _put(states, stop, address + size - stop, state)


@kernel
def _put(states: States, address: Any, size: Any, state: Any) -> None:
    """Give `size` bytes from `address` on a state; they cover no whole granule."""
    _spread(states, address)
    if granule_of(address) != granule_of(address + size - 1):
        _spread(states, address + size - 1)
    if state == UNKNOWN:
        clear(states.words, address, size)
    else:
        fill(states.words, address, size, state)


@inlined
def _spread(states: Any, address: Any) -> None:
    """Move the state of a byte's granule, if it has one, to its words."""
    state = _wide_state(states, address)
    if state != 0:
        granule = granule_of(address)
        for row in writing(states.wide, granule << 3, 8):
            states.wide.rows[row] = 0
        fill(states.words, granule << WIDE_BITS, np.int64(1 << WIDE_BITS), state)


@inlined
def write(states: Any, row: Any, parts: Any, address: Any, size: Any) -> None:
    """Note that the program writes `size` bytes of which UNWRITTEN is the greatest state.

    `row`, `parts`: what `only_row` says of them.
    """
    if row < 0 or states.words.rows[np.uint64(row)] == UNKNOWN:  # then it is the granule that is unwritten
        _write_several(states, address, size)
    elif size << parts == 8:
        states.words.rows[np.uint64(row)] = WRITTEN
    else:
        _write_part(states.words, address, size)


@kernel
def _write_part(words: Any, address: Any, size: Any) -> None:
    """Divide the row that the bytes share with others."""
    for row in changing(words, address, size):
        words.rows[row] = WRITTEN


@kernel
def _write_several(states: States, address: Any, size: Any) -> None:
    least = np.int64(0)
    if size <= FEW:
        least = np.int64(UNWRITTEN)
        for row in reading(states.words, address, size):
            least = min(least, np.int64(states.words.rows[row]))
    if least != 0:  # so all of them are a living object's
        for row in writing(states.words, address, size):
            states.words.rows[row] = WRITTEN
    else:
        replace(states, address, size, UNWRITTEN, WRITTEN)


@kernel
def replace(states: States, address: Any, size: Any, old: Any, new: Any) -> None:
    """Give the state `new` to those of `size` bytes whose state is `old`."""
    done = np.int64(0)
    while done < size:
        state, same = run(states, address + done, size - done)
        if state == old:
            assign(states, address + done, same, new)
        done += same


@kernel
def forget_freed(states: States, address: Any, size: Any) -> None:
    """Make those of `size` bytes UNKNOWN that were freed."""
    done = np.int64(0)
    while done < size:
        state, same = run(states, address + done, size - done)
        if state >= FREED:
            assign(states, address + done, same, np.int64(UNKNOWN))
        done += same


@kernel
def copy(states: States, source: Any, target: Any, size: Any) -> None:
    """Make bytes of the target UNWRITTEN where the source is, else WRITTEN; those of no object stay as they are."""
    if source < target < source + size:  # then the last byte goes first
        for place in range(size - 1, -1, -1):
            _copy_byte(states, source + place, target + place)
        return
    if target < source < target + size:
        for place in range(size):
            _copy_byte(states, source + place, target + place)
        return
    done = np.int64(0)
    while done < size:
        state, same = run(states, source + done, size - done)
        if state == UNWRITTEN:
            replace(states, target + done, same, WRITTEN, UNWRITTEN)
        else:
            replace(states, target + done, same, UNWRITTEN, WRITTEN)
        done += same


@inlined
def _copy_byte(states: Any, source: Any, target: Any) -> None:
    found, here = state_at(states, source), state_at(states, target)
    if here == WRITTEN or here == UNWRITTEN:
        wanted = np.int64(UNWRITTEN if found == UNWRITTEN else WRITTEN)
        if wanted != here:
            _put(states, target, np.int64(1), wanted)
