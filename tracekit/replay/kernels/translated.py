"""The kernel that translates the addresses of a batch of events (tracekit/translation)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.allocation_site import allocation_site
from tracekit.contexts.kernels.contexts import enter_function, enter_loop, iterate, leave_function, leave_loop
from tracekit.contexts.kernels.streams import CONTEXT
from tracekit.formats.events import CODE, CONTEXT_EVENTS
from tracekit.jit.kernel import inlined, kernel
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
FUNCTION_ENTRY, FUNCTION_EXIT, LOOP_INVOCATION, LOOP_ITERATION, LOOP_EXIT = (CODE[name] for name in CONTEXT_EVENTS)


@inlined
def _follow(contexts: Any, levels: Any, action: Any, who: Any, much: Any) -> Any:
    """Do what an event does to the context, if it does anything."""
    if action == FUNCTION_ENTRY:
        enter_function(contexts, levels, who, much)
    elif action == FUNCTION_EXIT:
        leave_function(contexts, levels)
    elif action == LOOP_INVOCATION:
        enter_loop(contexts, levels, who)
    elif action == LOOP_ITERATION:
        iterate(levels)
    elif action == LOOP_EXIT:
        leave_loop(contexts, levels, much)
    else:
        return False
    return True


@inlined
def _context(contexts: Any, levels: Any, by_caller: Any) -> Any:
    """The context that groups are told apart by, 0: by none."""
    if contexts is None or by_caller:
        return np.int64(0)
    return np.int64(contexts.tree.rows[levels.control[CONTEXT]].printed)


@kernel
def translate(
    translation: Any,
    contexts: Any,
    levels: Any,
    by_caller: Any,
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

    `contexts` and the stream's `levels`: None where groups are told apart by sites alone; else by the contexts, or, if
    `by_caller`, by who calls for an allocation. `actions` (uint8 [256]) by event; `kind`, `subject`, `address`, `size`
    are columns; `group`, `number` and `offset` (int64, zeros) get rows of the same length.
    """
    for event in range(kind.size):
        action = actions[kind[event]]
        if action == 0:
            continue
        where, who, much = np.int64(address[event]), np.int64(subject[event]), np.int64(size[event])
        if contexts is not None and _follow(contexts, levels, action, who, much):
            continue
        if action == LOAD:
            loaded(translation, who, where)
        elif action == HEAP_ALLOC:
            site = who
            if levels is not None and by_caller:
                site = np.int64(allocation_site(translation.in_wrapper, who, levels))
            allocated(translation, who, site, _context(contexts, levels, by_caller), where, much)
        elif action == STACK_ALLOC:
            entered(translation, who, _context(contexts, levels, by_caller), where, much)
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
