"""What LLVM's MemProf counts: blocks of each allocation context, their sizes, accesses and lifetimes.

`tracekit export memprof` writes it for clang's -fmemory-profile-use. Time is counted in loads and stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.arena import reserve, taken
from tracekit.containers.hash_table import used_rows
from tracekit.containers.kernels.arena import SPARE
from tracekit.contexts.names import ContextNames
from tracekit.module import Display, inlined, kernel, option
from tracekit.objects.frames import Frames
from tracekit.objects.kernels.live import (
    DEAD,
    HEAP,
    LARGEST,
    Live,
    allocation_context,
    at,
    begin,
    end,
    extended,
    starting_at,
)
from tracekit.objects.live import SiteNames, found_objects, live_objects
from tracekit.objects.module import ObjectModule
from tracekit.objects.profile import BLOCKS, LAYOUTS, ObjectProfile

MOST_OBJECTS = 1 << 31
LINE = 64
"""Bytes; an access counts once for so many."""


@dataclass(frozen=True)
class MemprofOptions:
    """How long an access takes."""

    rate: int = option(1_000_000, "How many loads and stores count as a millisecond.", "N")

    def __post_init__(self) -> None:
        if not 1 <= self.rate <= 1 << 40:
            raise ValueError(f"a rate is 1 to 2**40, not {self.rate}.")


class State(NamedTuple):
    """The live blocks, and how often each was accessed."""

    live: Live  # sites with BLOCKS
    accesses: Any  # int64, by row of live.objects
    rate: Any  # int64 (1)


@inlined
def access(state: State, address: int, size: int) -> None:
    """A load or a store."""
    row = at(state.live, address)
    if 0 < row < DEAD:
        state.accesses[np.uint64(row)] += max(size + LINE - 1, LINE) // LINE


@kernel
def counted(state: State, row: int, time: int) -> None:
    """A block has ended: add it to its site."""
    block = state.live.objects.rows[row]
    if block.born < 0:
        return
    site = state.live.sites.rows[block.site]
    size, count, life = max(block.end - block.start, 1), state.accesses[row], time - block.born
    density = min(count, LARGEST) * 100 // size
    by_life = density * 100 // max(life // state.rate[0], 1)
    is_first = site.blocks == 0
    site.blocks += 1
    site.bytes += size
    site.least_bytes = size if is_first else min(site.least_bytes, size)
    site.most_bytes = max(site.most_bytes, size)
    site.accesses += count
    site.least_accesses = count if is_first else min(site.least_accesses, count)
    site.most_accesses = max(site.most_accesses, count)
    site.lifetime += life
    site.least_lifetime = life if is_first else min(site.least_lifetime, life)
    site.most_lifetime = max(site.most_lifetime, life)
    site.density += density
    site.least_density = density if is_first else min(site.least_density, density)
    site.most_density = max(site.most_density, density)
    site.lifetime_density += by_life
    site.least_lifetime_density = by_life if is_first else min(site.least_lifetime_density, by_life)
    site.most_lifetime_density = max(site.most_lifetime_density, by_life)


@kernel
def allocated(
    state: State, instruction: int, context: int, address: int, size: int, stream: int, time: int, inside: int
) -> None:
    """A block begins, or grows by a tail."""
    if extended(state.live, instruction, address, size) != 0:
        return
    before = starting_at(state.live, address)
    if before != 0:
        counted(state, before, time)  # its end was not seen
    row = begin(state.live, HEAP, instruction, context, address, size, stream, 0)
    if row != 0:
        state.accesses[row] = 0
        state.live.objects.rows[row].born = time if inside else -1


@kernel
def freed(state: State, address: int, size: int, time: int) -> None:
    """A block ends, or loses a tail."""
    row = end(state.live, address, size)
    if row != 0:
        counted(state, row, time)


@kernel
def finished(state: State, first: int, last: int, time: int) -> None:
    """The run ends, and with it the blocks that live, in these rows of ``live.objects``."""
    for row in range(first, last):
        if state.live.objects.rows[row].alive != 0:
            counted(state, row, time)


class Memprof(ObjectModule):
    """One row for each site in each context."""

    Options = MemprofOptions
    tables = ("blocks",)
    whole_because = "the accesses of a block are counted until it ends"
    counts_iterations = False

    def state(self) -> State:
        """No block."""
        return State(
            live_objects(self.program, BLOCKS), reserve("i8", MOST_OBJECTS, 1 << 20), np.array([self.options.rate])
        )

    @staticmethod
    def load(state: State, address: int, size: int) -> None:
        """Counts for the block."""
        access(state, address, size)

    @staticmethod
    def store(state: State, address: int, size: int) -> None:
        """The same."""
        access(state, address, size)

    @staticmethod
    def heap_alloc(
        state: State,
        instruction: int,
        address: int,
        size: int,
        context: int,
        stream: int,
        time: int,
        inside: int,
        levels: Any,
    ) -> None:
        """A block begins."""
        allocated(
            state, instruction, allocation_context(state.live, context, levels), address, size, stream, time, inside
        )

    @staticmethod
    def heap_free(state: State, address: int, size: int, time: int) -> None:
        """A block ends."""
        freed(state, address, size, time)

    def collected(self, state: State) -> ObjectProfile:
        """The blocks of each site; those that nobody freed lived until the end."""
        finished(state, SPARE, SPARE + len(taken(state.live.objects)), self.accesses)
        sites = used_rows(state.live.sites)
        blocks = np.zeros(len(sites), LAYOUTS["blocks"].dtype)
        blocks["site"] = np.arange(len(sites))
        for name, _ in BLOCKS:
            blocks[name] = sites[name]
        return found_objects(self.program, self.contexts, state.live, {"blocks": blocks[1:][blocks["blocks"][1:] != 0]})

    def shown(self, profile: ObjectProfile) -> dict[str, Any]:
        """Sites, and the stack of each as the compiler counts lines: from the beginning of each function."""
        names = SiteNames(self.program, profile, ContextNames(self.program, profile.nodes))
        frames = Frames(self.program)
        rows = []
        for row in profile["blocks"]:
            site = int(row["site"])
            measured = {name: int(row[name]) for name, _ in BLOCKS}
            rows.append(
                {
                    "object": names.show(site),
                    **measured,
                    "stack": frames.stack(profile.nodes, profile.sites[site]),
                }
            )
        return {"sites": rows}


DISPLAY = Display(
    text="tracekit.render.memprof:memprof_text",
    section="tracekit.render.html.memprof:section",
    heading="Heap blocks",
    columns={
        "sites": (
            "object:made blocks bytes least_bytes most_bytes accesses least_accesses most_accesses "
            "lifetime least_lifetime most_lifetime density least_density most_density lifetime_density "
            "least_lifetime_density most_lifetime_density stack"
        ),
    },
)
MODULE = Memprof
