"""Makes path templates for the derive kernel: what a path does, as a list of events that take no decision.

Whatever follows from the path alone is found here: the word or register that an address begins with (a register that
the path itself has defined is the word that defined it), loop events between its blocks, the loops that it leaves
open. What is left for the kernel is ``address = base + offset`` (and two products, if it counts iterations) for each
event. Dynamic steps take decisions; they divide a template into parts. Paths that do something else have none, and
are replayed block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag, PathFlag
from tracekit.program.validation import runs
from tracekit.replay.kernels import layouts
from tracekit.replay.path_loops import Crossings, crossings
from tracekit.replay.template_events import Events, Parts, events_of, is_dynamic, is_simple, parts_of, terms_of

if TYPE_CHECKING:
    from tracekit.program.program import Program

Rows = NDArray[Any]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST = 0xFFFF
"""Events, definitions, loop changes or dynamic steps of a template at most."""


class Templates(NamedTuple):
    """Tables of kernels/layouts.py: ``rows`` beside the requested record ids, with room NEVER where a path has none."""

    rows: Rows
    template_events: Rows
    strides: Rows
    dynamic_steps: Rows
    defines: Rows
    changes: Rows


def make_templates(
    program: Program,
    tables: layouts.Tables,
    keep: NDArray[np.uint8],
    numbers: I8,
    *,
    values: bool,
    runs_only: bool = False,
) -> Templates:
    """The templates of the paths with these record ids.

    keep: (256) u1, 1 for the code of a wanted event; values: those of loads and stores are wanted; runs_only: runs have
    templates, which tell one iteration, and no other paths.
    """
    blocks, loops = tables.blocks, tables.loops
    source = program.paths[program.path_row[numbers]]
    count = len(numbers)
    blocks_of = source["blocks"].astype(np.int64)
    members = program.path_blocks["block"][runs(source["first"], blocks_of)].astype(np.int64)
    owner = np.repeat(np.arange(count), blocks_of)
    starts = np.cumsum(blocks_of) - blocks_of
    crossed = crossings(blocks, loops, members, owner, starts)
    slots = tables.functions["slots"][blocks["function"][members[starts]]].astype(np.int64)
    parts = parts_of(blocks, tables.steps, members, owner, slots)
    most = layouts.MOST_TERMS if runs_only else 2
    terms, unsure = terms_of(program, loops, blocks["loop"][members], parts, crossed, most)
    first, last = blocks[members[starts]], blocks[members[starts + blocks_of - 1]]
    dynamic = is_dynamic(parts.steps)
    good = _may_have_template(source, blocks, members, owner) & ~crossed.unsure
    good &= _is_plain_run(source, first, parts, crossed) if runs_only else source["flags"] & PathFlag.RUN == 0
    good &= ~_any(parts.path, unsure | ~is_simple(parts.steps, dynamic, values), count)
    good &= source["words"] <= layouts.MOST_WORDS
    rows = np.zeros(count, layouts.TEMPLATE)
    events = events_of(parts, crossed, terms, dynamic, keep, good)
    template_events, strides, dynamic_steps = _divided(rows, events, slots)
    defines, defining = _defines(parts, good)
    changes, changing = _changes(crossed, loops, good)
    defines = _padded(rows, "define", defines, defining, layouts.PAIR)
    pairs = np.maximum(-(-rows["defines"].astype(np.int64) // layouts.PAIR), 1) * layouts.PAIR
    none = np.flatnonzero(defines["register"] == NONE)
    defines["register"][none] = np.repeat(slots - 1, pairs)[none]
    changes = _padded(rows, "change", changes, changing, 1)
    for name in ("function", "continues", "loop"):
        rows[name] = first[name]
    rows["call"], rows["block"], rows["last_loop"] = last["call"], members[starts + blocks_of - 1], last["loop"]
    in_loop = last["loop"] != NONE
    rows["last_depth"][in_loop] = loops["depth"][last["loop"][in_loop]]
    rows["words"], rows["slots"] = np.minimum(source["words"], MOST), slots
    too_many = [np.bincount(path, minlength=count) > MOST for path in (events.path, defining, changing)]
    good &= ~np.any(too_many, axis=0)
    rows["room"] = np.where(good, tables.paths["room"][numbers], layouts.NEVER)
    counting = _any(parts.path[terms.holder], np.ones(len(terms.holder), np.bool_), count)
    rows["flags"] = _flags(rows, first, last, crossed.inside, counting)
    rows["flags"] |= layouts.TEMPLATE_RUN if runs_only else 0
    return Templates(rows, template_events, strides, dynamic_steps, defines, changes)


def _flags(rows: Rows, first: Rows, last: Rows, inside: Bools, counting: Bools) -> NDArray[np.uint16]:
    pairs = (
        (layouts.TEMPLATE_ENTERS, first["flags"] & BlockFlag.ENTRY != 0),
        (layouts.TEMPLATE_LEAVES, last["flags"] & BlockFlag.RETURNS != 0),
        (layouts.TEMPLATE_HEADER, first["flags"] & BlockFlag.LOOP_HEADER != 0),
        (layouts.TEMPLATE_EFFECTS, first["flags"] & layouts.BLOCK_EFFECTS != 0),
        (layouts.TEMPLATE_LOOPS, inside),
        (layouts.TEMPLATE_TERMS, counting),
        (layouts.TEMPLATE_DYNAMIC, rows["dynamic_steps"] != 0),
    )
    flags = np.zeros(len(first), np.uint16)
    for flag, where in pairs:
        flags |= np.where(where, flag, 0).astype(np.uint16)
    return flags


def _padded(paths: Rows, name: str, rows: Rows, owner: I8, group: int) -> Rows:
    """Lay out `rows` (of the paths `owner`, ascending), those of each path padded to whole groups, at least one.

    With a group of 1 a path may have none. Sets the columns ``first_<name>`` and ``<name>s`` of `paths`.
    """
    counts = np.bincount(owner, minlength=len(paths))
    room = -(-np.maximum(counts, group > 1) // group) * group
    first = np.cumsum(room) - room
    laid = np.zeros(int(room.sum()), rows.dtype)
    if rows.dtype == layouts.DEFINE:
        laid["register"] = NONE
    laid[first[owner] + np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]] = rows
    paths["first_" + name], paths[name + "s"] = first, np.minimum(counts, MOST)
    return laid


def _divided(rows: Rows, events: Events, slots: I8) -> tuple[Rows, Rows, Rows]:
    """Lay the events of paths in groups, with their strides, and the dynamic steps; each of these begins a new part.

    Sets ``first_template_event``, ``template_events``, ``first_dynamic_step`` and ``dynamic_steps`` of `rows`.
    """
    count = np.bincount(events.path[events.dynamic], minlength=len(rows))
    path_of = np.repeat(np.arange(len(rows)), count + 1)  # of each part
    first = np.cumsum(count + 1) - (count + 1)
    rows["first_dynamic_step"], rows["dynamic_steps"] = first - np.arange(len(rows)), np.minimum(count, MOST)
    parts = np.zeros(len(path_of), [("first_template_event", "u4"), ("template_events", "u4")])
    part = events.path + np.cumsum(events.dynamic)
    template_events = _padded(
        parts, "template_event", events.template_events[~events.dynamic], part[~events.dynamic], layouts.GROUP
    )
    strides = _padded(parts, "template_event", events.strides[~events.dynamic], part[~events.dynamic], layouts.GROUP)
    starts = parts["first_template_event"].astype(np.int64)
    nothing = np.repeat(slots[path_of] - 2, np.append(starts[1:], len(template_events)) - starts)
    padding = template_events["kind"] == 0  # no event has this code
    template_events["base"][padding] = template_events["value"][padding] = nothing[padding]
    dynamic_steps = events.dynamic_steps
    for name, column in (
        ("first_template_event", starts // layouts.GROUP),
        ("template_events", parts["template_events"]),
    ):
        rows[name], dynamic_steps[name] = column[first], column[part[events.dynamic]]
    packed = np.zeros(len(template_events) // layouts.GROUP, layouts.TEMPLATE_EVENT_GROUP)
    for name in layouts.TEMPLATE_EVENT.names or ():
        packed[name] = template_events[name].reshape(-1, layouts.GROUP)
    return packed, strides, dynamic_steps


def _any(path: I8, where: Bools, count: int) -> Bools:
    """For each path whether `where` holds of one of its rows."""
    holds: Bools = np.bincount(path[where], minlength=count) != 0
    return holds


def _may_have_template(source: Rows, blocks: Rows, members: I8, owner: I8) -> Bools:
    """Ordinary paths that land nowhere and make no tail call."""
    flags = blocks["flags"][members]
    apart = flags & BlockFlag.LANDING != 0
    apart |= (flags & BlockFlag.TAIL_CALL != 0) & (flags & BlockFlag.RETURNS == 0)
    possible: Bools = ~_any(owner, apart, len(source))
    return possible


def _is_plain_run(source: Rows, first: Rows, parts: Parts, crossed: Crossings) -> Bools:
    """Runs of a loop from its header on, without loops inside, that begin and end no stack object and nothing else."""
    steps = parts.steps
    apart = np.isin(steps["code"], [layouts.ALLOC, layouts.FREE, layouts.REGISTER])
    apart |= steps["flags"] & (layouts.STEP_WORD | layouts.STEP_DYNAMIC | layouts.STEP_SAME_SIZE) != 0
    plain: Bools = (source["flags"] & PathFlag.RUN != 0) & (source["flags"] & PathFlag.GROUND_TRUTH == 0)
    plain &= (first["flags"] & BlockFlag.LOOP_HEADER != 0) & (first["flags"] & BlockFlag.ENTRY == 0)
    plain &= (first["loop"] != NONE) & ~crossed.inside & ~_any(parts.path, apart, len(source))
    return plain


def _defines(parts: Parts, good: Bools) -> tuple[Rows, I8]:
    """The registers that templates set, and the path of each; of several definitions the last one."""
    steps = parts.steps
    at = np.flatnonzero((steps["flags"] & layouts.STEP_WORD != 0) & (steps["defines"] != NONE) & good[parts.path])
    backwards = at[::-1]
    _, first = np.unique(parts.path[backwards] << 32 | steps["defines"][backwards], return_index=True)
    at = np.sort(backwards[first])
    rows = np.zeros(len(at), layouts.DEFINE)
    rows["word"] = parts.slots[parts.path[at]] + parts.word[at]
    rows["register"] = steps["defines"][at]
    return rows, parts.path[at]


def _changes(crossed: Crossings, loops: Rows, good: Bools) -> tuple[Rows, I8]:
    """What templates do to the counters of loops that are open at their end, and the path of each change."""
    at = np.flatnonzero(good[crossed.path] & crossed.lasts & (crossed.kind != CODE["loop_exit"]))
    at = at[np.argsort(crossed.path[at], kind="stable")]
    rows = np.zeros(len(at), layouts.CHANGE)
    rows["level"] = loops["depth"][crossed.loop[at]].astype(np.int64) - 1
    rows["loop"] = crossed.loop[at]
    rows["opens"] = crossed.kind[at] == CODE["loop_invocation"]
    return rows, crossed.path[at]
