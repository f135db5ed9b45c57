"""Shadow memory for any metadata: what a module remembers of each byte of the program, one row per word while it can.

    memory = shadow.empty(np.uint32)                       # or any structured dtype: the module's metadata

    for row in reading(memory, address, size):             # kernels/shadow.py, in a callback
        source = memory.rows[row]

PROMPT, 5.2. The kernels and the layout are described in ``kernels/shadow.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.containers import arena, budget
from tracekit.containers.kernels.shadow import (
    CONTROL,
    DIRECT,
    EACH,
    FAR_CELLS,
    PAGE,
    PAGES,
    SCRATCH,
    STREAM,
    WORDS,
    Shadow,
    enter,
)
from tracekit.formats.errors import TracekitError

PLANES = 16
"""Rows for a word: those of itself and of its 2, 4 and 8 parts; the rest is not used (kernels/shadow.py)."""

CELLS = 8
"""Cells of ``far`` for a page: each time they are doubled, the new ones lie behind the old."""

FEWEST_PAGES = 1 << 12
MOST_STREAMS = 1 << 16
DIRECT_STREAMS = 16
"""Streams whose pages are found through the table, while the system gives the address space; the others' are hashed."""


def empty(dtype: npt.DTypeLike, per_stream: bool = False, pages: int = 0, direct: int = DIRECT) -> Shadow:
    """Make a shadow whose every row is zero, of the metadata `dtype`.

    With `per_stream` each stream has a history of its own (callbacks call ``turn_to``). `pages` is the
    most pages of 4 KiB that the program may touch (0: as many as the machine could shadow), `direct` the number of
    pages that a stream's table has. Where address space is limited, the shadow has as many parts of it (budget.py) as
    a row has bytes, and tables for as many streams as fit into an eighth of them. Raises TracekitError if the system
    gives no address space.
    """
    row = np.dtype(dtype)
    streams = DIRECT_STREAMS if per_stream else 1
    needed = pages or budget.memory() // min(4096, WORDS * row.itemsize)
    most = max(1 << (needed + SCRATCH).bit_length(), 4)
    limited = budget.share(row.itemsize)
    if limited is not None:
        streams = min(streams, limited // 8 // (4 * direct))
        if not pages:
            most = max(min(most, (limited - 4 * direct * streams) // _page_bytes(row)), 4)
    while True:
        try:
            shadow = _reserved(row, most, streams, direct)
            break
        except TracekitError:
            if pages or most <= FEWEST_PAGES:
                raise
            most //= 2
    shadow.control[PAGES] = SCRATCH + 1
    shadow.control[FAR_CELLS] = 8
    shadow.control[EACH] = direct
    shadow.control[STREAM] = -1
    if not per_stream:
        enter(shadow, 0)
    return shadow


def _page_bytes(row: np.dtype[np.void]) -> int:
    """What :func:`_reserved` reserves for a page."""
    return WORDS * (PLANES * row.itemsize + 1) + PAGE.itemsize + 4 * CELLS


def _reserved(row: np.dtype[np.void], pages: int, streams: int, direct: int) -> Shadow:
    return Shadow(
        rows=arena.reserve(row, PLANES * WORDS * pages),
        granules=arena.reserve("u1", WORDS * pages),
        table=arena.reserve("u4", direct * streams, min(direct * streams, 1 << 20)),
        pages=arena.reserve(PAGE, pages),
        far=arena.reserve("u4", CELLS * pages),
        streams=arena.reserve("i8", MOST_STREAMS),
        control=np.zeros(CONTROL, np.int64),
    )


def shadow_bytes(shadow: Shadow) -> int:
    """Bytes of memory that the shadow has touched."""
    arrays: Sequence[npt.NDArray[Any]] = (shadow.rows, shadow.granules, shadow.table, shadow.pages, shadow.far)
    return sum(arena.touched(array) for array in arrays)


def words(memory: Shadow) -> tuple[npt.NDArray[np.int64], Any]:
    """The words of a shadow whose rows are not zero: their numbers (n,), ascending, and their rows (n,).

    The word at an address has the number address >> 3. Words must not be divided: every access covered whole ones.
    """
    used, total = int(memory.control[PAGES]), len(memory.pages) * WORDS
    rows: Any = memory.rows[total + (SCRATCH + 1) * WORDS : total + used * WORDS]
    found = np.flatnonzero(rows)
    pages = memory.pages["number"][SCRATCH + 1 : used]
    numbers = pages[found // WORDS] * WORDS + found % WORDS
    order = np.argsort(numbers)
    return numbers[order], rows[found[order]]
