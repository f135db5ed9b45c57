"""A simulator of set-associative caches: hits, misses and write-backs of each level, and what misses.

Each access touches the lines that it covers one after another, and a line is looked for level by level. Loads and
stores of the program are simulated, its instructions are not. Threads share all levels, in the order of replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tracekit.caches import levels as caches
from tracekit.caches.kernels.hierarchy import PREFETCHES, WRITE_BACKS, WRITTEN, Hierarchy, touch
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.module import (
    NODE,
    NONE,
    ContextNames,
    Display,
    Module,
    add,
    groups_option,
    inlined,
    instruction_key,
    join_rows,
    option,
)


class State(NamedTuple):
    """The caches, and touches by the level that had the line."""

    caches: Hierarchy
    shift: Any  # int64 (1): a line is 1 << shift bytes
    instructions: Any  # int64 (instructions + 1, levels + 1); the last column: in no level
    groups: HashTable  # key: group << 8 | level; count


@dataclass(frozen=True)
class CacheOptions:
    """The caches, and what objects are."""

    levels: str = option(
        "32K:8:64,1M:16:64,32M:16:64",
        "The caches, the first level first; all have lines of the same size.",
        "SIZE:WAYS:LINE,...",
    )
    replacement: str = option("lru", "Which line of a full set goes.", choices=caches.POLICIES)
    write: str = option(
        "back",
        "Stores stay in the first level until their line has to go, and allocate; or go through to memory, and do not.",
        choices=("back", "through"),
    )
    inclusive: bool = option(False, "A level holds all lines of the levels before it.")
    prefetch: str = option(
        "none", "Whether a miss of the first level fetches the next line, too.", choices=("none", "next-line")
    )
    seed: int = option(1, "Of random replacement.", "N")
    by: str = groups_option()
    stack: bool = option(False, "Local variables are objects, too.")

    def __post_init__(self) -> None:
        caches.check_rules(self.shape, self.replacement, self.seed)

    @cached_property
    def shape(self) -> list[caches.Level]:
        """The levels."""
        return caches.parsed(self.levels)

    def hierarchy(self) -> Hierarchy:
        """Empty caches."""
        return caches.empty(
            self.shape,
            self.replacement,
            through=self.write == "through",
            inclusive=self.inclusive,
            prefetch=self.prefetch == "next-line",
            seed=self.seed,
        )


@inlined
def access(state: State, instruction: int, address: int, size: int, group: int, store: bool) -> None:
    """An access: touch each of its lines, and count where it was."""
    if size <= 0:
        return
    row = min(instruction, state.instructions.shape[0] - 1)
    shift = state.shift[0]
    for number in range(address >> shift, ((address + size - 1) >> shift) + 1):
        found = touch(state.caches, number, store)
        state.instructions[row, found] += 1
        state.groups.rows[row_of(state.groups, (group << 8) | found)].count += 1


class Cache(Module):
    """Counts by level, and rows by instruction and by what made the objects."""

    whole_because = "what caches hold follows from all accesses before"
    Options: ClassVar[type[Any]] = CacheOptions
    level_counts: tuple[str, ...] = ("hits", "misses", "write_backs", "prefetches")
    totals: tuple[str, ...] = ("touches", "memory_writes")

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.groups_by = options.by
        self.stack_objects = options.stack

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """They do: objects are told apart where there are any."""
        return True

    def state(self) -> State:
        """Empty caches."""
        shape = self.options.shape
        return State(
            self.options.hierarchy(),
            np.array([shape[0].line.bit_length() - 1]),
            np.zeros((len(self.program.ops) + 1, len(shape) + 1), np.int64),
            hash_table([("count", "<i8")], 1 << 26),
        )

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, group: int) -> None:
        """A load."""
        access(state, instruction, address, size, group, False)

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, group: int) -> None:
        """A store."""
        access(state, instruction, address, size, group, True)

    def result(self, state: State) -> dict[str, Any]:
        """The levels, rows by source location, and objects by kind and site."""
        total, counts = state.instructions.sum(axis=0), state.caches.counts
        levels = [
            {
                "name": f"L{number + 1}",
                "size": level.size,
                "ways": level.ways,
                "hits": int(total[number]),
                "misses": int(total[number + 1 :].sum()),
                "write_backs": int(counts[number, WRITE_BACKS]),
                "prefetches": int(counts[number, PREFETCHES]),
            }
            for number, level in enumerate(self.options.shape)
        ]
        summary = {
            "line": self.options.shape[0].line,
            "touches": int(total.sum()),
            "memory_writes": int(counts[-1, WRITTEN]),
        }
        return {"summary": summary, "levels": levels, **self.rows(state)}

    def rows(self, state: State) -> dict[str, Any]:
        """Touches and misses by instruction and by object."""
        instruction = ContextNames(self.program, np.zeros(0, NODE)).instruction
        instructions = [
            {
                "instruction": instruction(NONE if row == len(self.program.ops) else row),
                **counted(state.instructions[row]),
            }
            for row in np.flatnonzero(state.instructions.any(axis=1)).tolist()
        ]
        by_group: dict[int, Any] = {}
        for each in used_rows(state.groups)[1:]:
            group, level = int(each["key"]) >> 8, int(each["key"]) & 255
            by_group.setdefault(group, np.zeros(len(self.options.shape) + 1, np.int64))[level] = each["count"]
        objects = [
            {"object": self.groups.describe(group), **counted(by_group[group])}
            for group in self.groups.order()
            if group in by_group
        ]
        return {
            "instructions": sorted(instructions, key=lambda row: instruction_key(row["instruction"])),
            "objects": objects,
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Counts add, as of runs one after another each of which finds the caches empty."""
        results = [profile["result"] for profile in profiles]
        sums: dict[str, Callable[[Any, Any], Any]] = {"touches": add, "misses": added}
        levels = [
            {**level, **{name: sum(result["levels"][place][name] for result in results) for name in cls.level_counts}}
            for place, level in enumerate(results[0]["levels"])
        ]
        totals = {name: sum(result["summary"][name] for result in results) for name in cls.totals}
        return {
            "result": {
                "summary": {**results[0]["summary"], **totals},
                "levels": levels,
                "instructions": join_rows(
                    [result["instructions"] for result in results],
                    ("instruction",),
                    sums,
                    order=lambda row: instruction_key(row["instruction"]),
                ),
                "objects": join_rows([result["objects"] for result in results], ("object",), sums),
            }
        }


def counted(found: Any) -> dict[str, Any]:
    """The touches of a row of counts by level, and how many of them missed each level."""
    return {"touches": int(found.sum()), "misses": [int(found[level:].sum()) for level in range(1, len(found))]}


def added(first: list[int], second: list[int]) -> list[int]:
    """Misses of both."""
    return [one + other for one, other in zip(first, second, strict=True)]


DISPLAY = Display(
    text="tracekit.render.caches:cache_text", section="tracekit.render.html.caches:section", heading="Caches"
)
MODULE = Cache
