"""Exact reuse distances, and miss-ratio curves: how often a cache of any size would miss.

The reuse distance of an access is the number of other lines of memory that were touched since its line was touched
last (Mattson et al., Evaluation techniques for storage hierarchies, 1970): a fully associative cache with LRU
replacement misses where the distance is at least its number of lines, and where a line is touched for the first time.
An access that touches several lines counts in each. Threads share one cache, in the order of replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tracekit import sizes
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import Shadow
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
from tracekit.reuse import curve
from tracekit.reuse.kernels.distances import LINES, Slots, touch
from tracekit.reuse.state import no_lines, no_slots


class State(NamedTuple):
    """The lines in the order of their last accesses, and counts by step of distance (tracekit/reuse/curve.py)."""

    slots: Slots
    last: Shadow
    steps: Any  # int64: capacities in lines, ascending
    octaves: Any  # int64 (65): by the bits of a distance, the first step that can be above it
    instructions: Any  # int64 (instructions + 1, steps + 2)
    groups: HashTable  # key: group << 8 | step; count
    unlocated: Any  # int64 (1): accesses whose physical address is not known


@dataclass(frozen=True)
class ReuseOptions:
    """What a line is, and what is told of it."""

    line: int = option(64, "Bytes of a line, a power of two; 4096 for pages.", "BYTES")
    sizes: str = option("32K,1M,32M", "Sizes of caches whose misses each row tells, at most eight.", "SIZE,...")
    addresses: str = addresses_option()
    by: str = groups_option()
    stack: bool = option(False, "Local variables are objects, too.")

    def __post_init__(self) -> None:
        if self.line < 1 or self.line & (self.line - 1) or self.line > 1 << 30:
            raise ValueError(f"line is a power of two of at most 2**30, not {self.line}.")
        if len(self.lines) > 8 or len(set(self.lines)) < len(self.lines):
            raise ValueError("sizes are at most eight, all different.")
        check_addresses(self.addresses, self.line)

    @cached_property
    def lines(self) -> list[int]:
        """The sizes in lines."""
        found = [sizes.parsed(size) for size in self.sizes.split(",")]
        for size in found:
            if size % self.line or size // self.line > curve.MOST:
                raise ValueError(f"a size is a multiple of the line and at most 2**31 lines, not {sizes.shown(size)}.")
        return [size // self.line for size in sorted(found)]


@inlined
def step_of(state: State, distance: int) -> Any:
    """How many of the steps are at most the distance."""
    bits = 0
    if distance >= 1 << 16:
        bits = 16
    if (distance >> bits) >= 1 << 8:
        bits += 8
    if (distance >> bits) >= 1 << 4:
        bits += 4
    if (distance >> bits) >= 1 << 2:
        bits += 2
    if (distance >> bits) >= 2:
        bits += 1
    step = state.octaves[bits]
    while step < state.steps.size and state.steps[step] <= distance:
        step += 1
    return step


@inlined
def access(state: State, instruction: int, address: int, size: int, group: int, line: int) -> None:
    """An access: count the distance of each line that it touches."""
    if size <= 0:
        return
    row = min(instruction, state.instructions.shape[0] - 1)
    for number in range(address // line, (address + size - 1) // line + 1):
        distance = touch(state.slots, state.last, number)
        step = 0
        if distance < 0:
            step = state.steps.size + 1
        elif distance > 0:
            step = step_of(state, distance)
        state.instructions[row, step] += 1
        state.groups.rows[row_of(state.groups, (group << 8) | step)].count += 1


@kernel
def access_located(
    state: State, instruction: int, address: int, size: int, group: int, stream: int, line: int, frames: Any
) -> None:
    """An access as one at its physical address; in each page, if there are several."""
    end = address + size
    while address < end:
        here = in_page(address, end)
        access(state, instruction, place_of(frames, stream, address, state.unlocated), here, group, line)
        address += here


def located(
    state: State,
    instruction: int,
    address: int,
    size: int,
    group: int,
    stream: int,
    options: ReuseOptions,
    frames: Any,
) -> None:
    """A load or store, by its physical address."""
    access_located(state, instruction, address, size, group, stream, options.line, frames)


class Reuse(Module):
    """A curve, and rows by instruction and by what made the objects."""

    whole_because = "a distance may reach back to the first access"
    Options = ReuseOptions
    ends_with_window = True

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
        return bool(self.options.addresses == PHYSICAL)

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those that the option ``addresses`` wants."""
        return {"load": located, "store": located} if self.is_physical else super().callbacks()

    def state(self) -> State:
        """Nothing touched."""
        steps = curve.steps(self.options.lines)
        return State(
            no_slots(),
            no_lines(),
            steps,
            curve.octaves(steps),
            np.zeros((len(self.program.ops) + 1, len(steps) + 2), np.int64),
            hash_table([("count", "<i8")], 1 << 26),
            np.zeros(1, np.int64),
        )

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, group: int, options: ReuseOptions) -> None:
        """A load."""
        access(state, instruction, address, size, group, options.line)

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, group: int, options: ReuseOptions) -> None:
        """A store."""
        access(state, instruction, address, size, group, options.line)

    def result(self, state: State) -> dict[str, Any]:
        """Rows by source location, and objects by kind and site."""
        lines = self.options.lines
        instruction = ContextNames(self.program, np.zeros(0, NODE)).instruction
        instructions = [
            {
                "instruction": instruction(NONE if row == len(self.program.ops) else row),
                **curve.row(state.steps, state.instructions[row], lines),
            }
            for row in np.flatnonzero(state.instructions.any(axis=1)).tolist()
        ]
        by_group: dict[int, Any] = {}
        for each in used_rows(state.groups)[1:]:
            group, step = int(each["key"]) >> 8, int(each["key"]) & 255
            by_group.setdefault(group, np.zeros(len(state.steps) + 2, np.int64))[step] = each["count"]
        objects = [
            {"object": self.groups.describe(group), **curve.row(state.steps, by_group[group], lines)}
            for group in self.groups.order()
            if group in by_group
        ]
        total = state.instructions.sum(axis=0)
        return {
            "summary": {
                "line": self.options.line,
                "sizes": [size * self.options.line for size in lines],
                "touches": int(total.sum()),
                "lines": int(state.slots.control[LINES]),
                **({"unlocated": int(state.unlocated[0])} if self.is_physical else {}),
            },
            "curve": curve.points(state.steps, total, self.options.line),
            "instructions": sorted(instructions, key=lambda row: instruction_key(row["instruction"])),
            "objects": objects,
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Counts add, as of runs one after another each of which finds the cache empty."""
        results = [profile["result"] for profile in profiles]
        sums: dict[str, Callable[[Any, Any], Any]] = {
            "touches": add,
            "cold": add,
            "misses": curve.added,
            "distances": curve.added_steps,
        }
        instructions = join_rows(
            [result["instructions"] for result in results],
            ("instruction",),
            sums,
            order=lambda row: instruction_key(row["instruction"]),
        )
        objects = join_rows([result["objects"] for result in results], ("object",), sums)
        names = [name for name in ("touches", "lines", "unlocated") if name in results[0]["summary"]]
        summary = {
            **results[0]["summary"],
            **{name: sum(result["summary"][name] for result in results) for name in names},
        }
        return {
            "result": {
                "summary": summary,
                "curve": curve.joined([(result["curve"], result["summary"]["touches"]) for result in results]),
                "instructions": instructions,
                "objects": objects,
            }
        }


DISPLAY = Display(
    text="tracekit.render.reuse:reuse_text",
    section="tracekit.render.html.reuse:section",
    heading="Reuse distances",
    columns={
        "curve": "size misses miss_ratio",
        "instructions": "instruction:instruction touches cold misses distances",
        "objects": "object:object touches cold misses distances",
    },
)
MODULE = Reuse
