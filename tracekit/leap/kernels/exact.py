"""What descriptors are compared with: exact conflicts, Connors' window of recent stores, and exact strides.

A location is that of an access's first byte, in its object: what a realloc moves stays the location that it was. Every
location has a list of the stores that have stored there, each with the number of the last time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import inlined

STORED = np.dtype(
    [
        ("next", "<u4"),
        ("access", "<u4"),
        ("number", "<i8"),  # of its last store there, among all stores
    ]
)
PAIR = [("exact", "<i8"), ("last", "<i8"), ("window", "<i8")]
"""Loads that conflict, that do with the last store before them, and in the window; by store << 32 | load, as accesses
(compressor.py).
"""
LAST = np.dtype([("group", "<i8"), ("object", "<i8"), ("offset", "<i8"), ("accesses", "<i8")])
STRIDE_BITS = 38
OFFSET_BITS = 36
GROUP_SHIFT = 40


class Exact(NamedTuple):
    """Tables of a comparison."""

    objects: HashTable  # by group << GROUP_SHIFT | object
    places: HashTable  # ("first", u4): the first row of `stored`; by row of `objects` << OFFSET_BITS | offset
    stored: Arena  # STORED
    pairs: HashTable  # PAIR
    last: NDArray[Any]  # LAST, by access: where it was last
    strides: HashTable  # ("count", i8), by access << STRIDE_BITS | stride
    stores: NDArray[np.int64]  # (1)


@inlined
def _place(exact: Any, group: Any, object: Any, offset: Any) -> Any:
    """The row of a location."""
    key = np.uint64(1 << 63) | np.uint64(offset)  # unknown memory: an address
    if group != 0:
        row = np.uint64(row_of(exact.objects, (group << GROUP_SHIFT) | object))
        key = (row << np.uint64(OFFSET_BITS)) | np.uint64(offset)
    return exact.places.rows[row_of(exact.places, key)]


@inlined
def noted_store(exact: Any, access: Any, group: Any, object: Any, offset: Any) -> None:
    """A store: it is in the list of the location."""
    exact.stores[0] += 1
    place = _place(exact, group, object, offset)
    row = np.int64(place.first)
    while row != 0 and exact.stored.rows[row].access != access:
        row = np.int64(exact.stored.rows[row].next)
    if row == 0:
        row = np.int64(take(exact.stored, 1))
        exact.stored.rows[row].access = access
        exact.stored.rows[row].next = place.first
        place.first = row
    exact.stored.rows[row].number = exact.stores[0]


@inlined
def noted_load(exact: Any, access: Any, group: Any, object: Any, offset: Any, window: Any) -> None:
    """A load: each store in the list of the location conflicts; in the window, if it is recent."""
    row = np.int64(_place(exact, group, object, offset).first)
    newest, last = np.int64(0), np.int64(0)
    while row != 0:
        stored = exact.stored.rows[row]
        number = row_of(exact.pairs, (np.uint64(stored.access) << np.uint64(32)) | np.uint64(access))
        pair = exact.pairs.rows[number]
        pair.exact += 1
        pair.window += np.int64(exact.stores[0] - stored.number < window)
        if stored.number > newest:
            newest, last = np.int64(stored.number), np.int64(number)
        row = np.int64(stored.next)
    if newest != 0:
        exact.pairs.rows[last].last += 1


@inlined
def noted_stride(exact: Any, access: Any, group: Any, object: Any, offset: Any) -> None:
    """A load or store: how far it is from the last one of its instruction, if that was in the same object."""
    last = exact.last[access]
    if last.accesses > 0 and last.group == group and last.object == object:
        key = (access << STRIDE_BITS) | ((offset - last.offset) & ((1 << STRIDE_BITS) - 1))
        exact.strides.rows[row_of(exact.strides, key)].count += 1
    last.accesses += 1
    last.group = group
    last.object = object
    last.offset = offset
