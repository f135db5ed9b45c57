"""Loads and stores of each instruction, and the bytes that they move: which lines of the source use memory most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import ENDLESS, NODE, NONE, ContextNames, Display, Module, add, instruction_key, join_rows


class State(NamedTuple):
    """By instruction; the last row is of library accesses while no instrumented call was open."""

    loads: Any  # int64
    stores: Any  # int64
    bytes: Any  # int64


class Accesses(Module):
    """One row for each instruction that ran."""

    shard_by = "instruction"

    def state(self) -> State:
        """Nothing yet."""
        return State(*(np.zeros(len(self.program.ops) + 1, np.int64) for _ in State._fields))

    @staticmethod
    def load(state: State, instruction: int, size: int) -> None:
        """A load."""
        row = min(instruction, state.loads.size - 1)
        state.loads[row] += 1
        state.bytes[row] += size

    @staticmethod
    def store(state: State, instruction: int, size: int) -> None:
        """A store."""
        row = min(instruction, state.loads.size - 1)
        state.stores[row] += 1
        state.bytes[row] += size

    @staticmethod
    def loads(state: State, instruction: int, size: int, count: int) -> None:
        """Loads of one instruction."""
        row = min(instruction, state.loads.size - 1)
        state.loads[row] += count
        state.bytes[row] += size * count

    @staticmethod
    def stores(state: State, instruction: int, size: int, count: int) -> None:
        """Stores of one instruction."""
        row = min(instruction, state.loads.size - 1)
        state.stores[row] += count
        state.bytes[row] += size * count

    @staticmethod
    def unordered(state: State) -> int:
        """Numbers add in any order."""
        return ENDLESS

    def reduce(self, states: Sequence[State]) -> State:
        """Numbers add."""
        return State(*(sum(columns) for columns in zip(*states)))

    def fold(self, first: State, then: State) -> State:
        """Numbers add."""
        return self.reduce([first, then])

    def result(self, state: State) -> dict[str, Any]:
        """Rows by source location."""
        instruction = ContextNames(self.program, np.zeros(0, NODE)).instruction
        rows = [
            {
                "instruction": instruction(NONE if row == len(self.program.ops) else row),
                "loads": int(state.loads[row]),
                "stores": int(state.stores[row]),
                "bytes": int(state.bytes[row]),
            }
            for row in np.flatnonzero(state.loads + state.stores).tolist()
        ]
        return with_summary(sorted(rows, key=lambda row: instruction_key(row["instruction"])))

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """All numbers add."""
        tables = [profile["result"]["instructions"] for profile in profiles]
        rows = join_rows(
            tables,
            ("instruction",),
            dict.fromkeys(("loads", "stores", "bytes"), add),
            order=lambda row: instruction_key(row["instruction"]),
        )
        return {"result": with_summary(rows)}


def with_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows, and how many loads and stores they come to."""
    return {"instructions": rows, "summary": {kind: sum(row[kind] for row in rows) for kind in ("loads", "stores")}}


DISPLAY = Display(
    greatest="bytes",
    notes="accesses",
    on_page=True,
    columns={
        "instructions": "instruction:instruction loads stores bytes",
    },
)
MODULE = Accesses
