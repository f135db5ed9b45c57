"""The table of live heap objects: address -> size, open addressing with linear probing and no tombstones."""

from __future__ import annotations

import numpy as np

from tracekit.containers.kernels.hash_table import GOLDEN
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.layouts import U8, Int, Process


@inlined
def _home(address: Int, mask: Int) -> Int:
    """Where the probe for an address begins (Fibonacci hashing: heap addresses share their low bits)."""
    return np.int64((np.uint64(address) * GOLDEN) >> np.uint64(32)) & mask


@inlined
def _find(addresses: U8, address: Int) -> Int:
    """The slot that holds the address, or the free one where it belongs."""
    mask = len(addresses) - 1
    slot = _home(address, mask)
    while addresses[slot] != 0 and addresses[slot] != address:
        slot = (slot + 1) & mask
    return slot


@inlined
def is_full(process: Process) -> Int:
    """Whether the table has to grow before it takes one more object."""
    return (process.used[0] + 1) * 2 > len(process.addresses)


@inlined
def get(process: Process, address: Int) -> Int:
    """The size of the live object at `address`, 0 if none is known."""
    if address == 0:
        return np.uint64(0)
    return process.sizes[_find(process.addresses, address)]


@inlined
def put(process: Process, address: Int, size: Int) -> None:
    """Remember an object; the caller has made sure that the table is not full."""
    if address == 0:
        return
    slot = _find(process.addresses, address)
    if process.addresses[slot] == 0:
        process.addresses[slot] = address
        process.used[0] += 1
    process.sizes[slot] = size


@kernel
def remove(process: Process, address: Int) -> None:
    """Forget an object; those that its slot had displaced move up."""
    if address == 0:
        return
    addresses, sizes = process.addresses, process.sizes
    mask = len(addresses) - 1
    hole = _find(addresses, address)
    if addresses[hole] == 0:
        return
    process.used[0] -= 1
    slot = hole
    while True:
        slot = (slot + 1) & mask
        if addresses[slot] == 0:
            break
        # An entry may fill the hole if the hole lies on its probe's way.
        if ((slot - _home(addresses[slot], mask)) & mask) >= ((slot - hole) & mask):
            addresses[hole] = addresses[slot]
            sizes[hole] = sizes[slot]
            hole = slot
    addresses[hole] = 0
    sizes[hole] = 0


@kernel
def rehash(old: Process, new: Process) -> None:
    """Put every object of `old` into `new`, a larger empty table."""
    for slot in range(len(old.addresses)):
        if old.addresses[slot] != 0:
            put(new, old.addresses[slot], old.sizes[slot])
