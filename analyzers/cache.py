"""A simulator of set-associative caches: hits, misses and write-backs of each level, and what misses.

Each access touches the lines that it covers one after another, and a line is looked for level by level. Loads and
stores of the program are simulated, its instructions are not. Threads share all levels, or each core has some of its
own, which MESI keeps coherent; accesses come in the order of replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tracekit.caches import levels as caches
from tracekit.caches.kernels.fields import (
    INVALIDATIONS,
    PREFETCH,
    PREFETCHES,
    PRIVATE,
    STRIDE,
    TRANSFERS,
    WRITE_BACKS,
    WRITTEN,
)
from tracekit.caches.kernels.hierarchy import Hierarchy, prefetch, touch
from tracekit.caches.kernels.strides import STRIDES, next_line
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.module import (
    NODE,
    NONE,
    PHYSICAL,
    ContextNames,
    Display,
    Module,
    add,
    addresses_option,
    check_addresses,
    groups_option,
    in_page,
    inlined,
    instruction_key,
    join_rows,
    kernel,
    option,
    place_of,
)


class State(NamedTuple):
    """The caches, and touches by the level that had the line."""

    caches: Hierarchy
    shift: Any  # int64 (1): a line is 1 << shift bytes
    instructions: Any  # int64 (instructions + 1, levels + 2); in no level; copies that were taken from other cores
    groups: HashTable  # key: group << 8 | column of instructions; count
    unlocated: Any  # int64 (1): accesses whose physical address is not known
    strides: Any  # STRIDES (cores, instructions + 1), if they are asked for


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
    exclusive: bool = option(False, "A level holds no line of the levels before it; it gets what they drive out.")
    prefetch: str = option(
        "none",
        "What is fetched before it is asked for: behind a miss of the first level the next line; where an instruction's"
        " addresses advance by a stride, the line that is one ahead.",
        choices=caches.PREFETCHERS,
    )
    private: int = option(0, "Each core has the first N levels for itself, coherent by MESI.", "N")
    cores: int = option(8, "With private levels: how many there are; thread T runs on core T modulo N.", "N")
    seed: int = option(1, "Of random replacement.", "N")
    addresses: str = addresses_option()
    by: str = groups_option()
    stack: bool = option(False, "Local variables are objects, too.")

    def __post_init__(self) -> None:
        caches.check_rules(self.shape, self.replacement, self.seed)
        caches.check_cores(self.shape, self.private, self.cores)
        if self.exclusive and (self.inclusive or self.write == "through"):
            raise ValueError("exclusive levels are not inclusive, and their stores are written back.")
        check_addresses(self.addresses, self.shape[0].line)

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
            exclusive=self.exclusive,
            prefetch=self.prefetch,
            private=self.private,
            cores=self.cores,
            seed=self.seed,
        )


@inlined
def access(state: State, instruction: int, address: int, size: int, group: int, stream: int, store: bool) -> None:
    """An access: touch each of its lines, and count where it was."""
    if size <= 0:
        return
    row = min(instruction, state.instructions.shape[0] - 1)
    shift = state.shift[0]
    if state.caches.rules[PRIVATE] == 0:
        for number in range(address >> shift, ((address + size - 1) >> shift) + 1):
            found = touch(state.caches, 0, number, store)
            state.instructions[row, found] += 1
            state.groups.rows[row_of(state.groups, (group << 8) | found)].count += 1
    else:
        of_core(state, row, address, size, group, stream, store)
    if state.caches.rules[PREFETCH] == STRIDE and row < state.instructions.shape[0] - 1:
        ahead(state, row, address, stream)


@kernel
def of_core(state: State, row: int, address: int, size: int, group: int, stream: int, store: bool) -> None:
    """The same where cores have levels of their own: count what they take from one another, too."""
    shift, counts = state.shift[0], state.caches.counts
    memory = counts.shape[0] - 1
    for number in range(address >> shift, ((address + size - 1) >> shift) + 1):
        before = counts[memory, INVALIDATIONS]
        found = touch(state.caches, stream % state.caches.shape.shape[0], number, store)
        state.instructions[row, found] += 1
        state.groups.rows[row_of(state.groups, (group << 8) | found)].count += 1
        taken = counts[memory, INVALIDATIONS] - before
        if taken:
            state.instructions[row, memory + 1] += taken
            state.groups.rows[row_of(state.groups, (group << 8) | (memory + 1))].count += taken


@kernel
def ahead(state: State, row: int, address: int, stream: int) -> None:
    """Prefetch where the instruction goes on as it did."""
    core = stream % state.caches.shape.shape[0]
    line = next_line(state.strides, core, row, address, state.shift[0])
    if line != address >> state.shift[0]:
        caches = state.caches
        prefetch(caches.words, caches.ages, caches.shape, caches.rules, caches.random, caches.counts, core, line)


@kernel
def access_located(
    state: State, instruction: int, address: int, size: int, group: int, stream: int, store: bool, frames: Any
) -> None:
    """An access as one at its physical address; in each page, if there are several."""
    end = address + size
    while address < end:
        here = in_page(address, end)
        place = place_of(frames, stream, address, state.unlocated)
        access(state, instruction, place, here, group, stream, store)
        address += here


def load_located(state: State, instruction: int, address: int, size: int, group: int, stream: int, frames: Any) -> None:
    """A load, by its physical address."""
    access_located(state, instruction, address, size, group, stream, False, frames)


def store_located(
    state: State, instruction: int, address: int, size: int, group: int, stream: int, frames: Any
) -> None:
    """A store, by its physical address."""
    access_located(state, instruction, address, size, group, stream, True, frames)


class Cache(Module):
    """Counts by level, and rows by instruction and by what made the objects."""

    whole_because = "what caches hold follows from all accesses before"
    Options: ClassVar[type[Any]] = CacheOptions
    ends_with_window = True
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

    @property
    def is_physical(self) -> bool:
        """Whether physical addresses decide."""
        return getattr(self.options, "addresses", "") == PHYSICAL

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those that the option ``addresses`` wants."""
        return {"load": load_located, "store": store_located} if self.is_physical else super().callbacks()

    def state(self) -> State:
        """Empty caches."""
        shape, hierarchy = self.options.shape, self.options.hierarchy()
        strides = hierarchy.rules[PREFETCH] == STRIDE
        return State(
            hierarchy,
            np.array([shape[0].line.bit_length() - 1]),
            np.zeros((len(self.program.ops) + 1, len(shape) + 2), np.int64),
            hash_table([("count", "<i8")], 1 << 26),
            np.zeros(1, np.int64),
            np.zeros((len(hierarchy.shape), len(self.program.ops) + 1 if strides else 1), STRIDES),
        )

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, group: int, stream: int) -> None:
        """A load."""
        access(state, instruction, address, size, group, stream, False)

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, group: int, stream: int) -> None:
        """A store."""
        access(state, instruction, address, size, group, stream, True)

    def result(self, state: State) -> dict[str, Any]:
        """The levels, rows by source location, and objects by kind and site."""
        total, counts = state.instructions[:, :-1].sum(axis=0), state.caches.counts
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
            **(
                {"invalidations": int(counts[-1, INVALIDATIONS]), "transfers": int(counts[-1, TRANSFERS])}
                if self.options.private
                else {}
            ),
            **({"unlocated": int(state.unlocated[0])} if self.is_physical else {}),
        }
        return {"summary": summary, "levels": levels, **self.rows(state)}

    def rows(self, state: State) -> dict[str, Any]:
        """Touches and misses by instruction and by object."""
        instruction = ContextNames(self.program, np.zeros(0, NODE)).instruction
        instructions = [
            {
                "instruction": instruction(NONE if row == len(self.program.ops) else row),
                **self.counted(state.instructions[row]),
            }
            for row in np.flatnonzero(state.instructions.any(axis=1)).tolist()
        ]
        by_group: dict[int, Any] = {}
        for each in used_rows(state.groups)[1:]:
            group, level = int(each["key"]) >> 8, int(each["key"]) & 255
            by_group.setdefault(group, np.zeros(len(self.options.shape) + 2, np.int64))[level] = each["count"]
        objects = [
            {"object": self.groups.describe(group), **self.counted(by_group[group])}
            for group in self.groups.order()
            if group in by_group
        ]
        return {
            "instructions": sorted(instructions, key=lambda row: instruction_key(row["instruction"])),
            "objects": objects,
        }

    def counted(self, found: Any) -> dict[str, Any]:
        """The touches of a row of counts, how many of them missed each level, and what was taken from other cores."""
        by_level = found[:-1]
        return {
            "touches": int(by_level.sum()),
            "misses": [int(by_level[level:].sum()) for level in range(1, len(by_level))],
            **({"invalidations": int(found[-1])} if getattr(self.options, "private", 0) else {}),
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Counts add, as of runs one after another each of which finds the caches empty."""
        results = [profile["result"] for profile in profiles]
        is_private = "invalidations" in results[0]["summary"]
        is_physical = "unlocated" in results[0]["summary"]
        sums: dict[str, Callable[[Any, Any], Any]] = {
            "touches": add,
            "misses": added,
            **({"invalidations": add} if is_private else {}),
        }
        levels = [
            {**level, **{name: sum(result["levels"][place][name] for result in results) for name in cls.level_counts}}
            for place, level in enumerate(results[0]["levels"])
        ]
        totals = {
            name: sum(result["summary"][name] for result in results)
            for name in (
                *cls.totals,
                *(("invalidations", "transfers") if is_private else ()),
                *(("unlocated",) if is_physical else ()),
            )
        }
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


def added(first: list[int], second: list[int]) -> list[int]:
    """Misses of both."""
    return [one + other for one, other in zip(first, second, strict=True)]


DISPLAY = Display(
    text="tracekit.render.caches:cache_text",
    section="tracekit.render.html.caches:section",
    heading="Caches",
    columns={
        "levels": "name size ways hits misses write_backs prefetches",
        "instructions": "instruction:instruction touches misses",
        "objects": "object:object touches misses",
    },
)
MODULE = Cache
