"""Reads and writes over the address space and over time: where a program works, and when.

An access counts once in every row of memory that it touches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import (
    MOST_INTERVALS,
    Arena,
    CannotMergeError,
    Display,
    Module,
    Shadow,
    arena,
    changing,
    inlined,
    interval_bits,
    interval_count,
    kernel,
    left_in_interval,
    option,
    shadow,
    take,
    taken,
)
from tracekit.schedule.kernels.time_slices import UNTIMED, TimeSlices, next_slice
from tracekit.schedule.time_slices import axis_option, slice_length, time_slices

CELL = np.dtype([("slice", "u4"), ("loads", "u4"), ("stores", "u4"), ("listed", "u4")])
NOTED = np.dtype([("granule", "i8"), ("slice", "i8"), ("loads", "i8"), ("stores", "i8")])


RECENT = 64


class State(NamedTuple):
    """What each granule has seen in its latest slice; what it saw before is in ``past``."""

    recent: Any  # int64 (RECENT, 2): granules plus 1, and their cells, of those that were touched lately
    cells: Shadow  # CELL; a word of the shadow stands for a granule; slice is its number plus 1
    past: Arena  # NOTED
    granules: Arena  # int64: those that were touched
    bits: Any  # int64 (1): log2 of the accesses in a slice


class TimedState(NamedTuple):
    """The same, where slices are of the run's time."""

    recent: Any
    cells: Shadow
    past: Arena
    granules: Arena
    time_slices: TimeSlices
    untimed: Any  # int64 (1): accesses of which no time is known


@dataclass(frozen=True)
class HeatmapOptions:
    """How fine the map is."""

    granule: int = option(4096, "Least bytes of memory in a row.", "BYTES")
    axis: str = axis_option()
    rows: int = option(64, "Rows at most; they grow by powers of two until they are so few.", "N")

    def __post_init__(self) -> None:
        if self.granule < 1 or self.granule & (self.granule - 1) or self.granule > 1 << 30:
            raise ValueError(f"granule is a power of two of at most 2**30, not {self.granule}.")
        if self.rows < 1:
            raise ValueError(f"rows is at least 1, not {self.rows}.")


@inlined
def note(state: State, granule: int, cell: Any) -> None:
    """Keep what a granule has seen in a slice."""
    row = state.past.rows[take(state.past, 1)]
    row.granule = granule
    row.slice = cell.slice - 1
    row.loads = cell.loads
    row.stores = cell.stores


@inlined
def count_in(state: State, number: int, granule: int, now: int, loads: int, stores: int) -> None:
    """Count in a granule, whose cell has this number."""
    cell = state.cells.rows[number]
    if cell.slice != now:
        if cell.slice == 0:
            state.granules.rows[take(state.granules, 1)] = granule
        else:
            note(state, granule, cell)
        cell.slice = now
        cell.loads = 0
        cell.stores = 0
    cell.loads += loads
    cell.stores += stores


@inlined
def touch(state: State, address: int, size: int, time: int, loads: int, stores: int, options: HeatmapOptions) -> None:
    """An access: count it in every granule that it touches."""
    touch_in(state, address, size, min(time >> state.bits[0], MOST_INTERVALS) + 1, loads, stores, options)


@inlined
def touch_in(state: Any, address: int, size: int, now: int, loads: int, stores: int, options: HeatmapOptions) -> None:
    """An access in a slice, whose number plus 1 is `now`."""
    if size <= 0:
        return
    granule = address // options.granule
    count = (address + size - 1) // options.granule - granule + 1
    recent = state.recent[granule & (RECENT - 1)]
    if count == 1 and recent[0] == granule + 1:
        cell = state.cells.rows[np.uint64(recent[1])]
        if cell.slice == now:
            cell.loads += loads
            cell.stores += stores
            return
    for number in changing(state.cells, granule << 3, count << 3):
        count_in(state, number, granule, now, loads, stores)
        recent[0] = granule + 1
        recent[1] = number
        granule += 1


@inlined
def touch_timed(
    state: TimedState,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    loads: int,
    stores: int,
    options: HeatmapOptions,
) -> None:
    """An access whose slice is one of the run's time, if that is known."""
    now = next_slice(state.time_slices, stream, instruction)
    if now == UNTIMED:
        state.untimed[0] += 1
    else:
        touch_in(state, address, size, now + 1, loads, stores, options)


def load_timed(
    state: TimedState, instruction: int, address: int, size: int, stream: int, options: HeatmapOptions
) -> None:
    """A load, in its slice of time."""
    touch_timed(state, instruction, address, size, stream, 1, 0, options)


def store_timed(
    state: TimedState, instruction: int, address: int, size: int, stream: int, options: HeatmapOptions
) -> None:
    """A store, in its slice of time."""
    touch_timed(state, instruction, address, size, stream, 0, 1, options)


@inlined
def touch_all(
    state: State,
    address: int,
    size: int,
    step: int,
    count: int,
    time: int,
    stores: int,
    options: HeatmapOptions,
) -> None:
    """Accesses of one slice, all loads or all `stores`: count each in every granule that it touches."""
    now = min(time >> state.bits[0], MOST_INTERVALS) + 1
    if step < 0:  # the other way round
        address += step * (count - 1)
        step = -step
    granule = address // options.granule
    if step <= options.granule:  # no granule between is left out
        granules = (address + step * (count - 1) + size - 1) // options.granule - granule + 1
        for number in changing(state.cells, granule << 3, granules << 3):
            start = granule * options.granule - address
            touching = count
            if step > 0:
                first = max((start - size) // step + 1, 0)
                touching = min((start + options.granule - 1) // step, count - 1) - first + 1
            count_in(state, number, granule, now, touching * (1 - stores), touching * stores)
            granule += 1
    else:
        for _ in range(count):
            granule = address // options.granule
            granules = (address + size - 1) // options.granule - granule + 1
            for number in changing(state.cells, granule << 3, granules << 3):
                count_in(state, number, granule, now, 1 - stores, stores)
                granule += 1
            address += step


@kernel
def finish(state: State, granules: Any) -> None:
    """Note what `granules` have seen in their latest slice."""
    for granule in granules:
        for number in changing(state.cells, granule << 3, 8):
            note(state, granule, state.cells.rows[number])


def once(noted: Any) -> Any:
    """What was noted, each slice of a granule once."""
    order = np.lexsort((noted["slice"], noted["granule"]))
    rows = noted[order]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (rows["granule"][1:] != rows["granule"][:-1]) | (rows["slice"][1:] != rows["slice"][:-1])
    first = np.flatnonzero(is_first)
    made = rows[first]
    for name in ("loads", "stores"):
        made[name] = np.add.reduceat(rows[name], first) if len(first) else rows[name]
    return made


class Heatmap(Module):
    """A table of rows of memory, each with its loads and stores in every slice of the run."""

    Options = HeatmapOptions
    shard_by = "address"

    def __init__(self, program: Any, options: HeatmapOptions) -> None:
        super().__init__(program, options)
        if options.axis == "seconds":
            self.wants_hand_overs = True
            self.shard_by, self.whole_because = "", "each thread's accesses are counted from its beginning"

    def callbacks(self) -> dict[str, Any]:
        """Those of the axis."""
        return {"load": load_timed, "store": store_timed} if self.wants_hand_overs else super().callbacks()

    def range_callbacks(self) -> dict[str, Any]:
        """None where each access has a time."""
        return {} if self.wants_hand_overs else super().range_callbacks()

    def state(self) -> Any:
        """Nothing touched."""
        touched = (np.zeros((RECENT, 2), np.int64), shadow.empty(CELL), arena(NOTED), arena(np.int64))
        if self.wants_hand_overs:
            timed = time_slices(self.program, self.hand_overs, MOST_INTERVALS)
            return TimedState(*touched, timed, np.zeros(1, np.int64))
        return State(*touched, np.array([interval_bits(self.accesses)]))

    @staticmethod
    def load(state: State, address: int, size: int, time: int, options: HeatmapOptions) -> None:
        """A load."""
        touch(state, address, size, time, 1, 0, options)

    @staticmethod
    def store(state: State, address: int, size: int, time: int, options: HeatmapOptions) -> None:
        """A store."""
        touch(state, address, size, time, 0, 1, options)

    @staticmethod
    def loads(state: State, address: int, size: int, step: int, count: int, time: int, options: HeatmapOptions) -> None:
        """Loads of one instruction."""
        touch_all(state, address, size, step, count, time, 0, options)

    @staticmethod
    def stores(
        state: State, address: int, size: int, step: int, count: int, time: int, options: HeatmapOptions
    ) -> None:
        """Stores of one instruction."""
        touch_all(state, address, size, step, count, time, 1, options)

    @staticmethod
    def unordered(state: State, time: int) -> int:
        """Those of one slice."""
        return left_in_interval(time, state.bits[0])

    def reduce(self, states: Sequence[Any]) -> Any:
        """All that the workers noted, NOTED; each granule is one worker's, but for large ones."""
        if self.wants_hand_overs:
            self._untimed = int(states[0].untimed[0])
        for state in states:
            finish(state, taken(state.granules))
        return np.concatenate([taken(state.past) for state in states])

    def remains(self, state: State) -> Any:
        """All that was noted."""
        return self.reduce([state])

    def fold(self, first: Any, then: Any) -> Any:
        """What both have of one granule and slice adds."""
        return once(np.concatenate([first, then]))

    def combine(self, states: Sequence[Any]) -> Any:
        """All that was noted."""
        return np.concatenate(states)

    def result(self, state: Any) -> dict[str, Any]:
        """Rows by address; ``loads`` and ``stores`` have a number for each slice."""
        slices = min(interval_count(self.accesses), MOST_INTERVALS + 1)
        said = {"accesses_per_slice": 1 << interval_bits(self.accesses)}
        if self.wants_hand_overs:
            slices = MOST_INTERVALS
            length = slice_length(self.hand_overs, MOST_INTERVALS)
            said = {"nanoseconds_per_slice": length, "untimed_accesses": self._untimed}
        bytes_per_row, starts, row_of = self._rows(state["granule"])
        shape = (len(starts), slices)
        counts = {}
        for name in ("loads", "stores"):
            counts[name] = np.zeros(shape, np.int64)
            np.add.at(counts[name], (row_of, np.minimum(state["slice"], slices - 1)), state[name])
        rows = [
            {"start": f"{start * bytes_per_row:#x}", "loads": loads, "stores": stores}
            for start, loads, stores in zip(starts.tolist(), counts["loads"].tolist(), counts["stores"].tolist())
        ]
        return {
            "rows": rows,
            "summary": {
                "bytes_per_row": bytes_per_row,
                "slices": slices,
                **said,
            },
        }

    def _rows(self, granules: Any) -> tuple[int, Any, Any]:
        """Bytes in a row, the rows that there are (their addresses divided by that), and the row of each note."""
        factor = 0
        while True:
            starts, row_of = np.unique(granules >> factor, return_inverse=True)
            if len(starts) <= self.options.rows:
                return self.options.granule << factor, starts, row_of
            factor += 1

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Refuse."""
        raise CannotMergeError("each run has addresses and times of its own")


DISPLAY = Display(
    text="tracekit.render.heatmap:heatmap_text",
    section="tracekit.render.html.heatmap:section",
    heading="Heat map",
    image="tracekit.render.heatmap:write_image",
    rank=-1,
    on_page=True,
    columns={
        "rows": "start loads stores",
    },
)
MODULE = Heatmap
