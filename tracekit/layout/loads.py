"""Loads that a prefetch would help: with a stride, through an index, or along pointers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.image import EdgeKind, NodeKind, OpKind

if TYPE_CHECKING:
    from tracekit.program.program import Program

Json = dict[str, Any]

STRONG = 0.7
"""Share of its loads that one stride of a strided load has."""

Node = tuple[int, int]


class Sources:
    """Where the addresses of loads come from, inside loops."""

    def __init__(self, program: Program) -> None:
        self.kinds = program.ops["kind"]
        edges = program.edges[program.edges["kind"] == EdgeKind.REGISTER]
        self._before: dict[Node, list[Node]] = {}
        self._known: dict[int, set[int]] = {}
        for _, from_kind, to_kind, _, source, target in edges.tolist():
            self._before.setdefault((to_kind, target), []).append((from_kind, source))

    def loads(self, op: int) -> set[int]:
        """The loads whose values the address of a load is computed from, also in earlier iterations."""
        if op not in self._known:
            self._known[op] = self._loads(op)
        return self._known[op]

    def _loads(self, op: int) -> set[int]:
        found: set[int] = set()
        seen: set[Node] = set()
        waiting = list(self._before.get((NodeKind.OP, op), ()))
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node[0] == NodeKind.OP:
                if self.kinds[node[1]] == OpKind.LOAD:
                    found.add(node[1])
            else:
                waiting += self._before.get(node, ())
        return found


def follows_pointers(sources: Sources, op: int) -> bool:
    """Whether the address of a load comes of a load whose address comes of its own value, that of the list's next."""
    return any(each in _behind(sources, each) for each in {op} | _behind(sources, op))


def _behind(sources: Sources, op: int) -> set[int]:
    """All loads that the address of a load rests on."""
    found: set[int] = set()
    waiting = {op}
    while waiting:
        new = sources.loads(waiting.pop()) - found
        found |= new
        waiting |= new
    return found


KEPT_STRIDES = 8
"""Strides of a load that are kept, those that come most: a load that jumps about has millions."""


def most_common_strides(
    loads: NDArray[np.int64], strides: NDArray[np.int64], counts: NDArray[np.int64]
) -> dict[int, dict[int, int]]:
    """Load -> stride -> how often, the KEPT_STRIDES of each load that come most; of as many, the smaller ones.

    Rows, in any order: load ``loads[k]`` has ``counts[k]`` times moved on by ``strides[k]`` bytes.
    """
    order = np.lexsort((strides, -counts, loads))
    sorted_loads = loads[order]
    rank = np.arange(order.size) - np.searchsorted(sorted_loads, sorted_loads)
    order = order[rank < KEPT_STRIDES]
    found: dict[int, dict[int, int]] = {}
    for load, stride, count in zip(loads[order].tolist(), strides[order].tolist(), counts[order].tolist()):
        found.setdefault(load, {})[stride] = count
    return found


def strided(ops: Any, strides: Mapping[int, Mapping[int, int]]) -> dict[int, tuple[int, float]]:
    """Instruction -> the stride, not 0, of at least STRONG of its loads, and their share."""
    found = {}
    for op, counts in strides.items():
        stride, count = max(counts.items(), key=lambda item: (item[1], -item[0]))
        share = count / int(ops["loads"][op])
        if stride != 0 and share >= STRONG:
            found[op] = (stride, share)
    return found


def prefetched(
    program: Program, ops: Any, strides: Mapping[int, Mapping[int, int]], latency: int, least: float
) -> list[Json]:
    """The loads that begin at least `least` of all visits, those that begin most first.

    ops: ``kernels.visits.OP``; strides: instruction -> stride -> how often; latency: accesses while a line comes.
    """
    total = max(int(ops["begun"].sum()), 1)
    sources, moving = Sources(program), strided(ops, strides)
    rows = []
    for op in np.flatnonzero(ops["begun"][:-1] >= max(least * total, 1)).tolist():
        if program.ops["kind"][op] not in (OpKind.LOAD, OpKind.ATOMIC):
            continue
        row = ops[op]
        gap = row["gaps"] / row["gap_count"] if row["gap_count"] else 0.0
        ahead = max(int(np.ceil(latency / gap)), 1) if gap else None
        behind = [source for source in sorted(sources.loads(op)) if source in moving]
        stride = moving[op][0] if op in moving else None
        kind = "other"
        if stride is not None:
            kind = "strided"
        elif follows_pointers(sources, op):
            kind, ahead = "pointer", None
        elif behind:
            kind = "indirect"
        else:
            ahead = None
        rows.append(
            {
                "instruction": program.instruction(op),
                "kind": kind,
                "begun": int(row["begun"]),
                "percent": round(100 * int(row["begun"]) / total, 1),
                "loads": int(row["loads"]),
                "stride": stride,
                "index": program.instruction(behind[0]) if kind == "indirect" else None,
                "gap": round(float(gap), 1),
                "ahead": ahead,
                "bytes_ahead": None if stride is None or ahead is None else stride * ahead,
            }
        )
    return sorted(rows, key=lambda row: -row["begun"])


def load_merge_state(ops: Any, strides: Mapping[int, Mapping[int, int]]) -> Json:
    """What several runs of one build add: of instructions ADDING, and [instruction, stride, count]."""
    used = np.flatnonzero((ops["begun"] > 0) | (ops["loads"] > 0)).tolist()
    most = {
        op: sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:KEPT_STRIDES]
        for op, counts in sorted(strides.items())
    }
    return {
        "ops": [[op, *(int(ops[name][op]) for name in ADDING)] for op in used],
        "strides": [[op, stride, count] for op, counts in most.items() for stride, count in counts],
    }


ADDING = ("loads", "begun", "gaps", "gap_count")


def joined_loads(runs: Iterable[Mapping[str, Any]], instructions: int) -> tuple[Any, dict[int, dict[int, int]]]:
    """Instructions (one more: library code), and strides, of several runs, as :func:`prefetched` takes them."""
    ops = np.zeros(instructions + 1, [(name, np.int64) for name in ADDING])
    strides: dict[int, dict[int, int]] = {}
    for run in runs:
        for op, *numbers in run["ops"]:
            for name, number in zip(ADDING, numbers):
                ops[name][op] += number
        for op, stride, count in run["strides"]:
            known = strides.setdefault(op, {})
            known[stride] = known.get(stride, 0) + count
    return ops, strides
