"""The working set over time: how much memory each part of the run touches, and how much of it for the first time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import (
    MOST_INTERVALS,
    CannotMergeError,
    Module,
    Shadow,
    changing,
    inlined,
    interval_bits,
    interval_count,
    left_in_interval,
    option,
    shadow,
)

RECENT = 512
LAST = 16
"""Bits of the number of a slice."""


class State(NamedTuple):
    """In which slice each granule was touched last, and counts by slice."""

    last: Shadow  # number of the slice plus 1, and above LAST that of the first; a word stands for a granule
    recent: Any  # int64 (RECENT): granules of which is known that the present slice has touched them
    bits: Any  # int64 (1): log2 of the accesses in a slice
    touched: Any  # int64 (MOST_INTERVALS + 1): granules
    new: Any  # those that no slice before has touched
    accesses: Any


@dataclass(frozen=True)
class FootprintOptions:
    """What is counted."""

    granule: int = option(64, "Bytes of the unit that is counted: 64 for cache lines, 4096 for pages.", "BYTES")

    def __post_init__(self) -> None:
        if self.granule < 1 or self.granule & (self.granule - 1) or self.granule > 1 << 30:
            raise ValueError(f"granule is a power of two of at most 2**30, not {self.granule}.")


@inlined
def mark(state: State, low: int, count: int, now: int) -> None:
    """Granules are touched in a slice."""
    for row in changing(state.last, low << 3, count << 3):
        known = np.int64(state.last.rows[row])
        if known & ((1 << LAST) - 1) != now + 1:
            state.touched[now] += 1
            if known == 0:
                state.new[now] += 1
                known = np.int64((now + 1) << LAST)
            state.last.rows[row] = (known >> LAST << LAST) | (now + 1)


@inlined
def touch(state: State, address: int, size: int, time: int, first: int, options: FootprintOptions) -> None:
    """An access: note what it touches for the first time in its slice."""
    now = min(time >> state.bits[0], MOST_INTERVALS)
    state.accesses[now] += first
    if size > 0:
        low = address // options.granule
        count = (address + size - 1) // options.granule - low + 1
        if count == 1:
            known = (low << 10) + now + 1
            if state.recent[low & (RECENT - 1)] == known:
                return
            state.recent[low & (RECENT - 1)] = known
        mark(state, low, count, now)


@inlined
def touch_all(
    state: State, address: int, size: int, step: int, count: int, time: int, options: FootprintOptions
) -> None:
    """Accesses of one slice: note what they touch for the first time in it."""
    now = min(time >> state.bits[0], MOST_INTERVALS)
    state.accesses[now] += count
    reach = step * (count - 1)
    if abs(step) <= options.granule:  # no granule between is left out
        low = (address + min(reach, 0)) // options.granule
        mark(state, low, (address + max(reach, 0) + size - 1) // options.granule - low + 1, now)
    else:
        for _ in range(count):
            low = address // options.granule
            mark(state, low, (address + size - 1) // options.granule - low + 1, now)
            address += step


class Footprint(Module):
    """One row for each slice of the run."""

    Options = FootprintOptions
    shard_by = "address"

    def state(self) -> State:
        """Nothing touched."""
        counts = (np.zeros(MOST_INTERVALS + 1, np.int64) for _ in range(3))
        bits = np.array([interval_bits(self.accesses)])
        return State(shadow.empty(np.uint32), np.zeros(RECENT, np.int64), bits, *counts)

    @staticmethod
    def load(state: State, address: int, size: int, time: int, first: int, options: FootprintOptions) -> None:
        """A load."""
        touch(state, address, size, time, first, options)

    @staticmethod
    def store(state: State, address: int, size: int, time: int, first: int, options: FootprintOptions) -> None:
        """A store."""
        touch(state, address, size, time, first, options)

    @staticmethod
    def loads(
        state: State, address: int, size: int, step: int, count: int, time: int, options: FootprintOptions
    ) -> None:
        """Loads of one instruction."""
        touch_all(state, address, size, step, count, time, options)

    @staticmethod
    def stores(
        state: State, address: int, size: int, step: int, count: int, time: int, options: FootprintOptions
    ) -> None:
        """Stores of one instruction."""
        touch_all(state, address, size, step, count, time, options)

    @staticmethod
    def unordered(state: State, time: int) -> int:
        """Those of one slice."""
        return left_in_interval(time, state.bits[0])

    def reduce(self, states: Sequence[State]) -> State:
        """Each granule is one worker's."""
        names = ("touched", "new", "accesses")
        sums = {name: sum(getattr(state, name) for state in states) for name in names}
        return states[0]._replace(**sums)

    def combine(self, states: Sequence[State]) -> State:
        """A granule that a stretch touches first is not new if one before had touched it."""
        made = self.reduce(states)
        slices: Any
        known, slices = shadow.words(states[0].last)
        slices &= (1 << LAST) - 1
        for state in states[1:]:
            rows: Any
            numbers, rows = shadow.words(state.last)
            place = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
            again = known[place] == numbers if len(known) else np.zeros(len(numbers), np.bool_)
            begun = (rows >> LAST).astype(np.int64) - 1
            before = slices[place[again]].astype(np.int64) - 1
            np.subtract.at(made.new, begun[again], 1)
            np.subtract.at(made.touched, begun[again][before == begun[again]], 1)
            slices[place[again]] = rows[again] & ((1 << LAST) - 1)
            order = np.argsort(np.concatenate([known, numbers[~again]]), kind="stable")
            known = np.concatenate([known, numbers[~again]])[order]
            slices = np.concatenate([slices, rows[~again] & ((1 << LAST) - 1)])[order]
        return made

    def result(self, state: State) -> dict[str, Any]:
        """Slices in order of time."""
        unit, rows, total = self.options.granule, [], 0
        for number in range(min(interval_count(self.accesses), MOST_INTERVALS) + 1):
            if state.accesses[number]:
                total += int(state.new[number])
                rows.append(
                    {
                        "first_access": number << int(state.bits[0]),
                        "accesses": int(state.accesses[number]),
                        "touched_bytes": int(state.touched[number]) * unit,
                        "new_bytes": int(state.new[number]) * unit,
                        "total_bytes": total * unit,
                    }
                )
        return {
            "slices": rows,
            "summary": {
                "bytes": total * unit,
                "largest_working_set": max((row["touched_bytes"] for row in rows), default=0),
            },
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Refuse."""
        raise CannotMergeError("a slice is a stretch of one run, and runs differ in length")


MODULE = Footprint
