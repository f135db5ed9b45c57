"""Snapshots of the address space in a trace (frames ``MAPS``), and what each region is for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tracekit.formats.container import frames_of
from tracekit.formats.reader import TraceReader

HEAP, STACK, IMAGE, FILE = "heap", "stack", "image", "file"
ANONYMOUS, KERNEL, OWN = "anonymous", "kernel", "tracekit"
USES = (HEAP, STACK, IMAGE, FILE, ANONYMOUS, KERNEL, OWN)

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
            "regions": [region.as_json() for region in self.regions],
        }


def read_snapshots(trace: TraceReader) -> list[Snapshot]:
    """All snapshots of a trace, the first one first."""
    return [_snapshot(json.loads(trace.payload(frame))) for frame in frames_of(trace.frames, b"MAPS")]


def _snapshot(told: dict[str, Any]) -> Snapshot:
    regions = [Region(*row) for row in told["regions"]]
    _name_uses(regions)
    for thread, pointer in told.get("threads", []):
        for region in regions:
            if region.first <= pointer < region.end and region.use in (ANONYMOUS, STACK):
                region.use, region.thread = STACK, thread
    return Snapshot(told["time"], told["resident"], told["proportional"], told["swapped"], regions)


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
