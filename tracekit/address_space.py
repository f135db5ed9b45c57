"""Snapshots of the address space in a trace (frames ``MAPS``), and what each region is for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tracekit.formats.container import frames_of
from tracekit.formats.reader import TraceReader
from tracekit.region_uses import ANONYMOUS, FILE, HEAP, IMAGE, KERNEL, OWN, STACK, USES

PAGE = 4096
"""Of the machines that are recorded."""
LARGEST = 1 << 34
"""Regions from that size on are reserved addresses."""
GUARD = 1 << 16
"""A region that cannot be accessed and is no larger, below another: a thread's stack begins there."""


@dataclass(eq=False)
class Region:
    """A mapping: addresses from ``first`` up to, without, ``end``; ``name``: the file, or as the kernel calls it."""

    first: int
    end: int
    protection: str
    name: str
    use: str = ANONYMOUS
    thread: int = 0  # of a stack: the thread's id, 0 if that is not known

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.end - self.first

    @property
    def is_accessible(self) -> bool:
        """Whether anything may be done with it; reserved addresses may not."""
        return self.protection[:3] != "---"

    def as_json(self) -> dict[str, Any]:
        """The region as JSON has it."""
        names = ("first", "end", "bytes", "protection", "use", "name")
        return {name: getattr(self, name) for name in names} | ({"thread": self.thread} if self.thread else {})


@dataclass(eq=False)
class Snapshot:
    """``time``: seconds since the program's start; ``resident``, ``proportional``, ``swapped``: bytes."""

    time: float
    resident: int
    proportional: int
    swapped: int
    regions: list[Region] = field(default_factory=list)
    frames: dict[int, int] | None = None
    """Page frame by page number, of resident pages; None: frames were not recorded (`record --physical`)."""

    def physical(self, address: int) -> int | None:
        """The physical address where this one lay, None if its page was not resident, or that is not known."""
        frame = (self.frames or {}).get(address // PAGE)
        return None if frame is None else frame * PAGE + address % PAGE

    def bytes_of(self, use: str) -> int:
        """Accessible bytes of a use."""
        return sum(region.bytes for region in self.regions if region.use == use and region.is_accessible)

    def as_json(self) -> dict[str, Any]:
        """The snapshot as JSON has it."""
        return {
            "time": self.time,
            "resident": self.resident,
            "proportional": self.proportional,
            "swapped": self.swapped,
            "bytes": {use: self.bytes_of(use) for use in USES},
            "regions": [region.as_json() | self._resident(region) for region in self.regions],
        }

    def _resident(self, region: Region) -> dict[str, Any]:
        """Resident bytes of a region, and runs of pages with consecutive frames: address, bytes, physical address."""
        if self.frames is None:
            return {}
        runs: list[list[int]] = []
        for page in range(region.first // PAGE, region.end // PAGE) if region.bytes < LARGEST else ():
            frame = self.frames.get(page)
            if frame is None:
                continue
            if runs and runs[-1][0] + runs[-1][1] == page and runs[-1][2] + runs[-1][1] == frame:
                runs[-1][1] += 1
            else:
                runs.append([page, 1, frame])
        return {
            "resident": PAGE * sum(run[1] for run in runs),
            "physical": [[number * PAGE for number in run] for run in runs],
        }


def read_snapshots(trace: TraceReader) -> list[Snapshot]:
    """All snapshots of a trace, the first one first."""
    snapshots: list[Snapshot] = []
    known: dict[int, int] = {}
    for frame in frames_of(trace.frames, b"MAPS"):
        snapshot = json.loads(trace.payload(frame))
        snapshots.append(_snapshot(snapshot))
        if "frames" in snapshot:
            known = _changed(known, snapshot["frames"])
            snapshots[-1].frames = known
    return snapshots


def _changed(known: dict[int, int], runs: list[list[int]]) -> dict[int, int]:
    now = dict(known)
    for first, count, frame in runs:
        for step in range(count):
            if frame < 0:
                now.pop(first + step, None)
            else:
                now[first + step] = frame + step
    return now


def _snapshot(snapshot: dict[str, Any]) -> Snapshot:
    regions = [Region(*row) for row in snapshot["regions"]]
    _name_uses(regions)
    for thread, pointer in snapshot.get("threads", []):
        for region in regions:
            if region.first <= pointer < region.end and region.use in (ANONYMOUS, STACK):
                region.use, region.thread = STACK, thread
    return Snapshot(snapshot["time"], snapshot["resident"], snapshot["proportional"], snapshot["swapped"], regions)


def _name_uses(regions: list[Region]) -> None:
    images = {region.name for region in regions if "x" in region.protection and region.name.startswith("/")}
    for at, region in enumerate(regions):
        below = regions[at - 1] if at and regions[at - 1].end == region.first else None
        if "tracekit-pool" in region.name or "/libtracekit-" in region.name:
            region.use = OWN
        elif region.name.startswith("/"):
            region.use = IMAGE if region.name in images else FILE
        elif region.name == "[heap]":
            region.use = HEAP
        elif region.name.startswith("[stack"):
            region.use = STACK
        elif region.name.startswith("[v"):
            region.use = KERNEL
        elif below and below.use == IMAGE and region.protection == below.protection:
            region.use = IMAGE  # its variables without initial values
        elif below and not below.is_accessible and below.bytes <= GUARD and region.protection[:2] == "rw":
            region.use = below.use = STACK
    for order in (1, -1):  # the pool's guards, and what lies between them
        above: Region | None = None
        for region in regions[::order]:
            touches = above and (above.end == region.first or region.end == above.first)
            if region.use != OWN and not region.name and touches and above and above.use == OWN:
                region.use = OWN
            above = region
