"""Communication between threads: bytes that one thread stored last and another one loads, by role, thread and line.

Every byte counts by itself, and has one last store, whichever thread made it, in the order of replay: that of the
events that order threads. Where nothing orders two threads (see `races`), that order is one of several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.communication.kernel import CELL, SUMS, State, forgotten, loaded, stored
from tracekit.communication.rows import joined, result_of
from tracekit.contexts.kernels.roles import entered
from tracekit.contexts.roles import empty_roles
from tracekit.module import Display, Module, hash_table, shadow


class Communication(Module):
    """Tables of threads, of bytes from role to role and thread to thread, and of pairs of instructions."""

    compute_bound = True

    def state(self) -> State:
        """Nothing is stored."""
        return State(
            shadow.empty(CELL),
            hash_table(SUMS),
            hash_table(SUMS),
            empty_roles(self.program),
        )

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, stream: int) -> None:
        """A store."""
        stored(state, instruction, address, size, stream)

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, stream: int) -> None:
        """A load."""
        loaded(state, instruction, address, size, stream)

    @staticmethod
    def function_entry(state: State, function: int, stream: int) -> None:
        """What a thread begins with is its role."""
        entered(state.roles, function, stream)

    @staticmethod
    def heap_alloc(state: State, address: int, size: int) -> None:
        """New memory."""
        forgotten(state, address, size)

    @staticmethod
    def stack_alloc(state: State, address: int, size: int) -> None:
        """A new local variable."""
        forgotten(state, address, size)

    @staticmethod
    def thread_memory(state: State, address: int, size: int) -> None:
        """The stack of a new thread."""
        forgotten(state, address, size)

    def result(self, state: State) -> dict[str, Any]:
        """The tables."""
        return result_of(self.program, state)

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """All numbers add; threads of one number are taken for one another."""
        return {"result": joined([profile["result"] for profile in profiles])}


DISPLAY = Display(
    text="tracekit.render.communication:communication_text",
    section="tracekit.render.html.communication:section",
    image="tracekit.render.communication:write_image",
    heading="Communication between threads",
    columns={
        "threads": "thread role",
        "roles": "source destination loads bytes",
        "by_thread": "source.thread source.role destination.thread destination.role loads bytes",
        "dependences": "source:instruction destination:instruction kind count bytes",
    },
)
MODULE = Communication
