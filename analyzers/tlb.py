"""A simulator of translation look-aside buffers: how often a page's translation is missing, and what misses it.

It is the simulator of caches with pages for lines and translations that nobody writes. Loads and stores of the program
are simulated, its instructions are not. Threads share all levels, in the order of replay. Addresses are virtual ones:
an entry is found by the virtual page, whose frame is what it tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracekit import sizes
from tracekit.analyzers.cache import Cache, State, access
from tracekit.caches import levels as caches
from tracekit.caches.kernels.hierarchy import Hierarchy
from tracekit.module import Display, groups_option, option


@dataclass(frozen=True)
class TlbOptions:
    """The buffers, and what objects are."""

    levels: str = option("64:4,1536:12", "The buffers, the first level first.", "ENTRIES:WAYS,...")
    page: str = option("4K", "What an entry translates: 4K, 2M, 1G.", "SIZE")
    replacement: str = option("lru", "Which entry of a full set goes.", choices=caches.POLICIES)
    seed: int = option(1, "Of random replacement.", "N")
    by: str = groups_option()
    stack: bool = option(False, "Local variables are objects, too.")

    def __post_init__(self) -> None:
        caches.check_rules(self.shape, self.replacement, self.seed)

    @cached_property
    def shape(self) -> list[caches.Level]:
        """The levels."""
        return caches.parsed_entries(self.levels, sizes.parsed(self.page))

    def hierarchy(self) -> Hierarchy:
        """Empty buffers."""
        return caches.empty(self.shape, self.replacement, seed=self.seed)


class Tlb(Cache):
    """Counts by level, and rows by instruction and by what made the objects."""

    Options = TlbOptions
    level_counts = ("hits", "misses")
    totals = ("touches", "walks")

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, group: int, stream: int) -> None:
        """A store, which needs the same translation as a load, and changes none."""
        access(state, instruction, address, size, group, stream, False)

    def result(self, state: State) -> dict[str, Any]:
        """The levels, rows by source location, and objects by kind and site."""
        total = state.instructions[:, :-1].sum(axis=0)
        levels = [
            {
                "name": f"L{number + 1}",
                "entries": level.size // level.line,
                "ways": level.ways,
                "hits": int(total[number]),
                "misses": int(total[number + 1 :].sum()),
            }
            for number, level in enumerate(self.options.shape)
        ]
        summary = {"page": self.options.shape[0].line, "touches": int(total.sum()), "walks": int(total[-1])}
        return {"summary": summary, "levels": levels, **self.rows(state)}


DISPLAY = Display(
    text="tracekit.render.caches:cache_text",
    section="tracekit.render.html.caches:section",
    heading="TLBs",
    columns={
        "levels": "name entries ways hits misses",
        "instructions": "instruction:instruction touches misses",
        "objects": "object:object touches misses",
    },
)
MODULE = Tlb
