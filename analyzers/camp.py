"""Context-aware memory profiling: dependences told apart by call sites and loops at both ends.

Kim et al., "Context-Aware Memory Profiling for Speculative Parallelism", Algorithm 1. A
loop gets a verdict in each of its contexts; the summary compares with what lamp would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracekit.contexts.nodes import RECURSIONS, ContextKind
from tracekit.contexts.rules import is_static
from tracekit.dependence.kernels.dependence import (
    ENDING,
    Access,
    Detail,
    State,
    allocate,
    change_object,
    forget,
    interrupt,
    load_access,
    store_access,
)
from tracekit.dependence.kernels.loop_accesses import Steps, load_range, store_range
from tracekit.dependence.kernels.sharding import Part
from tracekit.module import CONTEXT_EVENTS, Display
from tracekit.objects.kernels.live import GLOBAL, STACK
from tracekit.verdicts.module import ContextOptions, DependenceModule

DETAIL = Detail(raw=1, war=1, waw=1, loops=1, histogram=0, profile=1)


def load(
    state: State,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    context: int,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """It may depend on stores."""
    access = Access(instruction, address, size, stream, time)
    load_access(state, DETAIL, levels, context, access, Part(start, whole, mine))


def store(
    state: State,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    context: int,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """It may depend on stores and loads."""
    access = Access(instruction, address, size, stream, time)
    store_access(state, DETAIL, levels, context, access, Part(start, whole, mine))


def loads(
    state: State,
    instruction: int,
    address: int,
    size: int,
    step: int,
    count: int,
    stream: int,
    time: int,
    period: int,
    levels: Any,
    context: int,
) -> None:
    """Loads of a loop."""
    access = Access(instruction, address, size, stream, time)
    load_range(state, DETAIL, levels, context, access, Steps(step, count, period))


def stores(
    state: State,
    instruction: int,
    address: int,
    size: int,
    step: int,
    count: int,
    stream: int,
    time: int,
    period: int,
    levels: Any,
    context: int,
) -> None:
    """Stores of a loop."""
    access = Access(instruction, address, size, stream, time)
    store_range(state, DETAIL, levels, context, access, Steps(step, count, period))


def iterations(state: State) -> None:
    """Each of a loop's accesses was an execution of its own."""


def heap_alloc(state: State, instruction: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    forget(state, levels, address, size, stream)
    allocate(state, levels, instruction, address, size)


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
    "heap_alloc": heap_alloc,
    "heap_free": free,
    "stack_alloc": stack_alloc,
    "stack_free": free,
    "global_init": global_init,
    **dict.fromkeys((*CONTEXT_EVENTS, "external_call"), other),
}
"""Callbacks for all but loads and stores."""


class Camp(DependenceModule):
    """One row for each pair of instructions in their contexts and kind; loops are judged in each context."""

    context = True
    detail = DETAIL
    Options = ContextOptions
    analysis = "camp"

    def own_callbacks(self) -> dict[str, Callable[..., None]]:
        """For loads and stores, and what their history depends on."""
        return {"load": load, "store": store, **OTHERS}

    def own_range_callbacks(self) -> dict[str, Callable[..., None]]:
        """For those of a loop."""
        return {"loads": loads, "stores": stores, "iterations": iterations}

    def summary(self) -> dict[str, Any]:
        """The profile in numbers, beside those that a profile without contexts would have had."""
        from tracekit.dependence.projection import without_contexts
        from tracekit.verdicts.loop_rows import LoopReport

        profile = without_contexts(self.profile)
        lamp = LoopReport(self.program, profile, self.judgements(profile), contexts=False)
        contexts, without_id = self.report.context_counts()
        return {
            "dependences": self.report.dependence_count,
            "contexts": contexts,
            "contexts_without_id": without_id,
            **({} if is_static(self.options) else self._recursions()),
            "parallel_loops_lamp": lamp.parallel_loops(),
            "parallel_loops_camp": self.report.parallel_loops(),
            "false_positive_share": self.report.false_positive_share(lamp),
        }

    def _recursions(self) -> dict[str, Any]:
        """How many contexts a recursion came back to, and inside how many of them there were too many to tell apart."""
        kinds = self.profile.nodes["kind"]
        return {
            "recursive_contexts": int(np.isin(kinds, RECURSIONS).sum()),
            "limited_contexts": int((kinds == ContextKind.RECURSION).sum()),
        }


DISPLAY = Display(
    text="tracekit.render.dependence:dependence_text",
    notes="loops",
    rank=-3,
    on_page=True,
    columns={
        "dependences": (
            "kind source:instruction destination:instruction source_context:context "
            "destination_context:context levels count"
        ),
        "loops": (
            "loop:loop context:context invocations iterations accesses carried.raw carried.war "
            "carried.waw verdict recipe blocked_by rests_on not_taken"
        ),
    },
)
MODULE = Camp
