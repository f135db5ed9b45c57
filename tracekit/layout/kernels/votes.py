"""What the objects of each group are: how large, and which structures they are accessed as."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import inlined

VOTE = [
    ("accesses", "<i8"),
    ("aligned", "<i8"),  # those whose structure begins a multiple of its size from that of the first one
    ("first", "<i8"),  # bytes from the object's start to where the structure of the first access begins
    ("least", "<i8"),
    ("greatest", "<i8"),
    ("period", "<i8"),  # greatest common divisor of the distances from `first`; 0: there is none
]
"""By group << 32 | structure."""
OBJECTS = [("accesses", "<i8"), ("end", "<i8"), ("least", "<i8"), ("greatest", "<i8")]
"""By group: loads and stores, one past the last byte that one of them touched; sizes of objects."""


class Votes(NamedTuple):
    """Tables that a first pass fills."""

    votes: HashTable  # VOTE
    groups: HashTable  # OBJECTS, by group
    of_op: NDArray[np.int64]  # instruction: structure, or 0
    offset_of_op: NDArray[np.int64]
    sizes: NDArray[np.int64]  # of structures


@inlined
def voted(votes: Any, instruction: Any, group: Any, offset: Any, size: Any) -> None:
    """A load or a store."""
    here = votes.groups.rows[row_of(votes.groups, group)]
    here.accesses += 1
    here.end = max(here.end, offset + size)
    op = np.uint64(min(instruction, votes.of_op.size - 1))
    structure = votes.of_op[op]
    if structure != 0 and group != 0:
        start = offset - votes.offset_of_op[op]
        vote = votes.votes.rows[row_of(votes.votes, (group << 32) | structure)]
        if vote.accesses == 0:
            vote.first = start
            vote.least = start
            vote.greatest = start
        vote.accesses += 1
        vote.aligned += np.int64((start - vote.first) % votes.sizes[np.uint64(structure)] == 0)
        vote.least = min(vote.least, start)
        vote.greatest = max(vote.greatest, start)
        distance = abs(start - vote.first)
        if vote.period == 0:
            vote.period = distance
        rest = distance % max(vote.period, 1)
        while rest != 0:
            vote.period, rest = rest, vote.period % rest


@inlined
def sized(votes: Any, group: Any, offset: Any, size: Any) -> None:
    """An object begins, or grows behind `offset`."""
    here = votes.groups.rows[row_of(votes.groups, group)]
    end = offset + size
    here.greatest = max(here.greatest, end)
    if offset == 0 and end > 0 and (here.least == 0 or end < here.least):
        here.least = end
