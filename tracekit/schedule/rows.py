"""The rows of a schedule: threads, slices of time, stretches on one processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.program.program import Program
from tracekit.schedule.hand_overs import StreamTimes, stamps

I8 = NDArray[np.int64]

GAP = 20
"""So many times the usual time between two hand-overs is a stretch by itself: the thread waited, or was slow."""


def result_of(program: Program, streams: Mapping[int, StreamTimes], slices: int) -> dict[str, Any]:
    """The profile."""
    known = {number: stamps(number, stream) for number, stream in sorted(streams.items())}
    end = max((int(times[-1]) for times, *_ in known.values() if len(times)), default=0)
    threads: list[dict[str, Any]] = []
    stretches: list[dict[str, Any]] = []
    on: dict[int, list[int]] = {}
    for number, (times, processors, before) in known.items():
        stream = streams[number]
        if not stream.accesses and not len(times):
            continue
        moves = int((processors[2:] != processors[1:-1]).sum()) if len(times) else 0
        shares, where = _slices(times, processors, before, end, slices)
        threads.append(
            {
                "thread": number,
                "role": program.function_name(stream.function) if stream.function >= 0 else "",
                "accesses": stream.accesses,
                "hand_overs": max(len(times) - 1, 0),
                "begin": int(times[0]) if len(times) else None,
                "end": int(times[-1]) if len(times) else None,
                "processors": sorted(set(processors[1:].tolist())),
                "migrations": moves,
                "slices": shares.tolist(),
                "on": where.tolist(),
            }
        )
        for stretch in _stretches(times, processors, before):
            stretches.append({"thread": number, **stretch})
            sums = on.setdefault(stretch["processor"], [0, 0])
            sums[0] += stretch["accesses"]
            sums[1] += stretch["end"] - stretch["begin"]
    return {
        "summary": {
            "nanoseconds": end,
            "slices": slices,
            "threads": len(threads),
            "hand_overs": sum(row["hand_overs"] for row in threads),
            "migrations": sum(row["migrations"] for row in threads),
            "accesses": sum(row["accesses"] for row in threads),
            "accesses_timed": sum(sum(row["slices"]) for row in threads),
        },
        "threads": threads,
        "processors": [
            {"processor": processor, "accesses": sums[0], "nanoseconds": sums[1]}
            for processor, sums in sorted(on.items())
        ],
        "stretches": sorted(stretches, key=lambda row: (row["begin"], row["thread"])),
    }


def _slices(times: I8, processors: I8, before: I8, end: int, slices: int) -> tuple[I8, I8]:
    """Accesses in each slice, spread evenly between two hand-overs; the processor at the end of each, -1 before any."""
    if not len(times) or end == 0:
        return np.zeros(slices, np.int64), np.full(slices, -1)
    edges = np.linspace(0, end, slices + 1)
    known = np.interp(edges, times, before, left=0).round().astype(np.int64)
    known[edges < times[0]] = 0
    known[-1] = before[-1]
    place = np.searchsorted(times, edges[1:], side="left")
    where = processors[np.minimum(place, len(times) - 1)].copy()
    where[(edges[1:] < times[0]) | (edges[:-1] > times[-1])] = -1
    return np.diff(known), where


def _stretches(times: I8, processors: I8, before: I8) -> list[dict[str, int]]:
    """Hand-overs on one processor that follow each other as usual are one stretch."""
    if len(times) < 2:
        return []
    lengths = np.diff(times)
    usual = float(np.median(lengths)) or 1.0
    slow = lengths > GAP * usual
    cut = (processors[2:] != processors[1:-1]) | slow[1:] | slow[:-1]
    first = np.concatenate([[0], np.flatnonzero(cut) + 1])
    last = np.concatenate([first[1:], [len(lengths)]])
    return [
        {
            "begin": int(times[begin]),
            "end": int(times[end]),
            "processor": int(processors[end]),
            "accesses": int(before[end] - before[begin]),
        }
        for begin, end in zip(first.tolist(), last.tolist())
    ]
