"""Finds the final stores of a trace (kernels/final_stores.py), in a pass that looks at stores and objects alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.shadow import PAGES, SCRATCH
from tracekit.dependence.kernels.final_stores import FinalStores, Passing, enter_pages, overwrite
from tracekit.formats.events import OBJECT_EVENTS
from tracekit.jit.cache import CHECKS_BOUNDS
from tracekit.modules.contract import Module

SETTING = "TRACEKIT_FINAL_STORES"
"""0: no analysis finds out first which stores are final; ``always``: each that looks at loads does (for tests)."""
LONG_ENOUGH = 1 << 23
"""Accesses of a trace from which on the pass is worth its kernels, where it is not in the cache."""
MANY = 3
"""So many times as many loads as stores, or as records, make the history of loads longer than the pass."""
MOST = 1 << 40
"""Accesses of a trace up to which there is a bit for each."""


def pays(totals: Mapping[str, int], records: int) -> bool:
    """Whether the pass shortens an analysis of a trace with these totals (replay/totals.py), of so many records."""
    setting = os.environ.get(SETTING, "")
    if setting in ("0", "always"):
        return setting == "always"
    if CHECKS_BOUNDS or not LONG_ENOUGH <= totals["accesses"] <= MOST:
        return False
    return totals["loads"] >= MANY * min(totals["stores"], records)


def nothing_known() -> FinalStores:
    """What is known without the pass."""
    return FinalStores(np.zeros(0, np.uint8), hash_table([], rows=1))


def store(state: Passing, address: int, size: int, stream: int, time: int) -> None:
    """What is stored there again was not stored finally. (Whoever asks for the time has loads counted.)"""
    overwrite(state, address, size, stream, time)


def stores(state: Passing, address: int, size: int, step: int, count: int, stream: int, time: int, period: int) -> None:
    """Stores of a loop."""
    for number in range(count):
        overwrite(state, address + number * step, size, stream, time + number * period)


def forget(state: Passing, address: int, size: int) -> None:
    """Memory begins or ends: what was stored there last was stored finally."""
    clear(state.memory, address, size)


class FinalStoresPass(Module):
    """The pass. Its result is ``{"final": FinalStores}``."""

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """For stores and objects."""
        return {"store": store, **dict.fromkeys(OBJECT_EVENTS, forget)}

    def range_callbacks(self) -> dict[str, Callable[..., None]]:
        """For the stores of loops."""
        return {"stores": stores}

    def state(self) -> Passing:
        """Nothing is stored; a store behind the accesses that the trace claims to have is known to be none."""
        return Passing(shadow.empty(np.int64, per_stream=True), arena.reserve("u1", (self.accesses >> 3) + 1))

    def result(self, state: Passing) -> dict[str, Any]:
        """What was found."""
        pages = state.memory.pages[SCRATCH + 1 : state.memory.control[PAGES]]
        table = hash_table([], rows=2 * len(pages) + 16)
        enter_pages(table, pages)
        return {"final": FinalStores(state.overwritten, table)}
