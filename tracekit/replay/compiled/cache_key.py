"""What identifies the code of a path: by it the code is found again on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.replay.compiled.loop_chains import chain_of
from tracekit.replay.kernels import layouts


def path_key(tables: layouts.Tables, before: Sequence[int], number: int) -> bytes:
    """All that the text of a path depends on: the same for the same path in each process."""
    path = tables.templates[number]
    groups = [(int(path["first_template_event"]), int(path["template_events"]))]
    first, count = int(path["first_dynamic_step"]), int(path["dynamic_steps"])
    steps = tables.dynamic_steps[first : first + count]
    groups += [(int(step["first_template_event"]), int(step["template_events"])) for step in steps]
    define, change = int(path["first_define"]), int(path["first_change"])
    # Where its rows lie is no part of its code.
    own = [path[name].item() for name in layouts.TEMPLATE.names or () if not name.startswith("first_")]
    numbers: list[Any] = [number, own, tables.functions[path["function"]].item(), [events for _, events in groups]]
    numbers += [
        [step[name].item() for name in layouts.DYNAMIC_STEP.names or () if name != "first_template_event"]
        for step in steps
    ]
    for block in before:
        at = tables.blocks[block]
        numbers += [(block, chain_of(tables.loops, int(at["loop"])), int(at["test_of"]))]
    numbers += [chain_of(tables.loops, int(path[name])) for name in ("loop", "last_loop")]
    # How many rows follow is said by the numbers.
    rows = []
    for row, events in groups:
        behind = row + -(-events // layouts.GROUP)
        rows += [tables.template_events[row:behind], tables.strides[row * layouts.GROUP : behind * layouts.GROUP]]
    rows += [tables.defines[define : define + int(path["defines"])]]
    rows += [tables.changes[change : change + int(path["changes"])]]
    return b"".join([repr(numbers).encode(), *map(_fields_of, rows)])


def _fields_of(rows: NDArray[np.void]) -> bytes:
    """What rows hold, field by field, without what lies between fields."""
    return b"".join(rows[name].tobytes() for name in rows.dtype.names or ())
