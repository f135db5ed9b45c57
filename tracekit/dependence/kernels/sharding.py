"""What several workers have in common that share memory by its pages.

Each handles the accesses to its own pages, and all else as if it were alone. Only an *execution* (executions.py) that
reached pages of several workers needs more: each of them may find the same dependence in it, which counts once. So each
counts as if it were alone, and notes what it counted; ``dependence/reduce.py`` takes back all but the first, and
lists its object. Whether a load is exposed that read only bytes without a store here, its other parts say: it is noted
until all workers are done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import USED, Arena, take
from tracekit.containers.kernels.hash_table import GOLDEN
from tracekit.jit.kernel import inlined, kernel

FINDING = np.dtype(
    [
        ("row", "<i8"),  # of the dependence, or of the level that carries it
        ("execution", "<i8"),
        ("time", "<i8"),  # of the access that found it, and the first of its bytes in the page: which worker was first
        ("address", "<i8"),
        ("about", "<i8"),  # the identity of the object, the distance; NOTHING if it was not asked for
    ]
)
LOAD_PART = np.dtype(
    [
        ("access", "<i8"),  # its row
        ("time", "<i8"),  # of the load
        ("node", "<i8"),  # of a loop around a part that read no byte with a store; NOTHING: one that read some
    ]
)
"""A worker's part of a load that reaches pages of several workers: the load is exposed if no part of it read a byte
that was stored before."""
NOTHING = -1
# Whose pages were reached, as flags.
HERE = 1  # this worker's
ELSEWHERE = 2  # another worker's

# Elements of Shared.control.
MAY_BE_SHARED = 0  # 1 if other workers may find what the present part of an access finds
TIME = 1  # of the access
ADDRESS = 2  # of the part
LOADS = 3  # whose pages the loads of the present execution reached: HERE | ELSEWHERE
STORES = 4  # the same of its stores; LOADS + 1
DEPENDENCES_BEFORE = 5  # findings in `dependences` before the present execution
LEVELS_BEFORE = 6  # findings in `levels` before it
CONTROL = 7
"""How many there are."""


class Part(NamedTuple):
    """What a worker is given of an access: the services of this name (tracekit.module.SERVICES)."""

    start: int
    whole: int
    mine: int


class Shared(NamedTuple):
    """What was found in executions that reached pages of several workers, or that may do so yet."""

    dependences: Arena  # FINDING
    levels: Arena  # FINDING
    load_parts: Arena  # LOAD_PART
    control: NDArray[np.int64]


@inlined
def owner_of(page: Any, workers: Any) -> Any:
    """The worker that has a page: spread evenly whatever the stride, without a division."""
    mixed = (np.uint64(page) * GOLDEN) >> np.uint64(32)
    return np.int64((mixed * np.uint64(workers)) >> np.uint64(32))


@inlined
def open_execution(shared: Any) -> None:
    """An execution of several accesses begins."""
    control = shared.control
    control[LOADS] = control[STORES] = 0
    control[DEPENDENCES_BEFORE] = shared.dependences.control[USED]
    control[LEVELS_BEFORE] = shared.levels.control[USED]


@inlined
def enter_part(shared: Any, part: Any, storing: Any, is_long: Any, time: Any, address: Any) -> None:
    """The part of an access that comes next; `is_long`: it belongs to an execution of several accesses."""
    control = shared.control
    control[MAY_BE_SHARED] = 0
    if is_long or not part.whole:
        control[MAY_BE_SHARED] = 1
        control[TIME] = time
        control[ADDRESS] = address
        reached = HERE if part.mine else ELSEWHERE
        if not part.whole:
            reached = HERE | ELSEWHERE
        control[LOADS + storing] |= reached


@kernel
def note(findings: Arena, control: Any, row: Any, execution: Any, about: Any) -> None:
    """Note what the present part found, and counted."""
    finding = findings.rows[take(findings, 1)]
    finding.row = row
    finding.execution = execution
    finding.time = control[TIME]
    finding.address = control[ADDRESS]
    finding.about = about


@kernel
def note_load_part(parts: Arena, access: Any, time: Any, node: Any) -> None:
    """Note a part of a load."""
    part = parts.rows[take(parts, 1)]
    part.access = access
    part.time = time
    part.node = node


@inlined
def is_alone(control: Any) -> Any:
    """Whether no other worker can have found what this one found in the present execution."""
    return control[LOADS] != HERE | ELSEWHERE and control[STORES] != HERE | ELSEWHERE
