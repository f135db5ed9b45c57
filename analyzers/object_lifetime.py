"""How long objects live: for each allocation site and context the innermost scope that holds every object's whole life.

A scope is an iteration or an invocation of a loop, a call, or the run. Objects that never leave an iteration can be
made anew in each, so they do not stand in the way of running iterations in parallel (PROMPT, section 6.4).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.module import (
    FRAMES,
    LEVELS,
    NONE,
    RUN,
    TICK,
    ContextNames,
    Display,
    HashTable,
    Scope,
    ScopeNames,
    Scopes,
    close_call,
    close_loop,
    contexts_option,
    hash_table,
    holder,
    inlined,
    kernel,
    named_scopes,
    next_iteration,
    open_scope,
    open_scopes,
    row_of,
    taken,
    used_rows,
)
from tracekit.objects.kernels.live import (
    GLOBAL,
    HEAP,
    STACK,
    Live,
    Unloading,
    allocation_context,
    begin,
    end,
    extended,
    kind_of,
    starting_at,
)
from tracekit.objects.live import SiteNames, found_objects, live_objects, table_alone, unloading
from tracekit.objects.module import ObjectModule
from tracekit.objects.profile import LAYOUTS, ObjectProfile

if TYPE_CHECKING:
    from tracekit.contexts.table import ContextTable


@dataclass(frozen=True)
class LifetimeOptions:
    """How contexts are told apart."""

    contexts: str = contexts_option("static")


class State(NamedTuple):
    """The live objects, the open scopes, and by site and scope how many objects have lived there."""

    live: Live
    scopes: Scopes
    lives: HashTable  # site << 32 | scope (holder)
    images: Unloading


@inlined
def died(state: Any, address: Any, size: Any, stream: Any) -> None:
    """An object ends: note the innermost scope that was open when it began; a thread knows nothing of another's."""
    row = end(state.live, address, size)
    if row != 0 and state.live.objects.rows[row].born >= 0:
        old = state.live.objects.rows[row]
        scope = np.int64(0)
        if old.stream == stream:
            scope = holder(state.scopes, stream, old.born)
        state.lives.rows[row_of(state.lives, (np.int64(old.site) << 32) | scope)].objects += 1


@inlined
def born(
    state: Any, kind: Any, site: Any, context: Any, address: Any, size: Any, stream: Any, counts: Any, depth: Any
) -> None:
    """An object begins; it counts if it began inside the window.

    A variable whose lifetime begins stands for the storage that its function had made for it: one object, not two.
    """
    before = starting_at(state.live, address)
    if before != 0 and state.live.objects.rows[before].born >= 0:
        old = state.live.sites.rows[state.live.objects.rows[before].site]
        if kind != HEAP and kind_of(old.key) == kind:
            old.objects -= 1
            old.bytes -= state.live.objects.rows[before].end - address
        else:
            died(state, address, 0, stream)  # its end was not seen
    row = begin(state.live, kind, site, context, address, size, stream, depth)
    if row != 0:
        state.live.objects.rows[row].born = state.scopes.control[TICK] if counts else -1
        site = state.live.sites.rows[state.live.objects.rows[row].site]
        site.objects += counts
        site.bytes += size * counts


@kernel
def allocated(
    state: State, instruction: Any, context: Any, address: Any, size: Any, stream: Any, counts: Any, levels: Any
) -> None:
    """heap_alloc: a new object, or the tail by which a realloc let one grow."""
    row = extended(state.live, instruction, address, size)
    if row == 0:
        born(
            state, HEAP, instruction, allocation_context(state.live, context, levels), address, size, stream, counts, 0
        )
    elif state.live.objects.rows[row].born >= 0:
        state.live.sites.rows[state.live.objects.rows[row].site].bytes += size


@kernel
def loaded(state: State, number: Any, address: Any, size: Any, stream: Any, counts: Any) -> None:
    """global_init."""
    born(state, GLOBAL, number, 0, address, size, stream, counts, 0)


@kernel
def freed(state: State, address: Any, size: Any, stream: Any) -> None:
    """heap_free."""
    died(state, address, size, stream)


@kernel
def unloaded(state: State, image: Any, stream: Any) -> None:
    """image_unload."""
    for row in range(state.images.image.size):
        if state.images.image[row] == image and state.images.address[row] != 0:
            died(state, np.int64(state.images.address[row]), np.int64(state.images.size[row]), stream)


class ObjectLifetime(ObjectModule):
    """One row for each allocation site in each context, and for each global."""

    Options = LifetimeOptions
    tables = ("lifetimes", "lives")

    def state(self) -> State:
        """No object, no scope."""
        fields = [("objects", "<i8"), ("bytes", "<i8")]
        return State(
            live_objects(self.program, fields), open_scopes(), hash_table([("objects", "<i8")]), unloading(self.program)
        )

    @staticmethod
    def heap_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, inside: int, levels: Any
    ) -> None:
        """A new object, or the tail by which a realloc let one grow."""
        allocated(state, instruction, context, address, size, stream, inside, levels)

    @staticmethod
    def stack_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, inside: int, levels: Any
    ) -> None:
        """A local variable begins."""
        born(state, STACK, instruction, context, address, size, stream, inside, levels.control[FRAMES])

    @staticmethod
    def global_init(state: State, object: int, address: int, size: int, stream: int, inside: int) -> None:
        """An image was loaded."""
        loaded(state, object, address, size, stream, inside)

    @staticmethod
    def heap_free(state: State, address: int, size: int, stream: int) -> None:
        """An object ends, or the tail that a realloc cut off."""
        freed(state, address, size, stream)

    @staticmethod
    def stack_free(state: State, address: int, size: int, stream: int) -> None:
        """A local variable ends: its block, or its function, also by unwinding."""
        died(state, address, size, stream)

    @staticmethod
    def image_unload(state: State, image: int, stream: int) -> None:
        """The globals of a library that was closed end."""
        unloaded(state, image, stream)

    @staticmethod
    def function_entry(state: State, context: int, stream: int) -> None:
        """A call opens."""
        open_scope(state.scopes, stream, context, False)

    @staticmethod
    def function_exit(state: State, stream: int) -> None:
        """It closes."""
        close_call(state.scopes, stream)

    @staticmethod
    def loop_invocation(state: State, stream: int, levels: Any) -> None:
        """A loop opens."""
        open_scope(state.scopes, stream, levels.levels[levels.control[LEVELS] - 1].node, True)

    @staticmethod
    def loop_iteration(state: State, stream: int) -> None:
        """Its next iteration begins."""
        next_iteration(state.scopes, stream)

    @staticmethod
    def loop_exit(state: State, stream: int) -> None:
        """It closes."""
        close_loop(state.scopes, stream)

    def remains(self, state: State) -> State:
        """Which object has which byte matters no more."""
        return state._replace(live=table_alone(state.live))

    def collected(self, state: State) -> ObjectProfile:
        """The objects of each site, and what held them."""
        return found_objects(self.program, self.contexts, state.live, life_tables(state, self.contexts))

    def shown(self, profile: ObjectProfile) -> dict[str, Any]:
        """Sites by kind, instruction, context; ``lives``: how many objects each innermost scope holds."""
        contexts = ContextNames(self.program, profile.nodes)
        sites, scopes = SiteNames(self.program, profile, contexts), ScopeNames(self.program, contexts)
        lives = ended(profile)
        rows = []
        for site, objects, size, immortal in profile["lifetimes"].tolist():
            held = lives[site]
            if immortal:
                held[RUN] = held.get(RUN, 0) + immortal
            listed = [{"scope": scopes.show(scope), "objects": held[scope]} for scope in sorted(held)]
            rows.append(
                {
                    "object": sites.show(site),
                    "objects": objects,
                    "bytes": size,
                    "never_freed": immortal,
                    "scope": scopes.show(scopes.join(held)),
                    "lives": listed,
                }
            )
        return {"sites": rows}


def life_tables(state: State, contexts: ContextTable) -> dict[str, Any]:
    """The tables ``lifetimes`` and ``lives`` of a finished replay, as ``found_objects`` takes them."""
    sites, objects, gone = used_rows(state.live.sites), taken(state.live.objects), used_rows(state.lives)[1:]
    unended = objects["site"][(objects["alive"] != 0) & (objects["born"] >= 0)]
    lifetimes = np.zeros(len(sites), LAYOUTS["lifetimes"].dtype)
    lifetimes["site"] = np.arange(len(sites))
    for column in ("objects", "bytes"):
        lifetimes[column] = sites[column]
    lifetimes["never_freed"] = np.bincount(unended, minlength=len(sites))
    lives = np.zeros(len(gone), LAYOUTS["lives"].dtype)
    lives["site"] = gone["key"] >> np.uint64(32)
    codes = (gone["key"] & np.uint64(0xFFFF_FFFF)).astype(np.int64)
    lives["node"], lives["iteration"] = named_scopes(contexts, codes)
    lives["objects"] = gone["objects"]
    return {"lifetimes": lifetimes[1:][lifetimes["objects"][1:] != 0], "lives": lives}


def ended(profile: ObjectProfile) -> defaultdict[int, dict[Scope, int]]:
    """Site -> scope -> how many objects have ended there."""
    lives: defaultdict[int, dict[Scope, int]] = defaultdict(dict)
    for site, node, iteration, objects in profile["lives"].tolist():
        lives[site][RUN if node == NONE else (node, bool(iteration))] = objects
    return lives


DISPLAY = Display(
    text="tracekit.render.objects:lifetime_text",
    section="tracekit.render.html.lifetimes:section",
    heading="Object lifetimes",
    on_page=True,
    columns={
        "sites": "object:made objects bytes never_freed scope.kind scope.function scope.context:context lives",
    },
)
MODULE = ObjectLifetime
