"""A LEAP profile, and what follows from its descriptors alone (Wu et al., CGO 2004, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.arena import taken
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.leap.kernels.compressor import Descriptors, finish
from tracekit.leap.kernels.conflicts import group_conflicts

Rows = NDArray[Any]

RECORD_BYTES = 12
"""Of an access in a raw trace: instruction (4) and address (8)."""
POINT_BYTES = 6 * 8 + 4
LINE_BYTES = 2 * 8 + 4
STREAM_BYTES = 2 * 4 + 8 + 5 * 8
"""Instruction and group, accesses, and the five numbers of what no descriptor has room for."""
STRONG = 0.7
"""Share of its accesses that one stride of a strongly strided instruction has."""

SUMMARY = np.dtype(
    [
        ("group", "<u4"),
        ("access", "<u4"),  # 2 * instruction, of a store one more
        ("full", "<u4"),
        ("unused", "<u4"),
        ("accesses", "<i8"),
        ("captured", "<i8"),  # accesses that descriptors of points have
        ("in_lines", "<i8"),  # ... of offsets
        ("points", "<i8", (2,)),  # the first of its descriptors, and one past the last
        ("lines", "<i8", (2,)),
        ("low", "<i8", (3,)),  # the least object, offset and time that descriptors of points have
        ("high", "<i8", (3,)),
        ("beyond", "<i8", (5,)),  # of the others: least and greatest object, offset; granularity
    ]
)
"""A stream of a profile."""
DESCRIBED = ("object", "offset", "time")


@dataclass(frozen=True)
class LeapProfile:
    """Streams ascending by group, in it stores before loads, then by access; their descriptors in this order."""

    streams: Rows  # SUMMARY
    points: Rows  # POINT
    lines: Rows  # LINE

    @classmethod
    def of(cls, states: Sequence[Descriptors]) -> LeapProfile:
        """The profile of a finished replay; each of `states` has the streams of other accesses."""
        streams: list[Rows] = []
        points: list[Rows] = []
        lines: list[Rows] = []
        before = 0
        for state in states:
            finish(state)
            rows = used_rows(state.streams)[1:]
            streams.append(rows)
            for source, into in ((taken(state.points), points), (taken(state.lines), lines)):
                copy = source.copy()
                copy["stream"] += before - 1
                into.append(copy)
            before += len(rows)
        return _ordered(np.concatenate(streams), np.concatenate(points), np.concatenate(lines))

    @property
    def bytes(self) -> int:
        """How large it is, each number as it is."""
        return len(self.streams) * STREAM_BYTES + len(self.points) * POINT_BYTES + len(self.lines) * LINE_BYTES

    def summary(self) -> dict[str, Any]:
        """Size and sample quality (the paper's Table 1)."""
        accesses = int(self.streams["accesses"].sum())
        instructions, at = np.unique(self.streams["access"], return_inverse=True)
        whole = np.ones(len(instructions), np.bool_)
        np.logical_and.at(whole, at, self.streams["in_lines"] == self.streams["accesses"])
        return {
            "accesses": accesses,
            "instructions": len(instructions),
            "streams": len(self.streams),
            "descriptors": len(self.points) + len(self.lines),
            "profile_bytes": self.bytes,
            "compression_ratio": ratio(accesses * RECORD_BYTES, self.bytes),
            "accesses_captured": share(int(self.streams["in_lines"].sum()), accesses),
            "accesses_captured_with_time": share(int(self.streams["captured"].sum()), accesses),
            "instructions_captured": share(int(whole.sum()), len(instructions)),
        }

    def executions(self) -> dict[int, int]:
        """Access -> how often there was one."""
        accesses, at = np.unique(self.streams["access"], return_inverse=True)
        counts = np.bincount(at, self.streams["accesses"]).astype(np.int64)
        return dict(zip(accesses.tolist(), counts.tolist()))

    def dependences(self) -> dict[tuple[int, int], float]:
        """(Store, load), as accesses -> conflicts over executions of the load, where there are any."""
        pairs = hash_table([("conflicts", "<f8")])
        most = int((self.streams["points"][:, 1] - self.streams["points"][:, 0]).max(initial=0)) + 1
        room = np.zeros((most, 3), np.int64)
        low, high = np.zeros(most, np.int64), np.zeros(most, np.int64)
        bounds = bounds_of(self.points)
        group_conflicts(self.streams, self.points, bounds, pairs, room, np.zeros(3, np.int64), low, high)
        executions = self.executions()
        return {
            (key >> 32, key & 0xFFFF_FFFF): min(conflicts / executions[key & 0xFFFF_FFFF], 1.0)
            for key, conflicts in used_rows(pairs)[1:].tolist()
        }

    def strides(self) -> dict[int, tuple[int, float]]:
        """Access of a strongly strided instruction -> its stride, which is not 0, and the share that has it.

        A stream that has more than its descriptors is taken to go on as these.
        """
        return strongly_strided(*self.stride_counts(), self.executions())

    def stride_counts(self) -> tuple[Any, Any, Any]:
        """Accesses, strides that are not 0, and how many executions have them (a fraction where a stream has more)."""
        moving = self.lines[(self.lines["count"] > 1) & (self.lines["stride"] != 0)]
        owner = self.streams[moving["stream"]]
        scale = owner["accesses"] / owner["in_lines"]
        keys, at = np.unique(
            np.stack([owner["access"].astype(np.int64), moving["stride"]]), axis=1, return_inverse=True
        )
        counts = np.bincount(at.ravel(), (moving["count"] - 1) * scale, keys.shape[1])
        return keys[0], keys[1], counts

    def captured(self) -> dict[int, tuple[int, int]]:
        """Access -> how many of its executions descriptors of offsets have, and those of points."""
        accesses, at = np.unique(self.streams["access"], return_inverse=True)
        sums = (np.bincount(at, self.streams[name]).astype(np.int64).tolist() for name in ("in_lines", "captured"))
        return dict(zip(accesses.tolist(), zip(*sums)))


def bounds_of(points: Rows) -> NDArray[np.int64]:
    """The least and the greatest object, offset and time of each descriptor of points: shape (points, 6)."""
    bounds = np.empty((len(points), 2 * len(DESCRIBED)), np.int64)
    for place, name in enumerate(DESCRIBED):
        last = points[name] + points[f"{name}_stride"] * (points["count"] - 1)
        np.minimum(points[name], last, out=bounds[:, 2 * place])
        np.maximum(points[name], last, out=bounds[:, 2 * place + 1])
    return bounds


def strongly_strided(
    accesses: Any, strides: Any, counts: Any, executions: dict[int, int]
) -> dict[int, tuple[int, float]]:
    """Access -> the stride of at least STRONG of its executions, and their share."""
    return {
        access: (stride, count / executions[access])
        for access, stride, count in zip(accesses.tolist(), strides.tolist(), counts.tolist())
        if stride != 0 and count >= STRONG * executions[access]
    }


def _ordered(streams: Rows, points: Rows, lines: Rows) -> LeapProfile:
    """Everything in the order of the profile, whatever the order of its making."""
    made = np.zeros(len(streams), SUMMARY)
    made["group"] = streams["key"] & np.uint64(0xFFFF_FFFF)
    made["access"] = streams["key"] >> np.uint64(32)
    for name in ("full", "accesses"):
        made[name] = streams[name]
    beyond = ("least_object", "greatest_object", "least_offset", "greatest_offset", "granularity")
    for place, name in enumerate(beyond):
        made["beyond"][:, place] = streams[name]
    for rows, total in ((points, "captured"), (lines, "in_lines")):
        made[total] = np.bincount(rows["stream"], rows["count"], len(made)).astype(np.int64)
    bounds = bounds_of(points)
    made["low"], made["high"] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    np.minimum.at(made["low"], points["stream"], bounds[:, ::2])
    np.maximum.at(made["high"], points["stream"], bounds[:, 1::2])
    order = np.lexsort([made["access"], made["access"] & 1 == 0, made["group"]])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    made = made[order]
    parts = []
    for rows, name in ((points, "points"), (lines, "lines")):
        rows["stream"] = rank[rows["stream"]]
        rows = rows[np.argsort(rows["stream"], kind="stable")]
        made[name][:, 0] = np.searchsorted(rows["stream"], np.arange(len(made)))
        made[name][:, 1] = np.searchsorted(rows["stream"], np.arange(len(made)), side="right")
        parts.append(rows)
    return LeapProfile(made, *parts)


def share(part: int, whole: int) -> float:
    """In percent."""
    return round(100 * part / whole, 1) if whole else 0.0


def ratio(raw: int, packed: int) -> float:
    """How many times smaller."""
    return round(raw / packed, 1) if packed else 0.0
