"""What `record` asks of its collector, and what the two tell one another at the end of a run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CollectorOptions:
    """How the collector works, and what the trace holds."""

    with_sources: bool
    progress: bool
    """Whether it shows how far it is, on stderr."""
    workers: int
    snapshots: float
    """Seconds from one snapshot of the address space to the next; 0: none."""
    physical: bool
    """Whether these have page frames."""
    left_out: Collection[str]
    """Kinds of accesses that the trace is not to hold (window_filters.EVENTS)."""


@dataclass
class Ending:
    """How the program ended, as `record` tells it: exit status or signal number (else None), and seconds it ran."""

    status: int | None = None
    signal: int | None = None
    seconds: float = 0.0


@dataclass
class Outcome:
    """What became of the trace, as the collector tells `record`; ``failure``: why it is cut, a clause."""

    attached: bool = False
    accesses: int = 0
    file_bytes: int = 0
    unknown: int = 0
    unrecorded: int = 0
    forked: int = 0
    """Processes that came of fork while none was followed."""
    images_lost: int = 0
    windows: int = 0
    """Times that a thread went into a window of the run."""
    own_malloc: bool = False
    """Whether the program brings a `malloc` whose blocks are not seen."""
    waited: float = 0.0
    failure: str = ""
    complete: bool = False
    totals: dict[str, int] = field(default_factory=dict)
