"""Traffic over time: what each part of the run loads and stores, and what simulated caches let through to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tracekit.caches import levels as caches
from tracekit.caches.kernels.fields import PREFETCHES, THROUGH, WRITTEN
from tracekit.caches.kernels.hierarchy import Hierarchy, touch
from tracekit.module import (
    MOST_INTERVALS,
    CannotMergeError,
    Display,
    Module,
    inlined,
    interval_bits,
    interval_count,
    option,
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

    def __post_init__(self) -> None:
        self.shape  # noqa: B018 # what makes no sense is refused

    @cached_property
    def shape(self) -> list[caches.Level]:
        """The levels."""
        return caches.parsed(self.levels)


@inlined
def access(state: State, address: int, size: int, time: int, first: int, store: bool) -> None:
    """An access: touch its lines, and count what memory gave and got."""
    now = min(time >> state.bits[0], MOST_INTERVALS)
    state.slices[now, ACCESSES] += first
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


class Bandwidth(Module):
    """One row for each slice of the run."""

    whole_because = "what caches hold follows from all accesses before"
    Options = BandwidthOptions

    def state(self) -> State:
        """Empty caches."""
        options = self.options
        return State(
            caches.empty(options.shape, through=options.write == "through", prefetch=options.prefetch),
            np.array([options.shape[0].line.bit_length() - 1]),
            np.array([interval_bits(self.accesses)]),
            np.zeros((MOST_INTERVALS + 1, 5), np.int64),
        )

    @staticmethod
    def load(state: State, address: int, size: int, time: int, first: int) -> None:
        """A load."""
        access(state, address, size, time, first, False)

    @staticmethod
    def store(state: State, address: int, size: int, time: int, first: int) -> None:
        """A store."""
        access(state, address, size, time, first, True)

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
            "summary": {**totals, "peak_memory_bytes_per_access": round(float(memory.max()), 4)},
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
