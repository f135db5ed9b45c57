"""The slow, obvious reference of final stores: each byte's last store in a dict; and the pass, without a trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from types import SimpleNamespace

import numpy as np

from tests.naive.dependence import Event
from tracekit.dependence.final_stores import FinalStoresPass
from tracekit.dependence.kernels.final_stores import FinalStores
from tracekit.formats.events import ACCESS_EVENTS, CODE, OBJECT_EVENTS
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.contract import NoOptions
from tracekit.program.program import Program

ACCESSES = {CODE[name] for name in ACCESS_EVENTS}
OBJECTS = {CODE[name] for name in OBJECT_EVENTS}


def overwritten_stores(events: Iterable[Event]) -> set[int]:
    """The times of the stores one of whose bytes the same stream stores again before its memory ends, or begins."""
    last: dict[tuple[int, int], int] = {}
    overwritten, time = set(), 0
    for stream, kind, _, address, size in events:
        if kind == CODE["store"]:
            for byte in range(address, address + size):
                if (stream, byte) in last:
                    overwritten.add(last[stream, byte])
                last[stream, byte] = time
        elif kind in OBJECTS:
            for at in [at for at in last if address <= at[1] < address + size]:
                del last[at]
        time += kind in ACCESSES
    return overwritten


def stored_pages(events: Iterable[Event]) -> set[tuple[int, int]]:
    """Stream and number of each page that something is stored in."""
    return {
        (stream, byte >> 12)
        for stream, kind, _, address, size in events
        if kind == CODE["store"]
        for byte in range(address, address + size)
    }


def passed(program: Program, events: Sequence[Event]) -> FinalStores:
    """What the pass finds in these events."""
    module = FinalStoresPass(program, NoOptions())
    module.accesses = sum(kind in ACCESSES for _, kind, *_ in events)
    runner = CallbackRunner(module, "final_stores", 1)
    wanted = [CODE[name] for name in runner.columns]
    for stream, rows in groupby(events, key=lambda event: event[0]):
        columns = zip(("kind", "subject", "address", "size"), list(zip(*rows))[1:], ("u1", "u4", "u8", "u8"))
        batch = {name: np.array(column, dtype) for name, column, dtype in columns}
        kept = np.isin(batch["kind"], wanted)
        runner.feed(SimpleNamespace(stream=stream, **{name: column[kept] for name, column in batch.items()}), 0)
    final: FinalStores = runner.result()[0]["final"]
    return final
