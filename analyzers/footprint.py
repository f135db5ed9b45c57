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
NEWEST = np.uint32((1 << LAST) - 1)


class State(NamedTuple):
    """In which slice each granule was touched last, and counts by slice."""

    last: Shadow  # number of the slice plus 1, and above LAST that of the first; a word stands for a granule
    recent: Any  # int64 (RECENT): granules of which is known that the present slice has touched them
    bits: Any  # int64 (1): log2 of the accesses in a slice
    touched: Any  # int64 (MOST_INTERVALS + 1): granules
    new: Any  # those that no slice before has touched
    accesses: Any


COUNTS = ("touched", "new", "accesses")


class Summary(NamedTuple):
    """The same of a part of the run that is over."""

    granules: Any  # int64, ascending: those that were touched
    slices: Any  # uint32: as in State.last
    touched: Any
    new: Any
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
        sums = {name: sum(getattr(state, name) for state in states) for name in COUNTS}
        return states[0]._replace(**sums)

    def remains(self, state: State) -> Summary:
        """Of each granule the first and the last slice."""
        return Summary(*shadow.words(state.last), *(getattr(state, name) for name in COUNTS))

    def fold(self, first: Summary, then: Summary) -> Summary:
        """A granule that the later one touches first is not new if the earlier one had touched it."""
        place = np.minimum(np.searchsorted(first.granules, then.granules), max(len(first.granules) - 1, 0))
        again = first.granules[place] == then.granules if len(first.granules) else np.zeros(len(place), np.bool_)
        begun = (then.slices[again] >> LAST).astype(np.int64) - 1
        before = (first.slices[place[again]] & NEWEST).astype(np.int64) - 1
        counts = {name: getattr(first, name) + getattr(then, name) for name in COUNTS}
        np.subtract.at(counts["new"], begun, 1)
        np.subtract.at(counts["touched"], begun[before == begun], 1)
        first.slices[place[again]] = (first.slices[place[again]] & ~NEWEST) | (then.slices[again] & NEWEST)
        granules = np.concatenate([first.granules, then.granules[~again]])
        order = np.argsort(granules, kind="stable")
        return Summary(granules[order], np.concatenate([first.slices, then.slices[~again]])[order], **counts)

    def combine(self, states: Sequence[Summary]) -> State:
        """Their counts."""
        (made,) = states
        return self.state()._replace(**{name: getattr(made, name) for name in COUNTS})

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
