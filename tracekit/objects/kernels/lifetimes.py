"""Kernels that follow events and say, object by object, from when to when each lived."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.jit.kernel import inlined, kernel
from tracekit.objects.kernels.live import (
    GLOBAL,
    HEAP,
    SITE_BITS,
    SITE_SHIFT,
    begin,
    end,
    extended,
    kind_of,
    starting_at,
)

LIFE = np.dtype(
    [
        ("kind", "u1"),  # HEAP or GLOBAL
        ("stream", "<u4"),  # where it began
        ("site", "<u4"),  # its instruction or global
        ("address", "<u8"),
        ("size", "<u8"),  # in bytes, when it ended
        ("born", "<i8"),  # the loads and stores of the run before it
        ("ended", "<i8"),  # the same
    ]
)

ACCESSES = 0
"""The element of the clock that counts loads and stores."""

_LOAD, _STORE, _ALLOC, _FREE = CODE["load"], CODE["store"], CODE["heap_alloc"], CODE["heap_free"]
_GLOBAL_INIT, _IMAGE_UNLOAD = CODE["global_init"], CODE["image_unload"]


@kernel
def follow(
    live: Any, images: Any, kinds: Any, subjects: Any, addresses: Any, sizes: Any, stream: Any, clock: Any, out: Any
) -> Any:
    """Events of a stream; `out` (LIFE) gets the objects that end, and has room. Returns how many these are."""
    count = 0
    for event in range(kinds.size):
        kind, address, size = kinds[event], np.int64(addresses[event]), np.int64(sizes[event])
        if kind == _LOAD or kind == _STORE:
            clock[ACCESSES] += 1
        elif kind == _ALLOC:
            if extended(live, np.int64(subjects[event]), address, size) == 0:
                count = born(live, HEAP, np.int64(subjects[event]), address, size, stream, clock, out, count)
        elif kind == _GLOBAL_INIT:
            count = born(live, GLOBAL, np.int64(subjects[event]), address, size, stream, clock, out, count)
        elif kind == _FREE:
            row = end(live, address, size)
            if row != 0:
                count = noted(live, row, clock[ACCESSES], out, count)
        elif kind == _IMAGE_UNLOAD:
            for number in range(images.image.size):
                if images.image[number] == subjects[event] and images.address[number] != 0:
                    row = end(live, np.int64(images.address[number]), np.int64(images.size[number]))
                    if row != 0:
                        count = noted(live, row, clock[ACCESSES], out, count)
    return count


@kernel
def rest(live: Any, first: Any, last: Any, out: Any) -> Any:
    """The objects that live yet, in these rows of ``live.objects``; returns how many these are."""
    count = 0
    for row in range(first, last):
        if live.objects.rows[row].alive != 0:
            count = noted(live, row, -1, out, count)
    return count


@inlined
def born(
    live: Any, kind: Any, site: Any, address: Any, size: Any, stream: Any, clock: Any, out: Any, count: Any
) -> Any:
    """An object begins; one whose end was not seen, and that began there, ends."""
    before = starting_at(live, address)
    if before != 0:
        count = noted(live, before, clock[ACCESSES], out, count)
    row = begin(live, kind, site, 0, address, size, stream, 0)
    if row != 0:
        live.objects.rows[row].born = clock[ACCESSES]
    return count


@inlined
def noted(live: Any, row: Any, time: Any, out: Any, count: Any) -> Any:
    """Write an object down, which ended at `time`, or -1."""
    old = live.objects.rows[row]
    key = np.int64(live.sites.rows[old.site].key)
    out[count].kind = kind_of(key)
    out[count].stream = old.stream
    out[count].site = (key >> SITE_SHIFT) & SITE_BITS
    out[count].address = old.start
    out[count].size = old.end - old.start
    out[count].born = old.born
    out[count].ended = time
    return count + 1
