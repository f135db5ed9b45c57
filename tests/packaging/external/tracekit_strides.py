"""Instructions whose addresses step evenly, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import Display, Module, inlined, option


class State(NamedTuple):
    """By instruction, int64: how often it ran, where last, its first step, whether another one followed."""

    count: Any
    last: Any
    step: Any
    bent: Any


@dataclass(frozen=True)
class StrideOptions:
    """Which instructions are looked at."""

    least: int = option(3, "Only instructions that ran so often.", "N")


@inlined
def follow(state: State, instruction: int, address: int) -> None:
    """One more address of an instruction."""
    step = address - state.last[instruction]
    if state.count[instruction] == 1:
        state.step[instruction] = step
    elif state.count[instruction] > 1 and step != state.step[instruction]:
        state.bent[instruction] = 1
    state.last[instruction] = address
    state.count[instruction] += 1


class Strides(Module):
    """One row for each instruction that steps evenly."""

    Options = StrideOptions

    def state(self) -> State:
        """Nothing has run."""
        return State(*(np.zeros(len(self.program.ops), np.int64) for _ in range(4)))

    @staticmethod
    def load(state: State, instruction: int, address: int) -> None:
        """A load."""
        if instruction < state.count.size:
            follow(state, instruction, address)

    @staticmethod
    def store(state: State, instruction: int, address: int) -> None:
        """A store."""
        if instruction < state.count.size:
            follow(state, instruction, address)

    def result(self, state: State) -> dict[str, Any]:
        """In the order of the program."""
        even = np.flatnonzero((state.count >= self.options.least) & (state.bent == 0))
        return {
            "instructions": [
                {
                    "instruction": self.program.instruction(row),
                    "count": int(state.count[row]),
                    "step": int(state.step[row]),
                }
                for row in even.tolist()
            ]
        }


DISPLAY = Display(
    text="tracekit_strides_display:strides_text",
    section="tracekit_strides_display:strides_section",
    heading="Even strides",
)
MODULE = Strides
