"""Bytes that each function reads and writes.

The line above is what `tracekit modules` prints. This file is a working example to change: docs/writing-modules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import Module, option


class State(NamedTuple):
    """What the callbacks count: bytes by instruction; the last row is for library code that no instruction called."""

    read: Any  # int64 (instructions + 1,)
    written: Any


@dataclass(frozen=True)
class TemplateNameOptions:
    """Options: each is a flag of `tracekit analyze` and an argument of `tracekit.analyze`."""

    least: int = option(1, "Leave out functions that move fewer bytes.", "BYTES")

    def __post_init__(self) -> None:
        if self.least < 0:
            raise ValueError(f"least is a number of bytes, not {self.least}.")


class TemplateName(Module):
    """One row for each function."""

    Options = TemplateNameOptions
    shard_by = "instruction"  # several workers may share the instructions; reduce joins what they found

    def state(self) -> State:
        """The state before the first event."""
        rows = len(self.program.ops) + 1
        return State(np.zeros(rows, np.int64), np.zeros(rows, np.int64))

    # Callbacks are compiled. Their names say which events they are called for, and their parameters which fields of
    # these are computed at all: `tracekit modules --events` lists both.
    @staticmethod
    def load(state: State, instruction: int, size: int) -> None:
        """A load."""
        state.read[min(instruction, state.read.size - 1)] += size

    @staticmethod
    def store(state: State, instruction: int, size: int) -> None:
        """A store."""
        state.written[min(instruction, state.written.size - 1)] += size

    def reduce(self, states: Sequence[State]) -> State:
        """What one worker would have counted."""
        return State(sum(state.read for state in states), sum(state.written for state in states))

    def result(self, state: State) -> dict[str, Any]:
        """The profile: plain values, in an order that depends on the trace alone."""
        functions: dict[str, list[int]] = {}
        for instruction in np.flatnonzero(state.read + state.written).tolist():
            moved = functions.setdefault(self._function(instruction), [0, 0])
            moved[0] += int(state.read[instruction])
            moved[1] += int(state.written[instruction])
        return {
            "functions": [
                {"function": name, "read": read, "written": written}
                for name, (read, written) in sorted(functions.items())
                if read + written >= self.options.least
            ]
        }

    def _function(self, instruction: int) -> str:
        if instruction == len(self.program.ops):
            return "(library)"
        return self.program.function_name(int(self.program.op_function[instruction]))


MODULE = TemplateName
