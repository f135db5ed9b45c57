"""Allocates, grows and weighs the shadow memory that ``kernels/shadow.py`` works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.replay.kernels import shadow as kernel
from tracekit.replay.kernels.hashmap import grown, hash_map
from tracekit.replay.kernels.shadow import Shadow


def lengthened(rows: NDArray[Any]) -> NDArray[Any]:
    """A copy of `rows` with twice the room, zeros behind."""
    longer = np.zeros(2 * len(rows), rows.dtype)
    longer[: len(rows)] = rows
    return longer


def empty_shadow(pages: int = 1024) -> Shadow:
    """A shadow without history, with room for `pages` pages before it first grows."""
    control = np.zeros(kernel.CONTROL, np.int64)
    control[kernel.SLOTS] = 8  # slot 0 and entry 0 stand for "none"
    control[kernel.READERS] = 1
    return Shadow(
        page_index=hash_map(pages),
        pages=np.zeros(pages, kernel.PAGE),
        slots=np.zeros(8 + pages * (kernel.WORDS + 64), kernel.SLOT),
        readers=np.zeros(max(pages * 16, 8), kernel.READER),
        control=control,
    )


def grow_shadow(shadow: Shadow, status: int) -> Shadow:
    """The same shadow with twice the room of what a kernel's `status` says is used up."""
    if status == kernel.NO_PAGES:
        return shadow._replace(page_index=grown(shadow.page_index), pages=lengthened(shadow.pages))
    if status == kernel.NO_SLOTS:
        return shadow._replace(slots=lengthened(shadow.slots))
    if status == kernel.NO_READERS:
        return shadow._replace(readers=lengthened(shadow.readers))
    raise AssertionError(f"status {status} is none of the shadow's")


def shadow_bytes(shadow: Shadow) -> int:
    """Bytes that pages, slots and reader entries take, the recycled ones included."""
    return int(
        shadow.page_index.cells.nbytes
        + kernel.PAGE.itemsize * shadow.control[kernel.PAGES]
        + kernel.SLOT.itemsize * shadow.control[kernel.SLOTS]
        + kernel.READER.itemsize * shadow.control[kernel.READERS]
    )
