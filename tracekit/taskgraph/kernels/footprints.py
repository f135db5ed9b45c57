"""How much memory each step touches: granules (cache lines, say), each counted once a step, whoever else touches it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import inlined, kernel

TOUCHED = np.dtype([("stream", "u4"), ("reserved", "u4"), ("granules", "i8"), ("accesses", "i8")], align=True)
"""What a step has touched. The rows of one stream are in the order of its steps; row 0 is none."""

GRANULE_BITS = 48
"""Of the number of a granule in a key; those above are the stream's."""
MOST_STREAMS = 1 << 16
"""Streams that a key has room for."""
RECENT = 1024
"""Granules of which is remembered which step touched them last; a power of two."""


class Footprints(NamedTuple):
    """What steps have touched, while events come stream by stream in batches."""

    steps: Arena  # TOUCHED
    now: HashTable  # key: a stream plus 1; `step`: its present row of steps
    last: HashTable  # key: stream and granule; `step`: the stream's last step that touched it
    recent: NDArray[np.int64]  # (RECENT, 2): a granule, and the step that touched it last
    kinds: NDArray[np.uint8]  # by event code: BEGINS, ACCESSES or 0


BEGINS, ACCESSES = 1, 2


@kernel
def touch(made: Footprints, stream: Any, kinds: Any, addresses: Any, sizes: Any, bits: Any) -> None:
    """Take events of one stream, in their order; granules are of ``1 << bits`` bytes."""
    own = row_of(made.now, stream + 1)
    if made.now.rows[own].step == 0:
        made.now.rows[own].step = _begin(made, stream)
    step = made.now.rows[own].step
    for place in range(len(kinds)):
        what = made.kinds[kinds[place]]
        if what == BEGINS:
            step = _begin(made, stream)
        elif what == ACCESSES:
            made.steps.rows[step].accesses += 1
            if sizes[place] > 0:
                low = np.int64(addresses[place] >> np.uint64(bits))
                high = np.int64((addresses[place] + np.uint64(sizes[place]) - np.uint64(1)) >> np.uint64(bits))
                for granule in range(low, high + 1):
                    _mark(made, stream, step, granule)
    made.now.rows[own].step = step


@kernel
def _begin(made: Footprints, stream: Any) -> int:
    row = take(made.steps, 1)
    made.steps.rows[row].stream = stream
    return int(row)


@inlined
def _mark(made: Footprints, stream: Any, step: Any, granule: Any) -> None:
    """A step touches a granule."""
    known = made.recent[granule & (RECENT - 1)]
    if known[0] != granule or known[1] != step:
        known[0], known[1] = granule, step
        last = made.last.rows[row_of(made.last, np.uint64(stream) << np.uint64(GRANULE_BITS) | np.uint64(granule))]
        if last.step != step:
            last.step = step
            made.steps.rows[step].granules += 1
