"""The kernel that translates the addresses of a batch of events (tracekit/translation)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.jit.kernel import kernel
from tracekit.translation.kernels.translation import (
    allocated,
    block_at,
    entered,
    freed,
    left,
    loaded,
    placed,
    unloaded,
)

GIVES = 255
"""The action of an event that has an address and changes nothing; of others it is the event's code, or 0."""
assert GIVES not in CODE.values()

LOAD, HEAP_ALLOC, STACK_ALLOC, GLOBAL_INIT = (
    CODE[name] for name in ("load", "heap_alloc", "stack_alloc", "global_init")
)
HEAP_FREE, STACK_FREE, IMAGE_UNLOAD = (CODE[name] for name in ("heap_free", "stack_free", "image_unload"))


@kernel
def translate(
    translation: Any,
    actions: Any,
    kind: Any,
    subject: Any,
    address: Any,
    size: Any,
    group: Any,
    number: Any,
    offset: Any,
) -> None:
    """Follow objects through events, and write what is at the address of each.

    `actions` (uint8 [256]) by event; `kind`, `subject`, `address`, `size` are columns; `group`, `number` and `offset`
    (int64, zeros) get rows of the same length.
    """
    for event in range(kind.size):
        action = actions[kind[event]]
        if action == 0:
            continue
        where, who, much = np.int64(address[event]), np.int64(subject[event]), np.int64(size[event])
        if action == LOAD:
            loaded(translation, who, where)
        elif action == HEAP_ALLOC:
            allocated(translation, who, who, np.int64(0), where, much)
        elif action == STACK_ALLOC:
            entered(translation, who, np.int64(0), where, much)
        elif action == GLOBAL_INIT:
            placed(translation, who, where, much)
        elif action == IMAGE_UNLOAD:
            unloaded(translation, who)
            continue
        here = block_at(translation, where)
        group[event] = here.group
        number[event] = here.number
        offset[event] = where - here.start
        if action == HEAP_FREE:
            freed(translation, who, where, much)
        elif action == STACK_FREE:
            left(translation, where)
