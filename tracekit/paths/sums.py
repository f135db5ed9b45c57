"""What the rows of the table of paths (kernels/layouts.py) come to: paths, blocks, edges, calls and their counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag
from tracekit.paths.counter import PathCounter
from tracekit.paths.kernels.layouts import BACK, BEGINS, CALLS, GOES_ON, KIND
from tracekit.program.program import Program

I8 = NDArray[np.int64]

RETURN, TAIL_CALL, BACK_EDGE, CUT = "return", "tail call", "back edge", "cut"
"""How a path ends. CUT: the run, the thread or the activation ended in the middle, or the table had no room."""


class Sums(NamedTuple):
    """What paths did: loads, stores and bytes of their own, and accesses of what they called."""

    loads: int
    stores: int
    bytes: int
    inner: int


class Path(NamedTuple):
    """A path that was taken."""

    blocks: tuple[int, ...]
    ends: str
    header: int
    """The block that a back edge leads to, or NONE."""
    frequency: int
    sums: Sums


class Call(NamedTuple):
    """Calls from a block, NONE if no instrumented function calls, into a function."""

    block: int
    function: int
    times: int
    accesses: int
    """In the activations, and in what they called; of a recursion only the outermost activation counts."""


class PathSums:
    """The sums of one run."""

    def __init__(self, program: Program, counter: PathCounter) -> None:
        self.program, self.counter = program, counter
        rows = counter.rows
        self.rows = rows
        self.kind = (rows["kind"] & KIND).astype(np.int64)
        self.kind[0] = -1
        self.before = (rows["key"] >> np.uint64(32)).astype(np.int64)
        self.segment = (rows["key"] & np.uint64(NONE)).astype(np.int64)
        self.count = rows["count"].astype(np.int64)
        known = np.flatnonzero(self.kind >= 0)
        self.visits = np.zeros(len(rows), np.int64)
        """How often a path came to a row."""
        np.add.at(self.visits, rows["next"][known].astype(np.int64), self.count[known])
        segments, members = counter.walked.segments, counter.walked.members
        self._first = segments["first"].astype(np.int64)
        self._blocks = segments["blocks"].astype(np.int64)
        self._members = members.astype(np.int64)

    def _of_kind(self, *kinds: int) -> I8:
        return np.flatnonzero(np.isin(self.kind, kinds))

    def block_counts(self) -> I8:
        """How often each block of the program ran."""
        counts = np.zeros(len(self.program.blocks), np.int64)
        nodes = self._of_kind(GOES_ON, BEGINS)
        by_segment = np.zeros(len(self._first), np.int64)
        np.add.at(by_segment, self.segment[nodes], self.visits[nodes])
        for segment in np.flatnonzero(by_segment).tolist():
            np.add.at(counts, self._of_segment(segment), by_segment[segment])
        return counts

    def _of_segment(self, segment: int) -> I8:
        return self._members[self._first[segment] : self._first[segment] + self._blocks[segment]]

    def edges(self) -> dict[tuple[int, int], int]:
        """How often control went from a block to another one of its function; what follows a call is no edge."""
        found: dict[tuple[int, int], int] = {}
        nodes = self._of_kind(GOES_ON, BEGINS)
        by_segment = np.zeros(len(self._first), np.int64)
        np.add.at(by_segment, self.segment[nodes], self.visits[nodes])
        for segment in np.flatnonzero(by_segment).tolist():
            blocks = self._of_segment(segment).tolist()
            for edge in itertools.pairwise(blocks):
                found[edge] = found.get(edge, 0) + int(by_segment[segment])
        last = self._members[self._first + self._blocks - 1] if len(self._members) else self._first
        steps = self._of_kind(GOES_ON, BACK)
        sources = last[self.segment[self.before[steps]]].tolist()
        targets = self._members[self._first[self.segment[steps]]].tolist()
        for source, target, count in zip(sources, targets, self.count[steps].tolist()):
            found[source, target] = found.get((source, target), 0) + count
        continues, call = self.program.blocks["continues"], self.program.blocks["call"]
        return {
            (source, target): count
            for (source, target), count in found.items()
            if count and (continues[target] == NONE or continues[target] != call[source])
        }

    def calls(self) -> list[Call]:
        """Calls between instrumented functions, and what was called by no such function."""
        function = self.program.blocks["function"]
        found: dict[tuple[int, int], list[int]] = {}
        for row in self._of_kind(CALLS, BEGINS).tolist():
            first = int(self._members[self._first[self.segment[row]]])
            if not self.program.blocks["flags"][first] & BlockFlag.ENTRY or not self.count[row]:
                continue
            site = NONE
            if self.kind[row] == CALLS:
                site = int(self._of_segment(int(self.segment[self.before[row]]))[-1])
            sums = found.setdefault((site, int(function[first])), [0, 0])
            sums[0] += int(self.count[row])
            sums[1] += int(self.rows["below"][row])
        return [Call(block, callee, *sums) for (block, callee), sums in found.items()]

    def paths(self) -> list[Path]:
        """Every path that was taken, however it ended; one for the same blocks, if records divide them differently."""
        found: dict[tuple[tuple[int, ...], str, int], Path] = {}
        for path in self._ended():
            known = found.get(path[:3])
            if known is not None:
                path = Path(*path[:3], known.frequency + path.frequency, Sums(*_plus(known.sums, path.sums)))
            found[path[:3]] = path
        return list(found.values())

    def _ended(self) -> Iterator[Path]:
        backs: dict[int, dict[int, tuple[int, Any]]] = {}
        for row in self._of_kind(BACK).tolist():
            header = int(self._members[self._first[self.segment[row]]])
            by_header = backs.setdefault(int(self.before[row]), {})
            known = by_header.get(header, (0, (0, 0, 0, 0)))
            by_header[header] = (known[0] + int(self.count[row]), _plus(known[1], self._sums(row)))
        ended = self.visits.copy()
        steps = self._of_kind(GOES_ON)
        np.subtract.at(ended, self.before[steps], self.count[steps])
        chains = _Chains(self)
        flags = self.program.blocks["flags"]
        for row in self._of_kind(GOES_ON, BEGINS).tolist():
            left = int(ended[row])
            if not left:
                continue
            blocks, each = chains.of(row)
            for header, (count, sums) in sorted(backs.get(row, {}).items()):
                left -= count
                yield Path(blocks, BACK_EDGE, header, count, _total(each, count, sums))
            if left:
                flag = flags[blocks[-1]]
                ends = RETURN if flag & BlockFlag.RETURNS else TAIL_CALL if flag & BlockFlag.TAIL_CALL else CUT
                yield Path(blocks, ends, NONE, left, _total(each, left, self._sums(row)))

    def _sums(self, row: int) -> tuple[int, int, int, int]:
        found = self.rows[row]
        return int(found["loads"]), int(found["stores"]), int(found["bytes"]), int(found["inner"])


def _plus(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one + other for one, other in zip(first, second))


def _total(each: tuple[int, ...], frequency: int, beside: tuple[int, ...]) -> Sums:
    """`each`: loads, stores and bytes that blocks tell; `beside`: what they do not tell, and calls."""
    return Sums(*(one * frequency + other for one, other in zip((*each, 0), beside)))


class _Chains:
    """From a row to the blocks of its path and what they do each time."""

    def __init__(self, sums: PathSums) -> None:
        self._sums = sums
        work = sums.counter.work
        self._work = list(zip(*(column.tolist() for column in work)))

    def of(self, row: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The blocks from the beginning to the end of a row, and the loads, stores and bytes of them all."""
        segments: list[int] = []
        while row:
            segments.append(int(self._sums.segment[row]))
            row = int(self._sums.before[row])
        segments.reverse()
        blocks = tuple(block for segment in segments for block in self._sums._of_segment(segment).tolist())
        each = (0, 0, 0)
        for segment in segments:
            each = _plus(each, self._work[segment])  # type: ignore[assignment]
        return blocks, each
