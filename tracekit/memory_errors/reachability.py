"""How blocks that were never freed are reached when the run is over, by memcheck's rules.

A pointer is an aligned word whose value is the address of a byte of a block. Pointers in other memory than blocks
(global and local variables that live, thread-local storage, mappings) are where ways begin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.memory_errors.kernels import reachability

REACHES = ("definitely_lost", "indirectly_lost", "possibly_lost", "still_reachable", "unknown")
"""By the numbers of kernels/reachability.py."""
LOST = REACHES[:3]

Words = NDArray[np.uint64]
Addresses = NDArray[np.int64]


def reached(
    starts: Addresses, ends: Addresses, libraries: NDArray[np.bool_], addresses: Addresses, values: Words
) -> NDArray[np.uint8]:
    """How each block is reached, as a number of REACHES.

    `starts`, `ends` (behind the last byte): of n blocks, ascending and disjoint; `libraries`: made by a library for
    itself. `addresses` (ascending) and `values`: of the words that hold something.
    """
    blocks = len(starts)
    ends = np.maximum(ends, starts + 1)
    pointed = _block_of(starts, ends, values)
    is_pointer = pointed < blocks
    targets, pointers = pointed[is_pointer], values[is_pointer].astype(np.int64)
    sources = _block_of(starts, ends, addresses[is_pointer].astype(np.uint64))
    counts = _first_words(starts, addresses, values)
    exact = (pointers == starts[targets]) | _are_of_new(starts, ends, counts, targets, pointers)
    order = np.argsort(sources, kind="stable")
    first = np.searchsorted(sources[order], np.arange(blocks + 2))
    found = np.full(blocks, reachability.NEW, np.uint8)
    reachability.reach(first, targets[order], exact[order], libraries, found, np.zeros(blocks + 1, np.int64))
    return found


def _block_of(starts: Addresses, ends: Addresses, addresses: Words) -> NDArray[np.int64]:
    """The block of each address; the number of all blocks where there is none."""
    if not len(starts):
        return np.zeros(len(addresses), np.int64)
    block = np.searchsorted(starts.astype(np.uint64), addresses, "right") - 1
    return np.where((block >= 0) & (addresses < ends.astype(np.uint64)[block]), block, len(starts))


def _first_words(starts: Addresses, addresses: Addresses, values: Words) -> NDArray[np.int64]:
    """What the first word of each block holds."""
    if not len(addresses):
        return np.zeros(len(starts), np.int64)
    place = np.minimum(np.searchsorted(addresses, starts), len(addresses) - 1)
    return np.where(addresses[place] == starts, values[place], 0).astype(np.int64)


def _are_of_new(
    starts: Addresses, ends: Addresses, counts: NDArray[np.int64], targets: Any, pointers: Addresses
) -> NDArray[np.bool_]:
    """Pointers behind a first word that counts the elements: what `new[]` of a class with a destructor returns."""
    counted = counts[targets]
    rest = ends[targets] - starts[targets] - 8
    found: NDArray[np.bool_] = (pointers == starts[targets] + 8) & (counted > 0) & (rest % np.maximum(counted, 1) == 0)
    return found
