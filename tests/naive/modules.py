"""The slow, obvious references of the modules that look at accesses one by one.

An event is (stream, name, subject, address, size, value); `accesses` is the number of loads and stores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.naive import caches

Event = tuple[int, str, int, int, int, int]
MOST = 256


def slice_length(accesses: int) -> int:
    """The least power of two of accesses that makes at most MOST slices."""
    length = 1
    while length * MOST < accesses:
        length *= 2
    return length


def accesses_of(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event[1] in ("load", "store")]


def touched(event: Event, granule: int) -> range:
    _, _, _, address, size, _ = event
    return range(address // granule, (address + size - 1) // granule + 1) if size else range(0)


def footprint(events: Sequence[Event], granule: int) -> list[dict[str, int]]:
    chosen = accesses_of(events)
    length = slice_length(len(chosen))
    rows = []
    seen: set[int] = set()
    for start in range(0, len(chosen), length):
        part = chosen[start : start + length]
        here = {number for event in part for number in touched(event, granule)}
        new = here - seen
        seen |= here
        rows.append(
            {
                "first_access": start,
                "accesses": len(part),
                "touched_bytes": len(here) * granule,
                "new_bytes": len(new) * granule,
                "total_bytes": len(seen) * granule,
            }
        )
    return rows


def bandwidth(
    events: Sequence[Event],
    shape: Sequence[tuple[int, int]],
    line: int,
    parts: Sequence[Sequence[Event]] | None = None,
    **rules: Any,
) -> list[dict[str, int]]:
    """`parts`: what caches see of each access, if not the access as it is."""
    chosen = accesses_of(events)
    length = slice_length(len(chosen))
    parts = [[event] for event in chosen] if parts is None else parts
    moves = iter(caches.simulate([each for part in parts for each in part], shape, line, **rules)["traffic"])
    traffic = [[sum(column) for column in zip((0, 0), *(next(moves) for _ in part))] for part in parts]
    rows = []
    for start in range(0, len(chosen), length):
        part = chosen[start : start + length]
        moved = traffic[start : start + length]
        rows.append(
            {
                "first_access": start,
                "accesses": len(part),
                "loaded_bytes": sum(event[4] for event in part if event[1] == "load"),
                "stored_bytes": sum(event[4] for event in part if event[1] == "store"),
                "memory_read_bytes": sum(reads for reads, _ in moved) * line,
                "memory_written_bytes": sum(written for _, written in moved) * line,
            }
        )
    return rows


def heatmap(events: Sequence[Event], granule: int, most_rows: int) -> dict[str, Any]:
    chosen = accesses_of(events)
    length = slice_length(len(chosen))
    slices = -(-len(chosen) // length)
    counts: dict[str, Counter[tuple[int, int]]] = {"load": Counter(), "store": Counter()}
    for time, event in enumerate(chosen):
        for number in touched(event, granule):
            counts[event[1]][number, time // length] += 1
    numbers = {number for counter in counts.values() for number, _ in counter}
    factor = 1
    while len({number // factor for number in numbers}) > most_rows:
        factor *= 2
    rows = []
    for row in sorted({number // factor for number in numbers}):
        cells = {
            kind: [
                sum(count for (number, part), count in counter.items() if number // factor == row and part == at)
                for at in range(slices)
            ]
            for kind, counter in counts.items()
        }
        rows.append({"start": hex(row * factor * granule), "loads": cells["load"], "stores": cells["store"]})
    return {
        "rows": rows,
        "summary": {"bytes_per_row": factor * granule, "slices": slices, "accesses_per_slice": length},
    }


def value_patterns(
    events: Sequence[Event], stores: bool, linear: bool, small_set: int
) -> dict[int, tuple[int, str, Any]]:
    """Instruction -> (count, pattern, value), values as signed 64-bit numbers."""
    values: dict[int, list[int]] = defaultdict(list)
    for _, name, subject, _, _, value in accesses_of(events):
        if name == "load" or stores:
            values[subject].append(value)
    found: dict[int, tuple[int, str, Any]] = {}
    for subject, seen in values.items():
        steps = {(b - a + 2**63) % 2**64 - 2**63 for a, b in pairwise(seen)}
        if len(set(seen)) == 1:
            found[subject] = len(seen), "constant", seen[0]
        elif linear and len(seen) > 2 and len(steps) == 1:
            found[subject] = len(seen), "linear", (seen[0], steps.pop())
        elif len(set(seen)) <= small_set:
            found[subject] = len(seen), "set", sorted(set(seen))
    return found


def ones_and_zeros(events: Sequence[Event]) -> list[dict[str, Any]]:
    """`value` is the whole value here, as a number."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for _, name, _, _, size, value in accesses_of(events):
        if size:
            found[name, size].append(bin(value).count("1"))
    return [
        {
            "kind": kind,
            "size": size,
            "accesses": len(ones),
            "ones": sum(ones),
            "zeros": 8 * size * len(ones) - sum(ones),
        }
        for (kind, size), ones in sorted(found.items())
    ]


def accesses(events: Sequence[Event]) -> dict[int, tuple[int, int, int]]:
    """Instruction -> loads, stores, bytes."""
    found: dict[int, tuple[int, int, int]] = {}
    for _, name, subject, _, size, _ in accesses_of(events):
        loads, stores, total = found.get(subject, (0, 0, 0))
        found[subject] = (loads + (name == "load"), stores + (name == "store"), total + size)
    return found


def timed_slices(
    events: Sequence[Event], hand_overs: dict[int, list[tuple[int, int]]], length: int
) -> list[int | None]:
    """The slice of the run's time of each load and store; None where no time is known.

    hand_overs: of each stream the time, and how many accesses of the stream came before.
    """
    done: Counter[int] = Counter()
    found: list[int | None] = []
    for stream, *_ in accesses_of(events):
        number = done[stream]
        done[stream] += 1
        slice_ = None
        for (since, before), (until, after) in pairwise(hand_overs.get(stream, ())):
            if before <= number < after:
                slice_ = int(since + (number - before) / (after - before) * (until - since)) // length
        found.append(slice_)
    return found


def timed_footprint(events: Sequence[Event], slices: Sequence[int | None], granule: int, length: int) -> dict[str, Any]:
    chosen = accesses_of(events)
    rows: list[dict[str, int]] = []
    seen: set[int] = set()
    for number in sorted({slice_ for slice_ in slices if slice_ is not None}):
        part = [event for event, slice_ in zip(chosen, slices) if slice_ == number]
        here = {place for event in part for place in touched(event, granule)}
        rows.append(
            {
                "nanoseconds": number * length,
                "accesses": len(part),
                "touched_bytes": len(here) * granule,
                "new_bytes": len(here - seen) * granule,
                "total_bytes": len(here | seen) * granule,
            }
        )
        seen |= here
    return {
        "slices": rows,
        "summary": {
            "bytes": len({place for event in chosen for place in touched(event, granule)}) * granule,
            "largest_working_set": max((row["touched_bytes"] for row in rows), default=0),
            "nanoseconds_per_slice": length,
            "untimed_accesses": sum(slice_ is None for slice_ in slices),
        },
    }


def timed_heatmap(
    events: Sequence[Event], slices: Sequence[int | None], granule: int
) -> dict[str, Counter[tuple[str, int]]]:
    """Loads and stores by address of the granule and slice."""
    counts: dict[str, Counter[tuple[str, int]]] = {"load": Counter(), "store": Counter()}
    for event, slice_ in zip(accesses_of(events), slices):
        if slice_ is not None:
            for number in touched(event, granule):
                counts[event[1]][hex(number * granule), slice_] += 1
    return counts
