"""Data races: two accesses to a common byte, one a store, that nothing orders, with contexts, locks and threads.

Happens-before by vector clocks, exact to the byte and for all accesses: what is reported is a race of this run's order,
whether or not the two came close in time (FastTrack). Atomic operations order threads in programs that were compiled
with ``tracekit cc --threads``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracekit.module import Display, Module, TracekitError, contexts_option, option
from tracekit.races.callbacks.accesses import AccessCallbacks
from tracekit.races.callbacks.openmp import OpenmpCallbacks
from tracekit.races.callbacks.order import OrderCallbacks
from tracekit.races.callbacks.resources import ResourceCallbacks
from tracekit.races.kernels.state import (
    BY_NUMBER,
    MINGLED,
    OLD_BARRIERS,
    RECENT_WAYS,
    REORDERS,
    REUSED,
    STOPPED,
    TASKS,
    TEAMS,
    UNKNOWN,
    State,
)
from tracekit.races.rows import RaceRows
from tracekit.races.state import atomic_instructions, empty_state, lanes_of_loops
from tracekit.races.suppressions import Suppressions

OPENMP = ("__kmpc_fork_call", "__kmpc_fork_teams", "GOMP_parallel")
"""Calls by which compilers start parallel regions of OpenMP."""


UNTIL = ("end", "race", "try", "atomic", "fork", "task", "simd", "room")
"""Up to where other orders of locks were looked for, by what stopped that."""


@dataclass(frozen=True)
class RaceOptions:
    """What is left out, what is looked for, and how contexts are told apart."""

    suppress: str = option(
        "", "Leave out races in these functions or files, or those named in FILE.", "KIND:PATTERN,...|@FILE"
    )
    contexts: str = contexts_option()
    lock_orders: bool = option(True, "Find races, too, that only another order of locks has.")
    descriptor_order: bool = option(False, "Who closes a descriptor comes before who opens one with its number.")

    def __post_init__(self) -> None:
        Suppressions.of(self.suppress)


class Races(OrderCallbacks, ResourceCallbacks, OpenmpCallbacks, AccessCallbacks, Module):
    """One row for each two places that race; its callbacks stand in tracekit/races/callbacks/."""

    whole_because = "clocks of threads and what is known of each byte go on"
    Options = RaceOptions
    groups_by = "caller"
    stack_objects = True
    compute_bound = True

    def state(self) -> State:
        """No thread, no access."""
        state = empty_state(self.program)
        state.now[REORDERS] = self.options.lock_orders
        state.now[BY_NUMBER] = self.options.descriptor_order
        return state

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those of loops are for programs with SIMD loops and loops that OpenMP shares out, those of calls for these
        and for other orders of locks."""
        has_loops = lanes_of_loops(self.program).any()
        unused = set() if has_loops else {"loop_invocation", "loop_iteration", "loop_exit"}
        if not self.options.lock_orders:
            unused |= {"external_call"} if has_loops else {"external_call", "function_entry"}
        return {name: function for name, function in super().callbacks().items() if name not in unused}

    # -- the profile --

    def result(self, state: State) -> dict[str, Any]:
        """The races, and the threads and tasks that they are between; what was not seen."""
        if state.now[TEAMS] == 0 and state.streams.control[0] > 2 and self.uses_openmp():
            raise TracekitError(
                "The program uses OpenMP, and the trace does not say what OpenMP's runtime orders: record it again, "
                "with LLVM's libomp as a shared library and without OMP_TOOL=disabled."
            )
        shown = RaceRows(self, state)
        rows = shown.rows()
        left_out = Suppressions.of(self.options.suppress)
        kept = [row for row in rows if not (left_out.match(row["first"]) or left_out.match(row["second"]))]
        return {
            "summary": {
                "races": len(kept),
                "suppressed": len(rows) - len(kept),
                "threads": len(shown.threads),
                "tasks": int(state.now[TASKS]),
                "mingled_tasks": int(state.now[MINGLED]),
                "accesses_of_no_thread": int(state.now[UNKNOWN]),
                "old_barriers": int(state.now[OLD_BARRIERS]),
                "unordered_atomics": self.unordered_atomics(state),
                "reused_descriptors": 0 if self.options.descriptor_order else int(state.now[REUSED]),
                **({"lock_orders_until": UNTIL[state.now[STOPPED]]} if self.options.lock_orders else {}),
            },
            "races": kept,
            "threads": shown.thread_rows(kept),
            "tasks": shown.task_rows(kept),
        }

    def uses_openmp(self) -> bool:
        """Whether there are calls by which compilers start parallel regions."""
        return not {self.program.callee_name(row) for row in range(len(self.program.calls))}.isdisjoint(OPENMP)

    def unordered_atomics(self, state: State) -> int:
        """Atomic instructions that ran beside other threads, and whose order is not in the trace."""
        if self.program.has_atomic_order:
            return 0
        return int(
            (
                atomic_instructions(self.program)[:-1]
                & (state.recent["site"].reshape(-1, 2 * RECENT_WAYS)[:-1].any(axis=1))
            ).sum()
        )


DISPLAY = Display(
    text="tracekit.render.races:races_text",
    failed="tracekit.render.races:has_races",
    heading="Data races",
    columns={
        "races": "first:end second:end count object:object number offset one_thread",
        "threads": "thread function creator created_in:context",
        "tasks": "task kind instruction:instruction created_in:context",
    },
)
MODULE = Races
