"""Flattens paths for the derive kernel: what a path does becomes a list of moves that need no decision to be made.

Whatever follows from the path alone is found here: the word or register that an address begins with (a register that
the path itself has defined is the word that defined it), loop events between its blocks, the loops that it leaves
open. What is left for the kernel is ``address = base + offset`` (and two products, if it counts iterations) for each
event. Steps that take decisions (specials) divide a path into parts. Paths that do something else are not flat, and
replayed block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag, PathFlag
from tracekit.replay.flat_steps import Events, Parts, events_of, is_simple, is_special, parts_of, terms_of
from tracekit.replay.kernels import state
from tracekit.replay.path_loops import Crossings, crossings
from tracekit.replay.structure import runs

if TYPE_CHECKING:
    from tracekit.replay.program import Program

Rows = NDArray[Any]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST = 0xFFFF
"""Moves, definitions, loop changes or specials of a flat path at most."""


class Flat(NamedTuple):
    """Flat paths (state.py): ``rows`` beside the record ids asked for, with room NEVER where a path is not flat."""

    rows: Rows
    moves: Rows
    strides: Rows
    specials: Rows
    defines: Rows
    changes: Rows


def flatten(program: Program, tables: state.Tables, keep: NDArray[np.uint8], numbers: I8, *, values: bool) -> Flat:
    """The flat form of the paths with these record ids.

    keep: (256) u1, 1 for the code of a wanted event; values: those of loads and stores are wanted.
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
    terms, unsure = terms_of(program, loops, blocks["loop"][members], parts, crossed)
    special = is_special(parts.steps)
    good = _may_be_flat(source, blocks, members, owner) & ~crossed.unsure
    good &= ~_any(parts.path, unsure | ~is_simple(parts.steps, special, values), count)
    good &= source["words"] <= state.MOST_WORDS
    rows = np.zeros(count, state.FLAT)
    first, last = blocks[members[starts]], blocks[members[starts + blocks_of - 1]]
    events = events_of(parts, crossed, terms, special, keep, good)
    moves, strides, specials = _divided(rows, events, slots)
    defines, defining = _defines(parts, good)
    changes, changing = _changes(crossed, loops, good)
    defines = _padded(rows, "define", defines, defining, state.PAIR)
    pairs = np.maximum(-(-rows["defines"].astype(np.int64) // state.PAIR), 1) * state.PAIR
    none = np.flatnonzero(defines["register"] == NONE)
    defines["register"][none] = np.repeat(slots - 1, pairs)[none]
    changes = _padded(rows, "change", changes, changing, 1)
    for name in ("function", "continues", "loop"):
        rows[name] = first[name]
    rows["call"], rows["block"], rows["last_loop"] = last["call"], members[starts + blocks_of - 1], last["loop"]
    in_loop = last["loop"] != NONE
    rows["last_depth"][in_loop] = loops["depth"][last["loop"][in_loop]]
    rows["words"], rows["slots"] = np.minimum(source["words"], MOST), slots
    too_many = [np.bincount(each, minlength=count) > MOST for each in (events.path, defining, changing)]
    good &= ~np.any(too_many, axis=0)
    rows["room"] = np.where(good, tables.paths["room"][numbers], state.NEVER)
    counting = _any(parts.path[terms.holder], np.ones(len(terms.holder), np.bool_), count)
    rows["flags"] = _flags(rows, first, last, crossed.inside, counting)
    return Flat(rows, moves, strides, specials, defines, changes)


def _flags(rows: Rows, first: Rows, last: Rows, inside: Bools, counting: Bools) -> NDArray[np.uint16]:
    pairs = (
        (state.FLAT_ENTERS, first["flags"] & BlockFlag.ENTRY != 0),
        (state.FLAT_LEAVES, last["flags"] & BlockFlag.RETURNS != 0),
        (state.FLAT_HEADER, first["flags"] & BlockFlag.LOOP_HEADER != 0),
        (state.FLAT_EFFECTS, first["flags"] & state.BLOCK_EFFECTS != 0),
        (state.FLAT_LOOPS, inside),
        (state.FLAT_TERMS, counting),
        (state.FLAT_PARTS, rows["specials"] != 0),
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
    if rows.dtype == state.DEFINE:
        laid["register"] = NONE
    laid[first[owner] + np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]] = rows
    paths["first_" + name], paths[name + "s"] = first, np.minimum(counts, MOST)
    return laid


def _divided(rows: Rows, events: Events, slots: I8) -> tuple[Rows, Rows, Rows]:
    """Lay the events of paths as groups of moves, with their strides, and specials; each special begins a new part.

    Sets ``first_move``, ``moves``, ``first_special`` and ``specials`` of `rows`.
    """
    count = np.bincount(events.path[events.special], minlength=len(rows))
    path_of = np.repeat(np.arange(len(rows)), count + 1)  # of each part
    first = np.cumsum(count + 1) - (count + 1)
    rows["first_special"], rows["specials"] = first - np.arange(len(rows)), np.minimum(count, MOST)
    parts = np.zeros(len(path_of), [("first_move", "u4"), ("moves", "u4")])
    part = events.path + np.cumsum(events.special)
    moves = _padded(parts, "move", events.moves[~events.special], part[~events.special], state.GROUP)
    strides = _padded(parts, "move", events.strides[~events.special], part[~events.special], state.GROUP)
    starts = parts["first_move"].astype(np.int64)
    nothing = np.repeat(slots[path_of] - 2, np.append(starts[1:], len(moves)) - starts)
    padding = moves["kind"] == 0  # no event has this code
    moves["base"][padding] = moves["value"][padding] = nothing[padding]
    specials = events.specials
    for name, each in (("first_move", starts // state.GROUP), ("moves", parts["moves"])):
        rows[name], specials[name] = each[first], each[part[events.special]]
    packed = np.zeros(len(moves) // state.GROUP, state.MOVES)
    for name in state.MOVE.names or ():
        packed[name] = moves[name].reshape(-1, state.GROUP)
    return packed, strides, specials


def _any(path: I8, where: Bools, count: int) -> Bools:
    """For each path whether `where` holds of one of its rows."""
    found: Bools = np.bincount(path[where], minlength=count) != 0
    return found


def _may_be_flat(source: Rows, blocks: Rows, members: I8, owner: I8) -> Bools:
    """Ordinary paths that land nowhere and make no tail call."""
    flags = blocks["flags"][members]
    apart = flags & BlockFlag.LANDING != 0
    apart |= (flags & BlockFlag.TAIL_CALL != 0) & (flags & BlockFlag.RETURNS == 0)
    flat: Bools = (source["flags"] & PathFlag.RUN == 0) & ~_any(owner, apart, len(source))
    return flat


def _defines(parts: Parts, good: Bools) -> tuple[Rows, I8]:
    """The registers that flat paths set, and the path of each; of several definitions the last one."""
    steps = parts.steps
    at = np.flatnonzero((steps["flags"] & state.STEP_WORD != 0) & (steps["defines"] != NONE) & good[parts.path])
    backwards = at[::-1]
    _, first = np.unique(parts.path[backwards] << 32 | steps["defines"][backwards], return_index=True)
    at = np.sort(backwards[first])
    rows = np.zeros(len(at), state.DEFINE)
    rows["word"] = parts.slots[parts.path[at]] + parts.word[at]
    rows["register"] = steps["defines"][at]
    return rows, parts.path[at]


def _changes(crossed: Crossings, loops: Rows, good: Bools) -> tuple[Rows, I8]:
    """What flat paths do to the counters of loops that are open at their end, and the path of each change."""
    at = np.flatnonzero(good[crossed.path] & crossed.lasts & (crossed.kind != CODE["loop_exit"]))
    at = at[np.argsort(crossed.path[at], kind="stable")]
    rows = np.zeros(len(at), state.CHANGE)
    rows["level"] = loops["depth"][crossed.loop[at]].astype(np.int64) - 1
    rows["loop"] = crossed.loop[at]
    rows["opens"] = crossed.kind[at] == CODE["loop_invocation"]
    return rows, crossed.path[at]
