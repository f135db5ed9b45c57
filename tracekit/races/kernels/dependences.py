"""Dependences of OpenMP's tasks on addresses, and steps of doacross loops: who comes behind whom (formats/SPEC.md,
"Logical tasks").

Siblings that depend on an address in the same shared way are a generation; one that begins another generation comes
behind all of those before it. A generation's clock holds what its tasks did.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.event_values import TaskDependence
from tracekit.jit.kernel import kernel
from tracekit.races.kernels.clocks import drop, new_clock, set_time
from tracekit.races.kernels.order import acquire_clock, release_for_waiters, release_into, tick
from tracekit.races.kernels.state import FREE_GENERATION, FREE_LINK, State, known_task

IN = int(TaskDependence.IN)
MUTEXINOUTSET = int(TaskDependence.MUTEXINOUTSET)
SOURCE = int(TaskDependence.SOURCE)
SINK = int(TaskDependence.SINK)
INOUTSET = int(TaskDependence.INOUTSET)
ALL_MEMORY = int(TaskDependence.OUT_ALL_MEMORY)
EXCLUSIVE = int(TaskDependence.INOUT)


@kernel
def acquire_dependences(state: State, task: Any, of: Any) -> None:
    """A task acquires what those did that the task `of` depends on."""
    link = np.int64(state.tasks.rows[of].links)
    while link != 0:
        on = state.links.rows[link]
        acquire_clock(state, task, state.generations.rows[on.prior].clock)
        if on.kind == MUTEXINOUTSET:
            acquire_clock(state, task, state.generations.rows[on.own].lock)
        if on.kind == ALL_MEMORY:
            acquire_clock(state, task, state.tasks.rows[state.tasks.rows[of].creator].children)
        link = np.int64(on.next)


@kernel
def release_done(state: State, task: Any, clock: Any) -> None:
    """A task that is over releases into a clock what it did; what its creator did, whoever waits knows anyway."""
    row = state.tasks.rows[task]
    if row.acquired != 0:
        release_for_waiters(state, task, clock)
    elif row.chain != 0:
        set_time(state.clocks, clock, row.chain, state.chains.rows[row.chain].time)


@kernel
def end_dependences(state: State, task: Any, by: Any) -> None:
    """Who depends on a task knows what `by` did, and what it had of generations is given back."""
    link = np.int64(state.tasks.rows[task].links)
    state.tasks.rows[task].links = 0
    while link != 0:
        on = state.links.rows[link]
        if on.own != 0:
            state.tasks.rows[by].shown = 1
            generation = state.generations.rows[on.own]
            if generation.clock == 0:
                generation.clock = new_clock(state.clocks)
            if task == by:
                release_done(state, by, generation.clock)
            else:
                release_into(state, by, generation.clock)
            if on.kind == MUTEXINOUTSET:
                if generation.lock == 0:
                    generation.lock = new_clock(state.clocks)
                release_for_waiters(
                    state, by, generation.lock
                )  # also what a creator did before: who comes next may be its elder
        drop_generation(state, np.int64(on.prior))
        drop_generation(state, np.int64(on.own))
        after = np.int64(on.next)
        on.prior, on.own, on.next = 0, 0, state.now[FREE_LINK]
        state.now[FREE_LINK] = link
        link = after


@kernel
def drop_generation(state: State, number: Any) -> None:
    """One user less."""
    while number != 0:
        row = state.generations.rows[number]
        row.users -= 1
        if row.users > 0:
            return
        drop(state.clocks, row.clock)
        drop(state.clocks, row.lock)
        prior = np.int64(row.prior)
        row.clock, row.lock, row.prior = 0, 0, state.now[FREE_GENERATION]
        state.now[FREE_GENERATION] = number
        number = prior


@kernel
def new_generation(state: State, prior: Any) -> Any:
    """A generation behind another one, with one user: it is that one's, too."""
    number = state.now[FREE_GENERATION]
    if number != 0:
        state.now[FREE_GENERATION] = state.generations.rows[number].prior
    else:
        number = np.int64(take(state.generations, 1))
    row = state.generations.rows[number]
    row.users, row.prior = 1, prior
    return number


@kernel
def link_to(state: State, task: Any, prior: Any, own: Any, kind: Any) -> None:
    """A task comes behind a generation and belongs to another one, and uses both."""
    link = state.now[FREE_LINK]
    if link != 0:
        state.now[FREE_LINK] = state.links.rows[link].next
    else:
        link = np.int64(take(state.links, 1))
    row = state.links.rows[link]
    row.prior, row.own, row.kind, row.next = prior, own, kind, state.tasks.rows[task].links
    state.tasks.rows[task].links = link
    for number in (prior, own):
        if number != 0:
            state.generations.rows[number].users += 1


@kernel
def depend(state: State, running: Any, kind: Any, address: Any, number: Any) -> None:
    """A task that was made just before depends on an address; or a step of a doacross loop."""
    task = known_task(state, number)
    if kind == SOURCE or kind == SINK:
        pass_step(state, running, kind, address)
        return
    parent_row = np.int64(state.tasks.rows[task].creator)
    if task == 0 or parent_row == 0:
        return
    parent = state.tasks.rows[parent_row]
    if kind >= ALL_MEMORY:
        own = new_generation(state, np.int64(0))
        link_to(state, task, np.int64(parent.all), own, np.int64(ALL_MEMORY))
        drop_generation(state, np.int64(parent.all))
        parent.all = own
        return
    if parent.all != 0:
        link_to(state, task, np.int64(parent.all), np.int64(0), np.int64(IN))
    if kind != IN and kind != MUTEXINOUTSET and kind != INOUTSET:
        kind = np.int64(EXCLUSIVE)
    key = np.uint64(parent_row) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(address)
    at_row = np.int64(row_of(state.depends, key))
    at = state.depends.rows[at_row]
    if at.generation == 0:
        at.next, parent.addresses = parent.addresses, at_row
    if at.generation == 0 or at.kind != kind or kind == EXCLUSIVE:
        before = np.int64(at.generation)
        at.generation = new_generation(state, before)  # the use by the address goes on as the new one's prior
        at.kind = kind
        if before != 0:  # nobody joins that one any more
            older = np.int64(state.generations.rows[before].prior)
            state.generations.rows[before].prior = 0
            drop_generation(state, older)
    own = np.int64(at.generation)
    link_to(state, task, np.int64(state.generations.rows[own].prior), own, kind)


@kernel
def forget_addresses(state: State, parent: Any) -> None:
    """A task makes no more children: on what they depend need not be known."""
    at = np.int64(state.tasks.rows[parent].addresses)
    while at != 0:
        drop_generation(state, np.int64(state.depends.rows[at].generation))
        state.depends.rows[at].generation = 0
        at = np.int64(state.depends.rows[at].next)
    drop_generation(state, np.int64(state.tasks.rows[parent].all))
    state.tasks.rows[parent].addresses, state.tasks.rows[parent].all = 0, 0


@kernel
def pass_step(state: State, task: Any, kind: Any, address: Any) -> None:
    """A step of a doacross loop is done, or was waited for."""
    if task == 0:
        return
    key = np.uint64(state.tasks.rows[task].team) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(address)
    step = state.steps.rows[row_of(state.steps, key)]
    if kind == SINK:
        acquire_clock(state, task, step.clock)
        return
    if step.clock == 0:
        step.clock = new_clock(state.clocks)
    release_into(state, task, step.clock)
    tick(state, task)
