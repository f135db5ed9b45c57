"""Context-aware memory profiling: dependences told apart by call sites and loops at both ends.

Kim et al., "Context-Aware Memory Profiling for Speculative Parallelism", Algorithm 1. A
loop gets a verdict in each of its contexts; the summary compares with what lamp would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracekit.replay.family import DependenceModule
from tracekit.replay.kernels.dependence import (
    ENDING,
    GLOBAL,
    HEAP,
    STACK,
    State,
    Wanted,
    change_object,
    forget,
    in_context,
    interrupt,
    loaded,
    passed_by,
    stored,
)
from tracekit.replay.kernels.sharing import Part

WANTED = Wanted(raw=1, war=1, waw=1, loops=1, histogram=0, profile=1)


def load(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
         context: int, start: int, whole: int, mine: int) -> None:
    """It may depend on stores."""
    instruction, part = min(instruction, state.known.size - 1), Part(start, whole, mine)
    if not passed_by(state, levels, instruction, address, stream, time, 0, part):
        access = in_context(state, levels, instruction, context)
        state.relations.accesses.rows[access].count += address == start
        loaded(state, WANTED, levels, instruction, access, address, size, stream, time, part)


def store(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
          context: int, start: int, whole: int, mine: int) -> None:
    """It may depend on stores and loads."""
    instruction, part = min(instruction, state.known.size - 1), Part(start, whole, mine)
    if not passed_by(state, levels, instruction, address, stream, time, 1, part):
        access = in_context(state, levels, instruction, context)
        state.relations.accesses.rows[access].count += address == start
        stored(state, WANTED, levels, instruction, access, address, size, stream, time, part)


def heap_alloc(state: State, instruction: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    forget(state, levels, address, size, stream)
    change_object(state, HEAP, instruction, address, size)


def stack_alloc(state: State, instruction: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    forget(state, levels, address, size, stream)
    change_object(state, STACK, instruction, address, size)


def global_init(state: State, object: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    forget(state, levels, address, size, stream)
    change_object(state, GLOBAL, object, address, size)


def free(state: State, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory ends, and its history with it."""
    forget(state, levels, address, size, stream)
    change_object(state, ENDING, 0, address, size)


def other(state: State, stream: int, levels: Any) -> None:
    """What is no load or store ends an execution."""
    interrupt(state, levels, stream)


OTHERS: dict[str, Callable[..., None]] = {
    "heap_alloc": heap_alloc, "heap_free": free, "stack_alloc": stack_alloc, "stack_free": free,
    "global_init": global_init, **dict.fromkeys(
        ("function_entry", "function_exit", "loop_invocation", "loop_iteration", "loop_exit", "external_call"), other),
}
"""Callbacks for all but loads and stores."""


class Camp(DependenceModule):
    """One row for each pair of instructions in their contexts and kind; loops are judged in each context."""

    context = True

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """For loads and stores, and what their history depends on."""
        return {"load": load, "store": store, **OTHERS}

    def summary(self) -> dict[str, Any]:
        """The profile in numbers, beside those that a profile without contexts would have had."""
        from tracekit.replay.projection import without_contexts
        from tracekit.replay.report import Report

        profile = without_contexts(self.profile)
        lamp = Report(self.program, profile, self.judgements(profile), contexts=False)
        contexts, without_id = self.report.context_counts()
        return {
            "dependences": self.report.dependence_count,
            "contexts": contexts,
            "contexts_without_id": without_id,
            "parallel_loops_lamp": lamp.parallel_loops(),
            "parallel_loops_camp": self.report.parallel_loops(),
            "false_positive_share": self.report.false_positive_share(lamp),
        }


MODULE = Camp
