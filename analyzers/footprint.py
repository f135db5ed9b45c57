"""The working set over time: how much memory each part of the run touches, and how much of it for the first time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import (
    MOST_INTERVALS,
    CannotMergeError,
    Display,
    HashTable,
    Module,
    Shadow,
    changing,
    hash_table,
    inlined,
    interval_bits,
    interval_count,
    left_in_interval,
    option,
    row_of,
    shadow,
    used_rows,
)
from tracekit.schedule.kernels.time_slices import TimeSlices, next_slice
from tracekit.schedule.time_slices import axis_option, slice_length, time_slices

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


class TimedState(NamedTuple):
    """What each slice of the run's time has touched; threads come to slices in any order."""

    seen: HashTable  # a granule times SLICES, plus the number of the slice plus 1 (0: no time is known)
    recent: Any  # int64 (RECENT): keys of seen
    time_slices: TimeSlices
    accesses: Any  # int64 (MOST_INTERVALS + 1): those of no known time first


SLICES = 512
"""More than there are slices."""

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
    axis: str = axis_option()

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


def touch_timed(
    state: TimedState, instruction: int, address: int, size: int, stream: int, options: FootprintOptions
) -> None:
    """An access: note what it touches in its slice of time."""
    now = next_slice(state.time_slices, stream, instruction) + 1
    state.accesses[now] += 1
    if size > 0:
        low = address // options.granule
        for granule in range(low, (address + size - 1) // options.granule + 1):
            key = granule * SLICES + now
            if state.recent[granule & (RECENT - 1)] != key:
                state.recent[granule & (RECENT - 1)] = key
                row_of(state.seen, key)


class Footprint(Module):
    """One row for each slice of the run."""

    Options = FootprintOptions
    shard_by = "address"

    def __init__(self, program: Any, options: FootprintOptions) -> None:
        super().__init__(program, options)
        if options.axis == "seconds":
            self.wants_hand_overs = True
            self.shard_by, self.whole_because = "", "each thread's accesses are counted from its beginning"

    def callbacks(self) -> dict[str, Any]:
        """Those of the axis."""
        return dict.fromkeys(("load", "store"), touch_timed) if self.wants_hand_overs else super().callbacks()

    def range_callbacks(self) -> dict[str, Any]:
        """None where each access has a time."""
        return {} if self.wants_hand_overs else super().range_callbacks()

    def state(self) -> Any:
        """Nothing touched."""
        if self.wants_hand_overs:
            timed = time_slices(self.program, self.hand_overs, MOST_INTERVALS)
            recent = np.full(RECENT, -1)
            return TimedState(hash_table([]), recent, timed, np.zeros(MOST_INTERVALS + 1, np.int64))
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

    def reduce(self, states: Sequence[Any]) -> Any:
        """Each granule is one worker's."""
        if self.wants_hand_overs:
            return states[0]
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

    def combine(self, states: Sequence[Summary]) -> Any:
        """Their counts."""
        (made,) = states
        return self.state()._replace(**{name: getattr(made, name) for name in COUNTS})

    def result(self, state: Any) -> dict[str, Any]:
        """Slices in order of time."""
        if self.wants_hand_overs:
            return self._timed_result(state)
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

    def _timed_result(self, state: TimedState) -> dict[str, Any]:
        """A granule is new in the first slice that touches it, whichever thread replay delivers first."""
        unit, length = self.options.granule, slice_length(self.hand_overs, MOST_INTERVALS)
        keys = np.sort(used_rows(state.seen)["key"][1:].astype(np.int64))
        granules, slices = keys // SLICES, keys % SLICES - 1
        touched = np.bincount(slices[slices >= 0], minlength=MOST_INTERVALS)
        _, first = np.unique(granules[slices >= 0], return_index=True)
        new = np.bincount(slices[slices >= 0][first], minlength=MOST_INTERVALS)
        rows = [
            {
                "nanoseconds": number * length,
                "accesses": int(state.accesses[number + 1]),
                "touched_bytes": int(touched[number]) * unit,
                "new_bytes": int(new[number]) * unit,
                "total_bytes": int(new[: number + 1].sum()) * unit,
            }
            for number in range(MOST_INTERVALS)
            if state.accesses[number + 1]
        ]
        return {
            "slices": rows,
            "summary": {
                "bytes": len(np.unique(granules)) * unit,
                "largest_working_set": max((row["touched_bytes"] for row in rows), default=0),
                "nanoseconds_per_slice": length,
                "untimed_accesses": int(state.accesses[0]),
            },
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Refuse."""
        raise CannotMergeError("a slice is a stretch of one run, and runs differ in length")


DISPLAY = Display(
    columns={
        "slices": "first_access accesses touched_bytes new_bytes total_bytes",
    },
)
MODULE = Footprint
