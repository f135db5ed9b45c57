"""The merge state of leap: what profiles of several runs of one build say together of dependences and strides.

A descriptor has the times of one run. What follows from the descriptors of each run adds: executions, conflicts, and
accesses by stride.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracekit.leap.profile import RECORD_BYTES, LeapProfile, ratio, share, strongly_strided

Json = dict[str, Any]

PART = 1_000_000
"""Conflicts and strides are kept in millionths, as integers, so that it does not matter what is added first."""


def merge_state(
    profile: LeapProfile, pairs: Mapping[tuple[int, int], float], instruction: Callable[[int], Json | None]
) -> Json:
    """JSON values of one run; `pairs`: its dependences; `instruction` shows an access.

    ``accesses``: one row for each load or store of an instruction; ``conflicts``: [store, load, millionths], by rows of
    ``accesses``; ``sizes``: streams, descriptors and bytes of the profile.
    """
    executions = profile.executions()
    captured = profile.captured()
    strides: dict[int, list[list[int]]] = {}
    for access, stride, count in zip(*(column.tolist() for column in profile.stride_counts())):
        strides.setdefault(access, []).append([stride, round(PART * count)])
    order = sorted(executions)
    row_of = {access: row for row, access in enumerate(order)}
    return {
        "accesses": [
            {
                "instruction": instruction(access),
                "store": bool(access & 1),
                "executions": executions[access],
                "captured": captured[access][0],
                "captured_with_time": captured[access][1],
                "strides": strides.get(access, []),
            }
            for access in order
        ],
        "conflicts": [
            [row_of[store], row_of[load], round(PART * frequency * executions[load])]
            for (store, load), frequency in sorted(pairs.items())
        ],
        "sizes": [len(profile.streams), len(profile.points) + len(profile.lines), profile.bytes],
    }


def _name(access: Mapping[str, Any]) -> tuple[Any, ...]:
    """What an access is told apart by in all runs of a build; it orders them, too."""
    shown = access["instruction"]
    place = () if shown is None else (shown["file"], shown["line"], shown["column"], shown["id"])
    return (shown is None, *place, access["store"])


def merged(runs: Iterable[Mapping[str, Any]]) -> Json:
    """The merge state of all runs."""
    accesses: dict[tuple[Any, ...], Json] = {}
    strides: dict[tuple[Any, ...], Counter[int]] = {}
    conflicts: Counter[tuple[tuple[Any, ...], tuple[Any, ...]]] = Counter()
    sizes = [0, 0, 0]
    for run in runs:
        names = [_name(access) for access in run["accesses"]]
        for name, access in zip(names, run["accesses"]):
            old = accesses.setdefault(name, {**access, "executions": 0, "captured": 0, "captured_with_time": 0})
            for column in ("executions", "captured", "captured_with_time"):
                old[column] += access[column]
            strides.setdefault(name, Counter()).update(dict(map(tuple, access["strides"])))
        for store, load, count in run["conflicts"]:
            conflicts[names[store], names[load]] += count
        sizes = [one + other for one, other in zip(sizes, run["sizes"])]
    order = sorted(accesses)
    row_of = {name: row for row, name in enumerate(order)}
    return {
        "accesses": [{**accesses[name], "strides": sorted(map(list, strides[name].items()))} for name in order],
        "conflicts": sorted([row_of[store], row_of[load], count] for (store, load), count in conflicts.items()),
        "sizes": sizes,
    }


def tables(together: Mapping[str, Any]) -> Json:
    """The result that follows, as the module's own: ``summary``, ``dependences``, ``strided``."""
    accesses: Sequence[Mapping[str, Any]] = together["accesses"]
    streams, descriptors, size = together["sizes"]
    total = sum(access["executions"] for access in accesses)
    moving = [(row, *each) for row, access in enumerate(accesses) for each in access["strides"]]
    columns = np.array(moving, np.int64).reshape(-1, 3).T
    executions = {row: access["executions"] for row, access in enumerate(accesses)}
    strong = strongly_strided(columns[0], columns[1], columns[2] / PART, executions)
    return {
        "summary": {
            "accesses": total,
            "instructions": len(accesses),
            "streams": streams,
            "descriptors": descriptors,
            "profile_bytes": size,
            "compression_ratio": ratio(total * RECORD_BYTES, size),
            "accesses_captured": share(sum(access["captured"] for access in accesses), total),
            "accesses_captured_with_time": share(sum(access["captured_with_time"] for access in accesses), total),
            "instructions_captured": share(
                sum(access["captured"] == access["executions"] for access in accesses), len(accesses)
            ),
        },
        "dependences": [
            {
                "store": accesses[store]["instruction"],
                "load": accesses[load]["instruction"],
                "percent": round(100 * min(count / PART / accesses[load]["executions"], 1.0), 2),
                "loads": accesses[load]["executions"],
            }
            for store, load, count in together["conflicts"]
        ],
        "strided": [
            {
                "instruction": accesses[row]["instruction"],
                "stride": stride,
                "percent": round(100 * min(part, 1.0), 1),
                "accesses": accesses[row]["executions"],
            }
            for row, (stride, part) in sorted(strong.items())
        ],
    }
