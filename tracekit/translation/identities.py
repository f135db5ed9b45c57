"""Makes the map of live objects that ``kernels/identities.py`` works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena, budget
from tracekit.containers.hash_table import copied_table, hash_table
from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.containers.serialization import Reduced, register_reducer
from tracekit.translation.kernels.identities import BYTES, CONTROL, EXTENT, NEAR, PAGE, WORDS, Objects


def empty_objects() -> Objects:
    """A map without objects."""
    pages = hash_table([], *_page_rows())
    return Objects(
        pages=pages,
        words=arena.reserve("i4", WORDS * len(pages.rows)),
        bytes=arena.arena(BYTES, 1 << 29, spare=1),
        bigs=arena.arena(EXTENT, 1 << 28, spare=1),
        near=np.zeros(NEAR, PAGE),
        control=np.zeros(CONTROL, np.int64),
    )


def copied_objects(objects: Objects) -> Objects:
    """A copy of a map of objects that changes by itself."""
    pages = copied_table(objects.pages, *_page_rows())
    words = arena.reserve("i4", len(objects.words))
    used = WORDS * int(objects.pages.control[USED])
    words[:used] = objects.words[:used]
    return Objects(
        pages,
        words,
        arena.copied(objects.bytes),
        arena.copied(objects.bigs),
        objects.near.copy(),
        objects.control.copy(),
    )


def _page_rows() -> tuple[int, int]:
    """Pages at most, and the bytes beside the row of each."""
    return min(1 << 28, budget.memory() // (4 * WORDS)), 4 * WORDS


def _of_objects(objects: Objects) -> Reduced:
    """Of the words those of the pages that there are."""
    words = objects.words[: WORDS * int(objects.pages.control[USED])].copy()
    return _objects, (objects.pages, words, objects.bytes, objects.bigs, objects.near, objects.control)


def _objects(pages: HashTable, own: NDArray[np.int32], *rest: Any) -> Objects:
    words = arena.reserve("i4", WORDS * len(pages.rows), max(len(own), 1))
    words[: len(own)] = own
    return Objects(pages, words, *rest)


register_reducer(Objects, _of_objects)
