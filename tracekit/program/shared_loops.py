"""Which loops OpenMP shares out among the threads of a team.

Clang and flang call the runtime for the bounds of a thread's share, or for one chunk after another; the loop behind
that call, or around it, is the one whose iterations any thread might have run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.events import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracekit.program.program import Program

STATIC_BEGIN, STATIC_END = "__kmpc_for_static_init_", "__kmpc_for_static_fini"
CHUNKS_BEGIN, NEXT_CHUNK = "__kmpc_dispatch_init_", "__kmpc_dispatch_next_"


def shared_loops(program: Program) -> NDArray[np.intp]:
    """Rows of loops whose iterations OpenMP shares out: of one with a static schedule and a chunk, and of one with
    another schedule, the loop over chunks, because a chunk's iterations are one thread's.

    A loop that the optimiser has made several of, so that it is not sure which of them it is, is left out.
    """
    calls: dict[int, list[tuple[int, str]]] = {}  # by function: block and callee
    for row in range(len(program.calls)):
        name, block = program.callee_name(row), int(program.calls["block"][row])
        if name.startswith((STATIC_BEGIN, STATIC_END, CHUNKS_BEGIN, NEXT_CHUNK)):
            calls.setdefault(int(program.blocks["function"][block]), []).append((block, name))
    found: set[int] = set()
    for function, of in calls.items():
        of.sort()
        first = int(program.functions["first_loop"][function])
        loops = range(first, first + int(program.functions["loops"][function]))
        found |= _static(program, of, loops) | _in_chunks(program, of)
    return np.array(sorted(found), np.intp)


def _static(program: Program, calls: list[tuple[int, str]], loops: range) -> set[int]:
    """The only loop between a call for bounds and the next one that ends the loop, where both stand."""
    found = set()
    for number, (block, name) in enumerate(calls):
        if not name.startswith(STATIC_BEGIN):
            continue
        end = next((at for at, other in calls[number + 1 :] if other == STATIC_END), None)
        parent = int(program.blocks["loop"][block])
        between = [
            loop
            for loop in loops
            if end is not None
            and block < int(program.loops["header"][loop]) <= end
            and int(program.loops["parent"][loop]) == parent
        ]
        if len(between) == 1:
            found.add(between[0])
    return found


def _in_chunks(program: Program, calls: list[tuple[int, str]]) -> set[int]:
    """The loops that ask for one chunk after another, but not those around them."""
    around = {int(program.blocks["loop"][block]) for block, name in calls if name.startswith(CHUNKS_BEGIN)}
    for loop in list(around):
        while loop != NONE:
            around.add(loop)
            loop = int(program.loops["parent"][loop])
    return (
        {int(program.blocks["loop"][block]) for block, name in calls if name.startswith(NEXT_CHUNK)} - around - {NONE}
    )
