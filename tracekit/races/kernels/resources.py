"""Synchronisation objects and file descriptors: whoever uses one has to come after its beginning and before its end.

The first byte of an object stands for it in the history of bytes. What begins or ends it counts as a store, as does
`free`; uses conflict with stores alone. A lock is used again and again, so its uses are not kept as other accesses are:
its byte has the row of `resources`, where a clock says when it was used last on each chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import row_of
from tracekit.containers.kernels.shadow import changing
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.accesses import (
    access_at,
    has_to_be_before,
    is_before,
    put_aside,
    recent_site,
    report,
)
from tracekit.races.kernels.clocks import assign, new_clock, set_time
from tracekit.races.kernels.state import (
    ATOMIC_READ,
    CHAIN,
    CHAIN_BITS,
    CHAIN_SHIFT,
    IN_USE,
    KIND_SHIFT,
    TASK,
    TIME_SHIFT,
    USE,
    State,
    time_in,
)

DESCRIPTORS = 62
"""A descriptor's address has this bit alone beside its number."""


@inlined
def is_descriptor(address: Any) -> Any:
    """Whether an address is a file descriptor's."""
    return np.uint64(address) >> np.uint64(DESCRIPTORS) == np.uint64(1)


# -- what stands at a byte -----------------------------------------------------------------------------


@inlined
def is_in_use(others: Any) -> Any:
    """Whether what stands beside a byte's store is the row of a resource."""
    return others & IN_USE == IN_USE


@inlined
def beside(state: Any, others: Any) -> Any:
    """The accesses that stand there, without uses."""
    if is_in_use(others):
        return state.resources.rows[others & ~IN_USE].others
    return others


@inlined
def put_beside(state: Any, cell: Any, accesses: Any) -> None:
    """Other accesses stand there, beside the same uses."""
    row = state.memory.rows[cell]
    if is_in_use(row.others):
        state.resources.rows[row.others & ~IN_USE].others = accesses
    else:
        row.others = accesses


# -- uses ----------------------------------------------------------------------------------------------


@inlined
def user_of(state: Any, resource: Any, chain: Any) -> Any:
    """The row of `users` of a chain."""
    return row_of(state.users, (np.int64(resource) << CHAIN_BITS) | chain)


@kernel
def use_at(state: State, site: Any, address: Any, where: Any) -> None:
    """The present task uses a resource now, from a site on."""
    access = access_at(state, site, ATOMIC_READ)
    resource = np.int64(row_of(state.resources, address))
    of = state.resources.rows[resource]
    for cell in changing(state.memory, address, 1):
        row = state.memory.rows[cell]
        if row.write != 0 and not is_before(state, row.write):
            report(state, row.write, access, where)
        elif row.write != 0 and not has_to_be_before(state, row.write):
            put_aside(state, row.write)
        if row.others != IN_USE | np.uint64(resource):
            if of.uses == 0:
                of.uses = new_clock(state.clocks)
            assign(state.clocks, of.uses, 0)
            of.others = row.others
            row.others = IN_USE | np.uint64(resource)
    set_time(state.clocks, of.uses, state.now[CHAIN], time_in(access))
    user = state.users.rows[user_of(state, resource, state.now[CHAIN])]
    user.site, user.task = site, state.now[TASK]


@kernel
def use(state: State, instruction: Any, context: Any, address: Any, where: Any) -> None:
    """The present task is about to use a resource."""
    use_at(state, recent_site(state, instruction, context, USE, 0), address, where)


@kernel
def use_on(state: State, address: Any, where: Any) -> None:
    """It is about to give up a lock, or has left a barrier: the use that began before lasted until now."""
    if state.resources.control[USED] <= 1:
        return
    resource = row_of(state.resources, address)
    user = user_of(state, resource, state.now[CHAIN])
    if state.users.rows[user].task == state.now[TASK]:
        use_at(state, np.int64(state.users.rows[user].site), address, where)
        state.users.rows[user].task = 0


@kernel
def compare_uses(state: State, others: Any, access: Any, where: Any) -> None:
    """Note which uses a store races with."""
    resource = np.int64(others & ~IN_USE)
    clock = state.clocks.table.rows[state.resources.rows[resource].uses]
    for chain in range(clock.length >> 1):
        time = np.int64(state.clocks.values.rows[clock.first + 2 * chain])
        if time == 0:
            continue
        step = (ATOMIC_READ << KIND_SHIFT) | (np.int64(chain) << CHAIN_SHIFT) | (time << TIME_SHIFT)
        site = np.int64(state.users.rows[user_of(state, resource, chain)].site)
        before = np.uint64(step | site)
        if not is_before(state, before):
            report(state, before, access, where)
        elif not has_to_be_before(state, before):
            put_aside(state, before)
