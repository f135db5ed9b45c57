"""Snapshots of a program's address space during the run: `record --snapshots 1s`.

The kernel is asked, from the collector's process; the program does nothing for it. A snapshot is a frame ``MAPS``.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.recorder.physical import Frames

SHORTEST = 0.01
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min)")
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0}


def parse_period(text: str) -> float:
    """The seconds of `1s` or `250ms`. Raises TracekitError for what is no time, or too short."""
    match = _TIME.fullmatch(text)
    period = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not SHORTEST <= period < 1e6:
        raise TracekitError(f"--snapshots {text}: write a time from 10ms on, as 1s or 250ms")
    return period


def take(process: int, began: float, frames: Frames | None = None) -> dict[str, Any] | None:
    """The address space of a process now, as the frame has it; None if the process is gone.

    ``began``: when the program began, by the clock ``time.monotonic``; ``frames``: page frames are asked for.
    """
    try:
        with open(f"/proc/{process}/maps") as file:
            lines = file.read().splitlines()
        rollup = _rollup(process)
        regions = [_region(line) for line in lines]
        physical = {} if frames is None else {"frames": frames.changes(process, regions)}
    except (OSError, ValueError):
        return None
    if not lines:
        return None
    return {
        "time": round(time.monotonic() - began, 6),
        "resident": rollup.get("Rss", 0),
        "proportional": rollup.get("Pss", 0),
        "swapped": rollup.get("Swap", 0),
        "threads": _stack_pointers(process),
        "regions": regions,
        **physical,
    }


def _region(line: str) -> list[Any]:
    """First address, address behind it, protection, and what is mapped (a file's path, or as [heap])."""
    place, protection, _, _, _, *name = line.split(maxsplit=5)
    first, _, end = place.partition("-")
    return [int(first, 16), int(end, 16), protection, name[0] if name else ""]


def _rollup(process: int) -> dict[str, int]:
    """Bytes by name; nothing where the kernel has no such file, or does not let us read it."""
    found = {}
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            for line in file.readlines()[1:]:
                name, _, rest = line.partition(":")
                found[name] = 1024 * int(rest.split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return found


def _stack_pointers(process: int) -> list[list[int]]:
    """[thread id, stack pointer] of the threads that wait in the kernel, where it says so."""
    found = []
    for thread in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{thread}/syscall") as file:
                words = file.read().split()
        except OSError:
            continue
        if len(words) >= 3:
            found.append([int(thread), int(words[-2], 16)])
    return sorted(found)


class Snapshots:
    """Takes one when it starts, and another after each period, until it is stopped."""

    def __init__(self, period: float, began: float, write: Callable[[bytes], None], physical: bool = False) -> None:
        """``write``: puts the payload of a frame into the trace; called in a thread of this object's."""
        self._frames: Frames | None = None
        if physical:
            from tracekit.recorder.physical import Frames

            self._frames = Frames()
        self._period, self._began, self._write = period, began, write
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, process: int) -> None:
        """Begin with a process; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(process,), name="snapshots", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Take no more, and wait until the last one is written."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, process: int) -> None:
        due = time.monotonic()
        while (snapshot := take(process, self._began, self._frames)) is not None:
            self._write(json.dumps(snapshot, separators=(",", ":")).encode())
            due = max(due + self._period, time.monotonic())
            if self._stopped.wait(due - time.monotonic()):
                return
