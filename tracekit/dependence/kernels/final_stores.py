"""Final stores: those none of whose bytes is stored again before their memory ends.

What is loaded behind a final store, no later store depends on, so the history of loads does without it (is_needed).
Most loads of most programs are such: of text that was read once, of tables that were filled at the start. A pass over
the whole trace finds out beforehand which stores are final (tracekit/dependence/final_stores.py).

Bytes that a thread stores are those of its own history (shadow.py, `turn_to`), as everywhere in this package.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, has_row, row_of
from tracekit.containers.kernels.initial_pages import key_of
from tracekit.containers.kernels.shadow import (
    NOWHERE,
    PAGE_BITS,
    STREAM,
    Shadow,
    changing,
    page_of,
    turn_to,
    writing,
)
from tracekit.dependence.kernels.load_history import FINAL
from tracekit.jit.kernel import inlined, kernel


class FinalStores(NamedTuple):
    """What the pass found; nothing of it changes any more. Without a pass, no store is known to be final."""

    overwritten: NDArray[np.uint8]  # [time of a store >> 3]: bit time & 7 is 1 if one of its bytes is stored again
    pages: HashTable  # by page number and stream (initial_pages.key_of): those that something is stored in


class Passing(NamedTuple):
    """The state of the pass."""

    memory: Shadow  # i8: the time of the last store + 1
    overwritten: NDArray[np.uint8]


# -- the pass --------------------------------------------------------------------------------------


@inlined
def overwrite(passing: Any, address: Any, size: Any, stream: Any, time: Any) -> None:
    """A store: those before it to the same bytes are not final."""
    memory = passing.memory
    turn_to(memory, stream)
    is_divided = False
    for row in changing(memory, address, size):
        _mark(passing.overwritten, memory.rows[row] - 1)
        memory.rows[row] = time + 1
        is_divided |= row >= np.uint64(2 * memory.granules.size)
    if is_divided:  # words that are covered become whole
        for row in writing(memory, address, size):
            memory.rows[row] = time + 1


@inlined
def _mark(overwritten: Any, time: Any) -> None:
    place = np.uint64(time) >> np.uint64(3)  # -1, none, lies behind the end
    if place < np.uint64(overwritten.size):
        overwritten[place] |= np.uint8(1 << (time & 7))


@kernel
def enter_pages(table: HashTable, pages: Any) -> None:
    """Enter pages (PAGE of shadow.py) in a table by number and stream."""
    for place in range(pages.size):
        row_of(table, key_of(pages[place].number, pages[place].stream))


# -- what is known by it ---------------------------------------------------------------------------


@inlined
def by_access(final: Any, access: Any, time: Any) -> Any:
    """What a row of the history says of its last store: that by `access` at `time`, and whether it is final."""
    place = np.uint64(time) >> np.uint64(3)
    if place < np.uint64(final.overwritten.size) and (final.overwritten[place] >> np.uint8(time & 7)) & 1 == 0:
        return access | FINAL
    return access


@inlined
def is_needed(known: Any) -> Any:
    """Whether a store may depend on a load of bytes of which the history has this row."""
    return known.store & np.uint32(FINAL) == 0


@inlined
def has_history(state: Any, address: Any, size: Any) -> Any:
    """Whether the history needs rows for bytes that are loaded; else nothing is ever stored in their page.

    Files that a program maps into its memory and reads have no history: it would be longer than they are.
    """
    is_known = page_of(state.memory, np.uint64(address) >> np.uint64(PAGE_BITS)) != NOWHERE
    return is_known or not _is_never_stored(state, address, size)


@kernel
def _is_never_stored(state: Any, address: Any, size: Any) -> bool:
    """Whether these bytes lie in one page, and the present stream never stores anything there."""
    if state.final.overwritten.size == 0:
        return False
    first, last = np.uint64(address) >> np.uint64(PAGE_BITS), np.uint64(address + size - 1) >> np.uint64(PAGE_BITS)
    return first == last and not has_row(state.final.pages, key_of(first, state.memory.control[STREAM]))
