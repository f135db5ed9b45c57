"""The layouts that the derive kernel works on: the program as it needs it, a stream's stack, the process."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

U1 = NDArray[np.uint8]
U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]
I8 = NDArray[np.int64]
Int = Any
"""A number or a truth value inside a kernel; Numba infers its width."""

# -- steps: what a block's operations come to ------------------------------------------------------
RECORDED, ACCESS, REGISTER, ALLOC, FREE, FRAME, SKIP, POINTER, EXTERNAL, NUMBER, UNWANTED = range(11)
"""Codes of a step. RECORDED: a load or store at the next word, nothing more. ACCESS: any other access.
NUMBER: a word that says which block this is. UNWANTED: only its words count, nobody asked for its events."""

STEP = np.dtype(
    [
        ("size", "u8"),
        ("offset", "u8"),  # two's complement
        ("subject", "u4"),  # the instruction
        ("base", "u4"),  # register slot for STEP_REGISTER
        ("first_term", "u4"),
        ("defines", "u4"),  # register slot or NONE
        ("object", "u4"),  # the global that the address must lie in (STEP_GLOBAL), or the register slot of ALLOC
        ("terms", "u2"),
        ("values", "u4"),  # words of recorded values to pass over
        ("code", "u1"),
        ("kind", "u1"),  # event
        ("flags", "u1"),
    ],
    align=True,
)
STEP_WORD, STEP_REGISTER, STEP_DYNAMIC, STEP_LOADS_TOO = 1, 2, 4, 8
STEP_SAME_SIZE, STEP_GLOBAL, STEP_STACK, STEP_WITNESS = 16, 32, 64, 128
"""Step flags: the address begins with the next word; with a register; the size is a word; a load stands before
the store; the size is that of the step before; the address lies in a known global; in a known stack object;
its last word is the address as the program computed it."""

BLOCK = np.dtype(
    [
        ("function", "u4"),
        ("loop", "u4"),
        ("flags", "u4"),  # BlockFlag, and the ones below
        ("first_step", "u4"),
        ("last_step", "u4"),  # one past it
        ("call", "u4"),
        ("continues", "u4"),
        ("test_of", "u4"),  # the loop whose header's test this block makes, or NONE
        ("landing_word", "u4"),  # which of its words is the frame address of a landing, or NONE
        ("words", "u4"),
        ("number", "u4"),  # among those of its function
    ],
    align=True,
)
BLOCK_EFFECTS = 1 << 17
"""The call that the block continues has unknown effects unless it entered instrumented code."""
BLOCK_TAIL_LEAVES = 1 << 18
"""The tail call that ends the block cannot enter instrumented code."""
BLOCK_TAIL_EFFECTS = 1 << 19
"""... and has unknown effects."""

PATH = np.dtype(
    [
        ("block", "u4"),  # the first; NONE if the number is unused
        ("blocks", "u4"),
        ("first", "u4"),  # row of members
        ("words", "u4"),
        ("room", "u4"),  # events that it (of a run: one iteration) can cause at most, without ends of stack objects
        # and unwinding
        ("allocs", "u4"),  # stack objects that it can begin
        ("leaves", "u4"),  # 1 if its last block ends the activation
        ("run", "u4"),  # 0, or one of the below
        ("events", "u4"),  # of a STEADY run: those of each iteration but the first
        ("checked", "u4"),  # of a STEADY run: 1 if an address has to lie in a known object
    ],
    align=True,
)
ANY_RUN, STEADY, WITNESS_RUN = 1, 2, 3
"""A run of iterations; one whose iterations all cause the same events, at addresses that move by the same distance
each time; one that was recorded in full beside it and only says how many they were."""


FLAT = np.dtype(
    [
        ("function", "u4"),
        ("continues", "u4"),  # the open call that its first block continues
        ("loop", "u4"),  # of its first block
        ("room", "u4"),  # events at most; NEVER if the path is not flat
        ("first_move", "u4"),  # row of moves
        ("words", "u2"),
        ("moves", "u2"),  # events of its first part
        ("defines", "u2"),
        ("changes", "u2"),
        ("flags", "u2"),
        ("last_depth", "u2"),
        ("call", "u4"),  # the open call after it
        ("block", "u4"),  # the last
        ("first_define", "u4"),
        ("first_change", "u4"),
        ("last_loop", "u4"),
        ("first_special", "u4"),
        ("specials", "u4"),  # there is a part more than these
        ("slots", "u4"),  # registers of its function: behind them the kernel lays the words of a record
    ],
    align=True,
)
"""A flat path (flat_paths.py)."""
NEVER = 0xFFFF_FFFF
GROUP, PAIR = 4, 2
"""Moves and words of a path are handled in groups of so many, definitions in pairs; there is at least one of each
but of words."""
MOST_WORDS = 248
"""Words of a flat path at most."""
SPARE = MOST_WORDS + 2 * GROUP
"""Registers that are free above those of the top frame."""
FLAT_ENTERS, FLAT_LEAVES, FLAT_HEADER, FLAT_EFFECTS, FLAT_LOOPS, FLAT_TERMS, FLAT_UNKNOWN, FLAT_PARTS = (
    1, 2, 4, 8, 16, 32, 64, 128)
"""It begins an activation; ends it; its first block is a loop's header, continues a call with effects; loops begin,
end or iterate between its blocks; addresses count iterations; nobody has looked whether it is flat; it has specials."""

MOVE = np.dtype(
    [
        ("offset", "u8"),
        ("subject", "u4"),
        ("size", "u4"),
        ("base", "u4"),  # a register, or behind those of its function a word of the record
        ("value", "u4"),  # the same: what it moved
        ("kind", "u1"),  # event
    ],
    align=True,
)
"""An event of a flat path, at ``base + offset``."""
MOVES = np.dtype([(name, MOVE[name], (GROUP,)) for name in ("offset", "subject", "size", "base", "value", "kind")],
                 align=True)
"""A group of them, as the kernel reads them."""
STRIDES = np.dtype([("stride1", "u8"), ("stride2", "u8"), ("level1", "u4"), ("level2", "u4")], align=True)
"""Beside a move: what its address counts, two products ``stride * iterations[level]``, each 0 if there is none."""
SPECIAL = np.dtype(
    [
        ("offset", "u8"),
        ("size", "u8"),
        *((name, STRIDES[name]) for name in ("stride1", "stride2", "level1", "level2")),
        ("size_base", "u4"),  # a base whose word is added to the size
        ("subject", "u4"),
        ("base", "u4"),
        ("object", "u4"),
        ("first_move", "u4"),  # of the part behind it
        ("moves", "u4"),
        ("code", "u1"),
        ("kind", "u1"),
        ("flags", "u1"),
    ],
    align=True,
)
"""A step (STEP) that takes decisions: a stack object begins or ends, a size is a word, an address has to be checked."""
DEFINE = np.dtype([("word", "u4"), ("register", "u4")], align=True)
"""A register that a flat path sets to a word, which lies where a MOVE's base says."""
CHANGE = np.dtype([("level", "u4"), ("loop", "u4"), ("opens", "u4")], align=True)
"""A loop is open after a flat path: `opens`, it was entered on the way; else it had one more iteration."""

SLOTS = 8
"""Registers of a function are a multiple of so many: set to 0 together."""
TERM = np.dtype([("stride", "u8"), ("loop", "u4"), ("register", "u4")], align=True)
FUNCTION = np.dtype([("slots", "u4"), ("depth", "u4")], align=True)
LOOP = np.dtype([("parent", "u4"), ("depth", "u4")], align=True)


class Tables(NamedTuple):
    """The program, by record id (paths) and row; all read-only."""

    paths: Any  # PATH[record id]
    flat: Any  # FLAT[record id]
    moves: Any  # MOVES
    strides: Any  # STRIDES, GROUP beside a row of moves
    specials: Any  # SPECIAL
    defines: Any  # DEFINE
    changes: Any  # CHANGE
    members: U4  # blocks of the paths
    blocks: Any  # BLOCK
    steps: Any  # STEP
    terms: Any  # TERM
    functions: Any  # FUNCTION
    loops: Any  # LOOP
    event_words: I8
    """[event code, 5]: the word that holds subject, address, size (-1: none); words (-1: no record); has a ticket."""
    image_first: U4  # by image number: its rows in image_globals
    image_globals: U4
    global_address: U8
    global_size: U8


# -- a stream's stack -----------------------------------------------------------------------------
FRAME_ROW = np.dtype(
    [
        ("address", "u8"),  # names the activation for landings; 0 if not recorded
        ("function", "u4"),  # NONE: the bottom of a signal handler's run
        ("pending", "u4"),  # the open call (instruction), or NONE
        ("block", "u4"),  # the last block, or NONE
        ("loop", "u4"),  # the innermost open loop, or NONE
        ("loops", "u4"),  # how many are open
        ("loop_base", "u4"),
        ("register_base", "u4"),
        ("object_base", "u4"),
        ("dead", "u4"),  # stack objects of the frame that ended before it
        ("entered", "u1"),  # the open call entered instrumented code
        ("tail", "u1"),  # the open call is a tail call: 1 may enter instrumented code, 2 cannot
        ("effects", "u1"),  # the open tail call has unknown effects
    ],
    align=True,
)

OBJECT = np.dtype([("address", "u8"), ("size", "u8"), ("op", "u4"), ("slot", "u4"), ("live", "u4")], align=True)

TOP, OBJECTS, RECORDS, LOST, MAY_START, RUN_DONE, ADDRESSES, BLOCKS, RUNS, PATIENCE = range(10)
SCALARS = 10
"""Scalars of a stream: index of the top frame (-1: none), stack objects, records so far, records were dropped, the
engine lets it pass a thread_start, iterations of the next record that were replayed already, and how many addresses,
blocks and runs were compared with what the program recorded in place, and were equal; and how many records of
paths that may be flat, but were not looked at, are replayed before the engine has to look."""

VIOLATIONS = (
    "a block has no activation to belong to",
    "a block continues a call that is not open",
    "a block does not continue the call that is open",
    "a function is entered without a call",
    "control lands in an unknown activation",
    "a loop is entered beside its header",
    "an address counts the iterations of a loop that is not open",
    "an address lies outside its object",
    "a record id names no path",
    "a signal handler's run does not begin or end properly",
    "stack memory is freed that was not allocated",
    "a run has more iterations than any program makes",
    "an address is not the one that the program used",
    "a path does not run the blocks that it says",
    "a run does not have the iterations that it says",
)
(NO_FRAME, NOT_OPEN, NOT_CONTINUED, NO_CALL, UNKNOWN_LANDING, BESIDE_HEADER, LOOP_NOT_OPEN, OUTSIDE, NO_PATH,
 BAD_SIGNAL, BAD_FREE, TOO_LONG, WRONG_ADDRESS, WRONG_BLOCK, WRONG_RUN) = range(len(VIOLATIONS))

LONGEST_RUN = 1 << 40
"""Iterations of one run at most (formats/SPEC.md, "Limits")."""

SEARCHES = 1000
"""After so many violations in a stream, those of witnesses left out, activations are no longer searched for: damage
must not cost hours."""


class Stream(NamedTuple):
    """Where one stream's replay stands."""

    frames: Any  # FRAME_ROW
    open_loops: U4
    iterations: U8  # beside open_loops
    registers: U8
    objects: Any  # OBJECT
    scalars: I8
    violations: I8  # [violation, 2]: how often, and the first record


class Process(NamedTuple):
    """What the streams share: live heap objects (open addressing; address 0 marks a free slot), threads created."""

    addresses: U8
    sizes: U8
    used: I8  # [1]
    created: U1  # by stream: its thread_create was delivered


class Wide(NamedTuple):
    """The words of values of more than eight bytes, but for the first: those of one event after another's."""

    words: U8
    events: U4
    """Beside `words`: the row of the event."""
    filled: I8
    """[1]: how many there are."""


class Columns(NamedTuple):
    """Events, one row each (formats/events.py), and which of them are wanted.

    A column or a group that nobody asked for is None: Numba then compiles a kernel without it. So each combination
    is a kernel of its own, and groups are few.
    """

    kind: U1
    subject: U4 | None
    address: U8 | None
    size: U8 | None
    value: U8 | None
    """The first eight bytes that a load or store moved, zeros behind; 0 where no value was recorded."""
    wide: Wide | None
    """What stands behind those."""
    keep: U1
    """[256]: 1 for the events that are wanted. Of a group that is not None some may be unwanted."""
    functions: U1 | None
    """`keep` if function_entry or function_exit is wanted."""
    loops: U1 | None
    """... loop_invocation, loop_iteration or loop_exit."""
    objects: U1 | None
    """... stack_alloc or stack_free."""


RECORD, WORD, FILLED, NEED = range(4)
"""Cursor (int64[4]): next record, next word, events in the columns, and the room that FULL asks for."""

INPUT, FULL, FRAMES, LOOPS, REGISTERS, STACK, HEAP, TICKET, CREATED, LOOK = range(10)
"""What the kernel returns: all records are used up; the columns have no room for NEED more events; frames, open
loops, registers, stack objects, heap table have to grow; the next ticket is beyond the limit; a thread was created;
paths have to be flattened."""
