"""What OpenMP's runtime does for itself, and what tells a thread of a team which one it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.image import Base, CallFlag, GlobalFlag, OpUse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracekit.program.program import Program

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
    is_own = (program.ops["name"] != 0) & (program.ops["use"] & OpUse.BY_REFERENCE == 0)
    found |= is_own & np.isin(program.ops["name"], names)
    return found
