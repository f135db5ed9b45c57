"""Finds the loop events between the blocks of a path, which follow from the path alone but for its first block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag
from tracekit.replay.kernels import layouts

Rows = NDArray[Any]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Crossings:
    """Loop events of paths: one row each in the columns kind, loop, size (`partial`), path, member, place.

    member: the block that begins with the event, a row of all paths' blocks; place: negative, ascending within a
    member, so that they stand before its operations; lasts: the loop is open at the end of the path.
    Per path: `inside`, it has some; `iterates`, a loop_iteration is among them; `unsure`, a loop is entered beside
    its header, or entered and iterated.
    """

    kind: I8
    loop: I8
    size: I8
    path: I8
    member: I8
    place: I8
    lasts: Bools
    inside: Bools
    iterates: Bools
    unsure: Bools
    loops: int

    def template_events(self) -> Rows:
        """The events as template events."""
        rows = np.zeros(len(self.kind), layouts.TEMPLATE_EVENT)
        rows["kind"], rows["subject"], rows["size"] = self.kind, self.loop, self.size
        return rows

    def entered_before(self, path: I8, loop: I8, member: I8) -> Bools:
        """Whether each path has entered each loop when it comes to the operations of each member."""
        entered = np.flatnonzero(self.kind == CODE["loop_invocation"])
        keys = self.path[entered] * self.loops + self.loop[entered]
        order = np.lexsort((self.member[entered], keys))
        keys, first = np.unique(keys[order], return_index=True)
        where = np.searchsorted(keys, path * self.loops + loop)
        known = where < len(keys)
        known[known] = keys[where[known]] == (path * self.loops + loop)[known]
        known[known] = self.member[entered][order][first[where[known]]] <= member[known]
        return known


def crossings(blocks: Rows, loops: Rows, members: I8, owner: I8, starts: I8) -> Crossings:
    """The crossings of all paths: `members` are their blocks, `owner` the path of each, `starts` their first ones."""
    depth = np.concatenate([loops["depth"].astype(np.int64), [0]])
    parent = np.concatenate([loops["parent"].astype(np.int64), [NONE]])
    parent[parent == NONE] = none = len(loops)
    loop = blocks["loop"][members].astype(np.int64)
    loop[loop == NONE] = none
    inner = np.ones(len(members), np.bool_)
    inner[starts] = False
    at = np.flatnonzero(inner)
    left, came = loop[at - 1], loop[at]
    tested = blocks["test_of"][members[at - 1]]
    header = blocks["flags"][members[at]] & BlockFlag.LOOP_HEADER != 0
    rows_of_kinds: list[tuple[I8, ...]] = []

    def add(kind: str, which: Bools, subject: I8, size: Any, place: I8) -> None:
        rows = np.flatnonzero(which)
        full = (np.full(len(at), CODE[kind]), subject, np.broadcast_to(size, len(at)), owner[at], at, place)
        rows_of_kinds.append(tuple(column[rows].astype(np.int64) for column in full))

    while bool(np.any(left != came)):
        out = (left != came) & (depth[left] >= depth[came])
        into = (left != came) & (depth[came] >= depth[left])
        add("loop_exit", out, left, left == tested, -(1 << 40) - depth[left])
        add("loop_invocation", into, came, 0, -(1 << 20) + depth[came])
        left, came = np.where(out, parent[left], left), np.where(into, parent[came], came)
    again = (came == loop[at]) & header & (came != none)
    add("loop_iteration", again, came, 0, np.full(len(at), -1))
    columns = [np.concatenate(parts) for parts in zip(*rows_of_kinds)]
    return _summed(columns, blocks, loops, members, owner, starts, at[(came != loop[at]) & ~header])


def _summed(columns: list[I8], blocks: Rows, loops: Rows, members: I8, owner: I8, starts: I8, beside: I8) -> Crossings:
    kind, loop, size, path, member, place = columns
    count = len(starts)
    iterates = np.bincount(path[kind == CODE["loop_iteration"]], minlength=count) != 0
    entered = np.bincount(path[kind == CODE["loop_invocation"]], minlength=count) != 0
    unsure = iterates & entered
    unsure[owner[beside]] = True
    ends = np.append(starts[1:], len(members)) - 1
    around = blocks["loop"][members[ends]].astype(np.int64)[path]
    while True:  # is the event's loop around the path's last block?
        up = np.flatnonzero((around != NONE) & (around != loop))
        if not len(up):
            break
        around[up] = loops["parent"][around[up]]
    # A loop that is left and entered again lasts from its last entry; both entries have the same effect.
    return Crossings(
        kind,
        loop,
        size,
        path,
        member,
        place,
        around == loop,
        np.bincount(path, minlength=count) != 0,
        iterates,
        unsure,
        len(loops) + 1,
    )
