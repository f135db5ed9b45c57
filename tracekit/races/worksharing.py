"""Which loops OpenMP shares out among the threads of a team, and what tells a thread which one it is.

Clang and flang call the runtime for the bounds of a thread's share, or for one chunk after another; the loop behind
that call, or around it, is the one whose iterations any thread might have run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import Base, CallFlag, GlobalFlag

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracekit.program.program import Program

STATIC_BEGIN, STATIC_END = "__kmpc_for_static_init_", "__kmpc_for_static_fini"
CHUNKS_BEGIN, NEXT_CHUNK = "__kmpc_dispatch_init_", "__kmpc_dispatch_next_"
OF_COPIES = (".red_init.", ".red_comb.", ".red_fini.")
"""Functions that clang makes for the copies of a reduction of tasks."""
COMBINES = "__kmpc_task_reduction_modifier_fini"
IDENTITIES = frozenset(
    (
        "omp_get_thread_num",
        "omp_get_place_num",
        "omp_get_ancestor_thread_num",
        "omp_get_thread_num_",
        "omp_get_ancestor_thread_num_",
        "pthread_self",
        "thrd_current",
        "gettid",
        "sched_getcpu",
        "__kmpc_threadprivate_cached",
        "syscall",
    )
)
"""Functions that tell a thread or its place from others."""


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


def runtimes_instructions(program: Program) -> NDArray[np.bool_]:
    """By instruction: whether it is the runtime's work on the copies of a reduction of tasks.

    Of `reduction(task, ...)` one thread begins the copies of all, and the last one to come to the end combines and
    frees them. They tell each other by counters of libomp's own.
    """
    functions = np.array([program.function_name(row).startswith(OF_COPIES) for row in range(len(program.functions))])
    found: NDArray[np.bool_] = (
        functions[program.op_function] if functions.any() else np.zeros(len(program.ops), np.bool_)
    )
    for row in range(len(program.calls)):
        if program.callee_name(row) == COMBINES:
            found[program.calls["op"][row]] = True
    return found


def telling_instructions(program: Program) -> NDArray[np.bool_]:
    """By instruction: whether a thread that gets there may know which one it is: from one of IDENTITIES that its
    function, or one that this calls by name, calls; or from a thread-local variable that it accesses."""
    functions = np.zeros(len(program.functions), np.bool_)
    caller = program.blocks["function"][program.calls["block"]]
    callers: dict[int, set[int]] = {}
    ends: list[int] = []
    for row in range(len(program.calls)):
        if program.callee_name(row) in IDENTITIES:
            ends.append(int(caller[row]))
        elif program.calls["flags"][row] & (CallFlag.INDIRECT | CallFlag.MAY_CALL_BACK) == 0:
            for callee in program.call_callees(row).tolist():
                callers.setdefault(callee, set()).add(int(caller[row]))
    while ends:
        function = ends.pop()
        if not functions[function]:
            functions[function] = True
            ends += callers.get(function, ())
    telling: NDArray[np.bool_] = functions[program.op_function] | _thread_local(program)
    return telling


def _thread_local(program: Program) -> NDArray[np.bool_]:
    """By instruction: whether it is known to access a thread-local variable."""
    is_local = program.globals["flags"] & GlobalFlag.THREAD_LOCAL != 0
    of_global = program.ops["base_kind"] == Base.GLOBAL
    found = np.zeros(len(program.ops), np.bool_)
    found[of_global] = is_local[program.ops["base"][of_global]]
    names = np.unique([program.globals[column][is_local] for column in ("name", "source_name")])
    found |= (program.ops["name"] != 0) & np.isin(program.ops["name"], names)
    return found
