"""Traffic over time: what each part of the run loads and stores, and what simulated caches let through to memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tracekit.caches import levels as caches
from tracekit.caches.kernels.fields import PREFETCHES, THROUGH, WRITTEN
from tracekit.caches.kernels.hierarchy import Hierarchy, touch
from tracekit.module import (
    MOST_INTERVALS,
    PHYSICAL,
    CannotMergeError,
    Display,
    Module,
    addresses_option,
    check_addresses,
    in_page,
    inlined,
    interval_bits,
    interval_count,
    kernel,
    option,
    place_of,
)

# Columns of State.slices.
ACCESSES, LOADED, STORED, READ, WROTE = range(5)  # those of the program in bytes, those of memory in lines
NAMES = ("loaded_bytes", "stored_bytes", "memory_read_bytes", "memory_written_bytes")


class State(NamedTuple):
    """The caches, and counts by slice."""

    caches: Hierarchy
    shift: Any  # int64 (1): a line is 1 << shift bytes
    bits: Any  # int64 (1): log2 of the accesses in a slice
    slices: Any  # int64 (MOST_INTERVALS + 1, 5)
    unlocated: Any  # int64 (1): accesses whose physical address is not known


@dataclass(frozen=True)
class BandwidthOptions:
    """The caches between the program and memory, as of cache."""

    levels: str = option(
        "32K:8:64,1M:16:64,32M:16:64",
        "The caches, the first level first; all have lines of the same size.",
        "SIZE:WAYS:LINE,...",
    )
    write: str = option(
        "back",
        "Stores stay in the first level until their line has to go; or go through to memory.",
        choices=("back", "through"),
    )
    prefetch: str = option(
        "none", "Whether a miss of the first level fetches the next line, too.", choices=("none", "next-line")
    )

    addresses: str = addresses_option()

    def __post_init__(self) -> None:
        check_addresses(self.addresses, self.shape[0].line)

    @cached_property
    def shape(self) -> list[caches.Level]:
        """The levels."""
        return caches.parsed(self.levels)


@inlined
def begun(state: State, time: int, first: int) -> int:
    """The slice of an access, which is counted there."""
    now: int = min(time >> state.bits[0], MOST_INTERVALS)
    state.slices[now, ACCESSES] += first
    return now


@inlined
def moved(state: State, address: int, size: int, now: int, store: bool) -> None:
    """An access, or what of it lies in a page: touch its lines, and count what memory gave and got."""
    if size <= 0:
        return
    state.slices[now, STORED if store else LOADED] += size
    last = state.caches.shape.shape[1]
    counts = state.caches.counts
    before = counts[last, WRITTEN]
    fetched = counts[last - 1, PREFETCHES]
    passes = store and state.caches.rules[THROUGH]
    shift = state.shift[0]
    reads = 0
    for number in range(address >> shift, ((address + size - 1) >> shift) + 1):
        found = touch(state.caches, 0, number, store)
        if found == last and not passes:
            reads += 1
    state.slices[now, READ] += reads + counts[last - 1, PREFETCHES] - fetched
    state.slices[now, WROTE] += counts[last, WRITTEN] - before


@kernel
def access_located(
    state: State, address: int, size: int, time: int, first: int, stream: int, store: bool, frames: Any
) -> None:
    """An access as one at its physical address; in each page, if there are several."""
    now = begun(state, time, first)
    end = address + size
    while address < end:
        here = in_page(address, end)
        moved(state, place_of(frames, stream, address, state.unlocated), here, now, store)
        address += here


def load_located(state: State, address: int, size: int, time: int, first: int, stream: int, frames: Any) -> None:
    """A load, by its physical address."""
    access_located(state, address, size, time, first, stream, False, frames)


def store_located(state: State, address: int, size: int, time: int, first: int, stream: int, frames: Any) -> None:
    """A store, by its physical address."""
    access_located(state, address, size, time, first, stream, True, frames)


class Bandwidth(Module):
    """One row for each slice of the run."""

    whole_because = "what caches hold follows from all accesses before"
    Options = BandwidthOptions
    ends_with_window = True

    def state(self) -> State:
        """Empty caches."""
        options = self.options
        return State(
            caches.empty(options.shape, through=options.write == "through", prefetch=options.prefetch),
            np.array([options.shape[0].line.bit_length() - 1]),
            np.array([interval_bits(self.accesses)]),
            np.zeros((MOST_INTERVALS + 1, 5), np.int64),
            np.zeros(1, np.int64),
        )

    @property
    def is_physical(self) -> bool:
        """Whether physical addresses decide."""
        return bool(self.options.addresses == PHYSICAL)

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those that the option ``addresses`` wants."""
        return {"load": load_located, "store": store_located} if self.is_physical else super().callbacks()

    @staticmethod
    def load(state: State, address: int, size: int, time: int, first: int) -> None:
        """A load."""
        moved(state, address, size, begun(state, time, first), False)

    @staticmethod
    def store(state: State, address: int, size: int, time: int, first: int) -> None:
        """A store."""
        moved(state, address, size, begun(state, time, first), True)

    def result(self, state: State) -> dict[str, Any]:
        """Slices in order of time."""
        unit = np.array([1, 1, 1, self.options.shape[0].line, self.options.shape[0].line])
        slices = state.slices * unit
        rows = [
            {
                "first_access": number << int(state.bits[0]),
                "accesses": int(slices[number, ACCESSES]),
                **dict(zip(NAMES, slices[number, LOADED:].tolist(), strict=True)),
            }
            for number in range(min(interval_count(self.accesses), MOST_INTERVALS) + 1)
            if slices[number, ACCESSES]
        ]
        totals = dict(zip(NAMES, slices[:, LOADED:].sum(axis=0).tolist(), strict=True))
        memory = (slices[:, READ] + slices[:, WROTE]) / np.maximum(slices[:, ACCESSES], 1)
        return {
            "slices": rows,
            "summary": {
                **totals,
                "peak_memory_bytes_per_access": round(float(memory.max()), 4),
                **({"unlocated": int(state.unlocated[0])} if self.is_physical else {}),
            },
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Refuse."""
        raise CannotMergeError("a slice is a stretch of one run, and runs differ in length")


DISPLAY = Display(
    section="tracekit.render.html.bandwidth:section",
    heading="Bandwidth",
    columns={
        "slices": "first_access accesses loaded_bytes stored_bytes memory_read_bytes memory_written_bytes",
    },
)
MODULE = Bandwidth
