"""The values of the words of memory, as far as stores have values: to find the pointers that are left at the end.

A word that no store is known to have written holds 0, which points nowhere. memory_errors/reachability.py looks at the
words when the run is over, as a leak checker's mark phase does. Addresses and sizes, in bytes, are int64, values u8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.shadow import Shadow, reading, writing
from tracekit.jit.kernel import inlined, kernel

HIDDEN = np.uint64(0x8BAD_C0DE_5EED_0001)
"""In place of what a store has put there whose value is not known, or not all of it; no address has these bits."""
ALL = np.uint64(2**64 - 1)

# What a store by an instruction puts into memory: elements of `moves`.
NOTHING = 0  # no pointers: memset, or a library's data
VALUE = 1  # the value that the event has; of more than 8 bytes the first 8 are known
COPY = 2  # what the load before it has read
ORDER = 3  # what was there in another order: qsort
UNKNOWN = 4  # anything: of the program, built without values


class Contents(NamedTuple):
    """The values of memory."""

    words: Shadow  # u8: the value; all rows are whole words'
    moves: NDArray[np.uint8]  # by instruction
    copied: NDArray[np.int64]  # (streams, 3): instruction + 1, address and size of the last load that is a copy's


@inlined
def loaded(contents: Any, row: Any, address: Any, size: Any, stream: Any) -> None:
    """Take in a load by the instruction `row`: what a copy reads is remembered."""
    if contents.moves[np.uint64(row)] == COPY:
        last = contents.copied[np.uint64(stream)]
        last[0], last[1], last[2] = row + 1, address, size


@inlined
def stored(contents: Any, row: Any, address: Any, size: Any, value: Any, stream: Any) -> None:
    """Take in a store by the instruction `row`."""
    if contents.moves[np.uint64(row)] == VALUE and address & 7 == 0 and size == 8:
        for place in writing(contents.words, address, 8):
            contents.words.rows[place] = np.uint64(value)
    else:
        _stored(contents, row, address, size, np.uint64(value), stream)


@kernel
def _stored(contents: Contents, row: Any, address: Any, size: Any, value: Any, stream: Any) -> None:
    move = contents.moves[np.uint64(row)]
    if move == VALUE:
        put(contents.words, address, min(size, 8), value)
        hide(contents.words, address + 8, size - 8)
    elif move == NOTHING:
        forget(contents.words, address, size)
    elif move == UNKNOWN:
        hide(contents.words, address, size)
    elif move == COPY:
        last = contents.copied[np.uint64(stream)]
        if last[0] == row + 1 and last[2] == size:
            copy(contents.words, last[1], address, size)
        else:
            hide(contents.words, address, size)
        last[0] = 0


@inlined
def word_at(words: Any, address: Any) -> Any:
    """The value (u8) of the word that a byte is in."""
    found = np.uint64(0)
    for row in reading(words, address & -8, 8):
        found = words.rows[row]
    return found


@inlined
def _mask(first: Any, size: Any) -> Any:
    """The bits of `size` bytes (1 to 8) of a word, from its byte `first` on."""
    return (ALL >> np.uint64(64 - 8 * size)) << np.uint64(8 * first)


@inlined
def _piece(words: Any, address: Any, size: Any, value: Any) -> None:
    """Put the lowest bytes of `value` into one word; a part of what is HIDDEN hides the word."""
    old, mask = word_at(words, address), _mask(address & 7, size)
    new = (old & ~mask) | ((value << np.uint64(8 * (address & 7))) & mask)
    if (old == HIDDEN or value == HIDDEN) and size < 8:
        new = HIDDEN
    if new != old:
        for row in writing(words, address & -8, 8):
            words.rows[row] = new


@kernel
def put(words: Shadow, address: Any, size: Any, value: Any) -> None:
    """Put the lowest `size` bytes of a value, at most 8, at an address."""
    first = min(size, 8 - (address & 7))
    if first > 0:
        _piece(words, address, first, value)
    if size > first:
        _piece(words, address + first, size - first, value >> np.uint64(8 * first))


@kernel
def hide(words: Shadow, address: Any, size: Any) -> None:
    """Make the words HIDDEN that some of `size` bytes are in, which may hold anything."""
    if size > 0:
        for row in writing(words, address & -8, ((address & 7) + size + 7) & -8):
            words.rows[row] = HIDDEN


@inlined
def forget(words: Any, address: Any, size: Any) -> None:
    """Make `size` bytes 0: they are written with no pointers, or their object begins or ends."""
    if (address | size) & 7 == 0:
        clear(words, address, size)
    else:
        _forget(words, address, size)


@kernel
def _forget(words: Shadow, address: Any, size: Any) -> None:
    first = min(size, -address & 7)
    whole = (size - first) & -8
    if first > 0:
        _piece(words, address, first, np.uint64(0))
    clear(words, address + first, whole)
    if size > first + whole:
        _piece(words, address + first + whole, size - first - whole, np.uint64(0))


@kernel
def copy(words: Shadow, source: Any, target: Any, size: Any) -> None:
    """Copy `size` bytes, as memmove does."""
    backwards = source < target < source + size
    done = np.int64(0)
    while done < size:
        if backwards:
            end = target + size - done
            taken = min((end - 1 & 7) + 1, size - done)
            at = size - done - taken
        else:
            taken = min(8 - (target + done & 7), size - done)
            at = done
        _piece(words, target + at, taken, _peek(words, source + at, taken))
        done += taken


@inlined
def _peek(words: Any, address: Any, size: Any) -> Any:
    """The `size` bytes at an address, at most 8, as a u8; HIDDEN if one of their words is."""
    low, first = word_at(words, address), address & 7
    found = low >> np.uint64(8 * first)
    high = low
    if first + size > 8:
        high = word_at(words, address + 8)
        found |= high << np.uint64(64 - 8 * first)
    if low == HIDDEN or high == HIDDEN:
        found = HIDDEN
    return found
