"""Makes what ``kernels/translation.py`` works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import copied_table, hash_table
from tracekit.formats.image import CallFlag, OpKind
from tracekit.program.allocators import standard_name
from tracekit.program.sources import is_system
from tracekit.translation.identities import copied_objects, empty_objects
from tracekit.translation.kernels.identities import SHARED
from tracekit.translation.kernels.translation import BLOCK, CONTROL, FRESH, GROUP, MOVES, Translation

if TYPE_CHECKING:
    from tracekit.program.program import Program

MOST_GROUPS = 1 << 24

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
        name = standard_name(program, int(program.ops["base"][op]))
        if name in FRESH_FUNCTIONS or name.startswith("_Zn"):
            found[op] = FRESH
        elif name in MOVING_FUNCTIONS:
            found[op] = MOVES
    return found


def in_wrapper(program: Program) -> NDArray[np.uint8]:
    """For each instruction whether it lies in a wrapper, whose function hands on what it allocates, and 0 for none.

    That is a wrapper of an allocator, which is told how much, and all that stands in a library's headers.
    """
    found = np.zeros(len(program.ops) + 1, np.uint8)
    calls = program.calls[program.calls["flags"] & int(CallFlag.HANDED_ON) != 0]
    found[calls["op"]] = 1
    for number in np.flatnonzero(_in_headers(program)).tolist():
        row = program.functions[number]
        found[int(row["first_op"]) : int(row["first_op"]) + int(row["ops"])] = 1
    return found


def _in_headers(program: Program) -> NDArray[np.bool_]:
    """For each function whether it stands in a library's header."""
    of_source = np.array([*(is_system(name) for name in program.source_names.names), False])
    of_location = np.append(of_source[np.minimum(program.locations["source"], of_source.size - 1)], False)
    of_function: NDArray[np.bool_] = of_location[np.minimum(program.functions["location"], of_location.size - 1)]
    return of_function


def no_objects(program: Program, by_caller: bool = False) -> Translation:
    """No object; `by_caller`: groups are told apart by the calls of wrappers."""
    return Translation(
        owners=empty_objects(),
        blocks=arena.arena(BLOCK, SHARED, spare=1),
        groups=hash_table(GROUP, MOST_GROUPS),
        allocators=allocators(program),
        in_wrapper=in_wrapper(program) if by_caller else np.zeros(0, np.uint8),
        global_image=program.global_image,
        global_address=program.global_address,
        control=np.zeros(CONTROL, np.int64),
    )


def copied_translation(translation: Translation) -> Translation:
    """A copy that changes by itself; what never changes is shared."""
    return translation._replace(
        owners=copied_objects(translation.owners),
        blocks=arena.copied(translation.blocks),
        groups=copied_table(translation.groups, MOST_GROUPS),
        control=translation.control.copy(),
    )
