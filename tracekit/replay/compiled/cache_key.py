"""What identifies the code of a path: by it the code is found again on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    parts: list[Any] = [number, own, tables.functions[path["function"]].item()]
    parts += [
        [step[name].item() for name in layouts.DYNAMIC_STEP.names or () if name != "first_template_event"]
        for step in steps
    ]
    for row, events in groups:
        behind = row + -(-events // layouts.GROUP)
        parts += [events, tables.template_events[row:behind].tolist()]
        parts += [tables.strides[row * layouts.GROUP : behind * layouts.GROUP].tolist()]
    parts += [tables.defines[define : define + int(path["defines"])].tolist()]
    parts += [tables.changes[change : change + int(path["changes"])].tolist()]
    for block in before:
        at = tables.blocks[block]
        parts += [(block, chain_of(tables.loops, int(at["loop"])), int(at["test_of"]))]
    parts += [chain_of(tables.loops, int(path[name])) for name in ("loop", "last_loop")]
    return repr(parts).encode()
