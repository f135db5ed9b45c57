"""The state of a stream as replay has it, from what a snapshot holds of it, and the other way.

What a snapshot holds may come from a file that anyone made. The kernels check no index, so all that they use as one is
checked here against the program, and what follows from the program is made of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracekit.formats import snapshots as snap
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind
from tracekit.formats.limits import DEEPEST
from tracekit.program.program import Program
from tracekit.program.validation import runs
from tracekit.replay.kernels import layouts
from tracekit.replay.snapshot import StreamSnapshot

_FLAGS = ((snap.LOST, layouts.LOST), (snap.MAY_START, layouts.MAY_START))
_COUNTERS = {"addresses": layouts.ADDRESSES, "blocks": layouts.BLOCKS, "runs": layouts.RUNS}

Rows = NDArray[Any]


class Running(Protocol):
    """A stream that is being replayed, and has no run under way."""

    number: int
    state: layouts.Stream

    @property
    def records(self) -> int:
        """Records before its place."""


def snapshot_of(running: Running, process: layouts.Process, tables: layouts.Tables) -> StreamSnapshot:
    """What a snapshot holds of a stream."""
    stream, scalars = running.state, running.state.scalars
    own = stream.frames[: scalars[layouts.TOP] + 1]
    frames = np.zeros(len(own), snap.FRAME)
    for name, field in (("call", "pending"), ("first_object", "object_base")):
        frames[name] = own[field]
    for name in ("address", "function", "block", "loop"):
        frames[name] = own[name]
    frames["flags"] = (
        snap.ENTERED * (own["entered"] != 0)
        + snap.TAIL * (own["tail"] != 0)
        + snap.LEAVES * (own["tail"] == 2)
        + snap.EFFECTS * (own["effects"] != 0)
    )
    registers, allocs = _registers(own["function"], tables)
    items = stream.objects[: scalars[layouts.OBJECTS]]
    objects = np.zeros(len(items), snap.OBJECT)
    for name in ("address", "size", "op"):
        objects[name] = items[name]
    objects["register"] = items["slot"] - own["register_base"][_owners(own["object_base"], len(items))]
    objects["flags"] = snap.ENDED * (items["live"] == 0)
    rules = np.flatnonzero(stream.violations[:, 0])
    broken = np.zeros(len(rules), snap.BROKEN)
    broken["rule"], broken["count"], broken["first"] = rules, *stream.violations[rules].T
    arrays: dict[str, Rows] = {
        "frames": frames,
        "iterations": stream.iterations[runs(own["loop_base"], own["loops"])],
        "registers": stream.registers[runs(own["register_base"], registers + 2 * allocs)],
        "objects": objects,
        "broken": broken,
    }
    row = np.zeros(1, snap.STREAM)
    row["number"], row["records"] = running.number, running.records
    created = snap.CREATED if process.created[running.number] else 0
    row["flags"] = created + sum(flag for flag, at in _FLAGS if scalars[at])
    for name, at in _COUNTERS.items():
        row[name] = scalars[at]
    for name, array in arrays.items():
        row[name] = len(array)
    return StreamSnapshot(running.number, running.records, snap.StreamState(row, **arrays))


def restored(
    state: snap.StreamState, program: Program, tables: layouts.Tables, empty: layouts.Stream
) -> layouts.Stream:
    """The arrays of `empty`, larger where they have to be, with the state in them.

    The templates that were made are not the new replay's: PATIENCE is that of `empty`. Raises TracekitError if this is
    no state that a stream of the program can have.
    """
    frames, own = state.frames, np.zeros(len(state.frames), layouts.FRAME_ROW)
    _check_frames(state, program)
    for name, field in (("pending", "call"), ("object_base", "first_object")):
        own[name] = frames[field]
    for name in ("address", "function", "block", "loop"):
        own[name] = frames[name]
    flags = frames["flags"]
    own["entered"], own["effects"] = flags & snap.ENTERED != 0, flags & snap.EFFECTS != 0
    own["tail"] = np.where(flags & snap.LEAVES, 2, flags & snap.TAIL != 0)
    known = frames["function"] != NONE
    depth, slots = (np.zeros(len(own), np.int64) for _ in range(2))
    for array, name in ((depth, "depth"), (slots, "slots")):
        array[known] = tables.functions[name][frames["function"][known]]
    _require(max(int(depth.sum()), int(slots.sum())) <= DEEPEST, "has a stack deeper than any program's")
    own["loop_base"], own["register_base"] = np.cumsum(depth) - depth, np.cumsum(slots) - slots
    looping = frames["loop"] != NONE
    own["loops"][looping] = tables.loops["depth"][frames["loop"][looping]]
    _require(
        int(own["loops"].sum(dtype=np.int64)) == len(state.iterations), "has iterations of loops that are not open"
    )
    objects = _objects(state, own, program, tables)
    own["dead"] = np.bincount(_owners(own["object_base"], len(objects))[objects["live"] == 0], minlength=len(own))
    scalars = empty.scalars.copy()
    _require(max(state.named(name) for name in ("records", *_COUNTERS)) < 1 << 62, "has counted too much")
    scalars[[layouts.TOP, layouts.OBJECTS, layouts.RECORDS]] = len(own) - 1, len(objects), state.named("records")
    for flag, at in _FLAGS:
        scalars[at] = state.named("flags") & flag != 0
    for name, at in _COUNTERS.items():
        scalars[at] = state.named(name)
    loops = int(depth.sum())
    levels = runs(own["loop_base"], own["loops"])
    iterations = np.zeros(loops, np.uint64)
    iterations[levels] = state.iterations
    return layouts.Stream(
        frames=_with_room(own, empty.frames),
        open_loops=_with_room(_open_loops(own, loops, tables), empty.open_loops),
        iterations=_with_room(iterations, empty.iterations),
        registers=_with_room(_all_registers(state, own, int(slots.sum()), tables), empty.registers),
        objects=_with_room(objects, empty.objects),
        scalars=scalars,
        violations=_violations(state, empty.violations),
    )


# -- parts of it -----------------------------------------------------------------------------------


def _require(holds: object, what: str) -> None:
    if not holds:
        raise TracekitError(f"The trace is damaged: a snapshot {what}.")


def _registers(functions: Rows, tables: layouts.Tables) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of an activation of each function: its registers, and its STACK_ALLOC operations, which have two each."""
    rows = np.zeros((2, len(functions)), np.int64)
    known = functions != NONE
    rows[:, known] = [tables.resumed[name][functions[known]] for name in ("registers", "allocs")]
    return rows[0], rows[1]


def _owners(first_objects: Rows, objects: int) -> NDArray[np.int64]:
    """The frame of each object."""
    return np.searchsorted(first_objects, np.arange(objects), side="right") - 1


def _check_frames(state: snap.StreamState, program: Program) -> None:
    """All that frames name is there, and belongs to their functions."""
    frames = state.frames
    functions = frames["function"]
    _require(((functions == NONE) | (functions < len(program.functions))).all(), "names a function that is not there")
    for name, rows in (("block", program.blocks), ("loop", program.loops)):
        given = frames[name] != NONE
        named = frames[name][given]
        _require((named < len(rows)).all(), f"names a {name} that is not there")
        _require((rows["function"][named] == functions[given]).all(), f"has a {name} in another function's activation")
    calls = frames["call"]
    named = calls[calls != NONE]
    _require((named < len(program.ops)).all(), "names a call that is not there")
    _require((program.ops["kind"][named] == OpKind.CALL).all(), "has an open call that is none")
    _require(not ((frames["flags"] & snap.TAIL != 0) & (calls == NONE)).any(), "has a tail call without a call")
    first = frames["first_object"].astype(np.int64)
    in_order = np.diff(first, append=len(state.objects)) >= 0
    _require(in_order.all() and (first[:1] == 0).all(), "has stack objects that are no activation's")
    _require(len(first) or not len(state.objects), "has stack objects that are no activation's")


def _objects(state: snap.StreamState, own: Rows, program: Program, tables: layouts.Tables) -> Rows:
    """Its stack objects."""
    given = state.objects
    owner = own[_owners(own["object_base"], len(given))]
    registers, allocs = _registers(owner["function"], tables)
    _require((given["op"] < len(program.ops)).all(), "names an operation that is not there")
    _require((program.ops["kind"][given["op"]] == OpKind.STACK_ALLOC).all(), "has a stack object that nothing begins")
    rank = given["register"].astype(np.int64) - registers
    _require(((rank >= 0) & (rank < 2 * allocs) & (rank % 2 == 0)).all(), "has a stack object that no register names")
    objects = np.zeros(len(given), layouts.OBJECT)
    for name in ("address", "size", "op"):
        objects[name] = given[name]
    objects["slot"] = owner["register_base"] + given["register"]
    objects["live"] = given["flags"] & snap.ENDED == 0
    return objects


def _open_loops(own: Rows, levels: int, tables: layouts.Tables) -> NDArray[np.uint32]:
    """The open loops of all frames, outermost first: those around the innermost one."""
    open_loops = np.zeros(levels, np.uint32)
    at, loop = own["loop_base"].astype(np.int64) + own["loops"] - 1, own["loop"]
    while len(loop):
        is_open = loop != NONE
        at, loop = at[is_open], loop[is_open]
        open_loops[at] = loop
        at, loop = at - 1, tables.loops["parent"][loop]
    return open_loops


def _all_registers(state: snap.StreamState, own: Rows, slots: int, tables: layouts.Tables) -> NDArray[np.uint64]:
    """The registers of all frames, with those that no activation has for itself."""
    registers, allocs = _registers(own["function"], tables)
    counts = registers + 2 * allocs
    _require(int(counts.sum()) == len(state.registers), "has registers that its activations do not have")
    result = np.zeros(slots, np.uint64)
    result[runs(own["register_base"], counts)] = state.registers
    objects = result[(runs(own["register_base"].astype(np.int64) + registers, 2 * allocs))[1::2]]
    _require((objects <= np.uint64(len(state.objects))).all(), "has a register that names no stack object")
    return result


def _violations(state: snap.StreamState, empty: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each rule was broken, and where first."""
    broken = state.broken
    _require((broken["rule"] < len(empty)).all(), "names a rule that there is not")
    _require((np.diff(broken["rule"].astype(np.int64)) > 0).all(), "names a rule twice")
    _require((np.maximum(broken["count"], broken["first"]) < np.uint64(1 << 62)).all(), "has rules broken too often")
    violations = empty.copy()
    violations[broken["rule"], 0], violations[broken["rule"], 1] = broken["count"], broken["first"]
    return violations


def _with_room(part: Rows, empty: Rows) -> Rows:
    """An array as `empty`, doubled as often as needed, that begins with `part`."""
    room = len(empty)
    while room < len(part) + layouts.SPARE:
        room *= 2
    filled = np.zeros(room, empty.dtype)
    filled[: len(part)] = part
    return filled
