"""Makes what ``kernels/translation.py`` works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table
from tracekit.formats.image import OpKind
from tracekit.translation.identities import empty_objects
from tracekit.translation.kernels.identities import SHARED
from tracekit.translation.kernels.translation import BLOCK, CONTROL, FRESH, GROUP, MOVES, Translation

if TYPE_CHECKING:
    from tracekit.program.program import Program

FRESH_FUNCTIONS = (
    *("malloc", "calloc", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc", "strdup", "mmap"),
    *("mmap64", "munmap"),
)
"""Functions that return an object of its own, or leave one (so does any operator new)."""
MOVING_FUNCTIONS = ("realloc", "reallocarray", "mremap")


def allocators(program: Program) -> NDArray[np.uint8]:
    """For each instruction FRESH, MOVES or 0, and 0 for none."""
    found = np.zeros(len(program.ops) + 1, np.uint8)
    for op in np.flatnonzero(program.ops["kind"] == OpKind.CALL).tolist():
        name = program.text(int(program.calls["callee"][program.ops["base"][op]]))
        if name in FRESH_FUNCTIONS or name.startswith("_Zn"):
            found[op] = FRESH
        elif name in MOVING_FUNCTIONS:
            found[op] = MOVES
    return found


def no_objects(program: Program) -> Translation:
    """No object."""
    return Translation(
        owners=empty_objects(),
        blocks=arena.arena(BLOCK, SHARED, spare=1),
        groups=hash_table(GROUP, 1 << 24),
        allocators=allocators(program),
        global_image=program.global_image,
        global_address=program.global_address,
        control=np.zeros(CONTROL, np.int64),
    )
