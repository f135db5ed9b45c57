"""The slow, obvious reference of physical addresses: snapshots as dicts, and the time of each stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

PAGE = 4096

Snapshot = tuple[int, dict[int, int]]
"""Its time in nanoseconds, and the frame of each resident page."""
Event = tuple[int, str, int, int, int, int]
"""Stream, name, subject, address, size, value."""


def some_snapshots(rng: Random, pages: Sequence[int]) -> list[Snapshot]:
    """Snapshots in which some of the pages are resident, and move now and then."""
    made: list[Snapshot] = []
    time, frames = 0, {page: rng.randrange(1 << 20) for page in pages if rng.random() < 0.4}
    for _ in range(rng.randrange(1, 6)):
        time += 1000 * rng.randrange(5)
        frames = {page: frame for page, frame in frames.items() if rng.random() < 0.7}
        for page in pages:
            if rng.random() < 0.3:
                frames[page] = rng.randrange(1 << 20)
        made.append((time, dict(frames)))
    return made


def map_frames(snapshots: Sequence[Snapshot]) -> list[dict[str, Any]]:
    """What frames MAPS say of them, page by page: changes since the one before."""
    made, before = [], dict[int, int]()
    for time, frames in snapshots:
        new = [[page, 1, frame] for page, frame in frames.items() if before.get(page) != frame]
        gone = [[page, 1, -1] for page in before if page not in frames]
        made.append({"time": time / 1e9, "frames": new + gone})
        before = frames
    return made


def frame_of(snapshots: Sequence[Snapshot], now: int, page: int) -> int | None:
    """The frame at the last snapshot that is not later, or at the next one that has the page."""
    earlier = [number for number, (time, _) in enumerate(snapshots) if time <= now]
    for _, frames in snapshots[earlier[-1] if earlier else 0 :]:
        if page in frames:
            return frames[page]
    return None


def located(events: Iterable[Event], snapshots: Sequence[Snapshot]) -> Iterator[tuple[Event, int]]:
    """Each event and its physical address, -1 where none is known."""
    now: dict[int, int] = {}
    for event in events:
        stream, name, _, address, size, _ = event
        if name in ("hand_over", "window_begin"):
            time = address if name == "hand_over" else size
            now[stream] = max(time, now.get(stream, -1))
        frame = frame_of(snapshots, now.get(stream, -1), address // PAGE)
        yield event, -1 if frame is None else frame * PAGE + address % PAGE


def by_page(events: Iterable[Event]) -> Iterator[Event]:
    """Loads and stores, each in as many as it touches pages."""
    for stream, name, subject, address, size, value in events:
        if name in ("load", "store") and size:
            end = address + size
            while address < end:
                here = min(end, address - address % PAGE + PAGE) - address
                yield stream, name, subject, address, here, value
                address += here
        else:
            yield stream, name, subject, address, size, value
