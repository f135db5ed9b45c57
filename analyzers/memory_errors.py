"""Errors of memory: reads of what was never written, uses after free, accesses out of bounds, wrong frees, leaks.

What the events of a run show is an error for certain, or it is none: where calls of unknown effect, or threads whose
order is not known, leave a doubt, it is counted as not decided. It is what valgrind's memcheck looks for, from a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracekit.formats import library_functions
from tracekit.memory_errors.kernels.checks import (
    DISORDER,
    ENDED,
    LARGEST,
    MOST,
    OPEN,
    OPEN_AT_END,
    THREADS,
    State,
    access,
)
from tracekit.memory_errors.kernels.contents import forget, loaded, stored
from tracekit.memory_errors.kernels.objects import (
    allocated,
    called,
    entered,
    freed,
    global_variable,
    left,
    unloaded,
    variable,
    variable_ended,
)
from tracekit.memory_errors.profile import found_errors, merged, without
from tracekit.memory_errors.rules import empty_state, stores_have_values
from tracekit.module import FRAMES, Display, Module, TracekitError, contexts_option, option


@dataclass(frozen=True)
class MemoryErrorsOptions:
    """What is reported."""

    suppress: str = option(
        "", "Leave out errors in these functions or files, or called from there; * stands for anything.", "NAME,..."
    )
    contexts: str = contexts_option("static")


# -- the same where stores have values: what is in memory is followed, for the pointers that are left at the end ------


def load(state: State, instruction: int, address: int, size: int, context: int, stream: int) -> None:
    """A load."""
    access(state, instruction, address, size, context, stream, False)
    loaded(state.contents, min(instruction, state.rules.size - 1), address, size, stream)


def store(state: State, instruction: int, address: int, size: int, value: int, context: int, stream: int) -> None:
    """A store."""
    access(state, instruction, address, size, context, stream, True)
    if size <= MOST:
        stored(state.contents, min(instruction, state.rules.size - 1), address, size, value, stream)


def heap_alloc(state: State, instruction: int, address: int, size: int, context: int, stream: int, levels: Any) -> None:
    """A new block, or the tail by which a realloc let one grow."""
    allocated(state, instruction, context, address, size, stream, levels)
    if size <= LARGEST:
        forget(state.contents.words, address, size)


def heap_free(state: State, instruction: int, address: int, size: int, context: int) -> None:
    """A block ends."""
    freed(state, instruction, context, address, size)
    if size <= LARGEST:
        forget(state.contents.words, address, size)


def stack_alloc(
    state: State, instruction: int, address: int, size: int, context: int, stream: int, levels: Any
) -> None:
    """A local variable begins."""
    variable(state, instruction, context, address, size, stream, levels.control[FRAMES])
    if size <= LARGEST:
        forget(state.contents.words, address, size)


def stack_free(state: State, address: int, size: int) -> None:
    """A local variable ends."""
    variable_ended(state, address, size)
    if size <= LARGEST:
        forget(state.contents.words, address, size)


class MemoryErrors(Module):
    """Errors by kind, place and object; leaks by the place that allocated."""

    whole_because = "what is known of each byte goes on"
    counts_iterations = False
    Options = MemoryErrorsOptions

    def state(self) -> State:
        """Nothing lives."""
        if self.windowed:
            raise TracekitError(
                "memory_errors looks at whole runs: what was written outside a window would look as if it never was."
            )
        return empty_state(self.program, library_functions.recorded(self.metadata))

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, context: int, stream: int) -> None:
        """A load."""
        access(state, instruction, address, size, context, stream, False)

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, context: int, stream: int) -> None:
        """A store."""
        access(state, instruction, address, size, context, stream, True)

    @staticmethod
    def heap_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, levels: Any
    ) -> None:
        """A new block, or the tail by which a realloc let one grow."""
        allocated(state, instruction, context, address, size, stream, levels)

    @staticmethod
    def heap_free(state: State, instruction: int, address: int, size: int, context: int) -> None:
        """A block ends."""
        freed(state, instruction, context, address, size)

    @staticmethod
    def stack_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, levels: Any
    ) -> None:
        """A local variable begins."""
        variable(state, instruction, context, address, size, stream, levels.control[FRAMES])

    @staticmethod
    def stack_free(state: State, address: int, size: int) -> None:
        """A local variable ends."""
        variable_ended(state, address, size)

    @staticmethod
    def global_init(state: State, object: int, address: int, size: int, stream: int) -> None:
        """An image was loaded."""
        global_variable(state, object, address, size, stream)

    @staticmethod
    def image_unload(state: State, image: int) -> None:
        """The globals of a library that was closed end."""
        unloaded(state, image)

    @staticmethod
    def external_call(state: State, instruction: int) -> None:
        """A call returned whose effects are not known."""
        called(state, instruction)

    @staticmethod
    def function_entry(state: State, function: int, call: int, stream: int) -> None:
        """A call opens."""
        entered(state, function, call, stream)

    @staticmethod
    def function_exit(state: State, stream: int) -> None:
        """It closes."""
        left(state, stream)

    @staticmethod
    def thread_create(state: State) -> None:
        """From now on two run beside one another."""
        state.control[THREADS] += 1

    @staticmethod
    def thread_exit(state: State) -> None:
        """One has ended."""
        state.control[THREADS] -= 1

    @staticmethod
    def signal_enter(state: State) -> None:
        """A handler runs, at an unknown place between the other accesses."""
        state.control[DISORDER] = 1

    @staticmethod
    def program_end(state: State) -> None:
        """The run is over."""
        state.control[ENDED] = 1
        state.control[OPEN_AT_END] = state.control[OPEN]

    def callbacks(self) -> dict[str, Any]:
        """Where stores have values, what is in memory is followed as well."""
        followed = {
            function.__name__: function for function in (load, store, heap_alloc, heap_free, stack_alloc, stack_free)
        }
        return super().callbacks() | (followed if stores_have_values(self.program) else {})

    def result(self, state: State) -> dict[str, Any]:
        """Errors, leaks, and how much was not decided."""
        found = found_errors(self.program, self.contexts, state)
        return without(found, [name.strip() for name in self.options.suppress.split(",") if name.strip()])

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Counts add; of an error the first occurrence of the first profile in order is told."""
        return {"result": merged([profile["result"] for profile in profiles])}


DISPLAY = Display(
    text="tracekit.render.memory_errors:errors_text",
    section="tracekit.render.html.memory_errors:section",
    heading="Errors of memory",
    failed="tracekit.render.memory_errors:has_errors",
    columns={
        "errors": (
            "kind instruction:instruction context:context object:made freed.instruction:instruction "
            "freed.context:context count size offset object_size"
        ),
        "leaks": "object:made blocks bytes allocated_by reach unsure",
    },
)
MODULE = MemoryErrors
