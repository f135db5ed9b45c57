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
# Codes of a step.
RECORDED = 0  # a load or store at the next word, nothing more
ACCESS = 1  # any other load or store
REGISTER = 2  # a register is set to the next word
ALLOC = 3  # a stack object begins
FREE = 4  # a stack object ends
FRAME = 5  # the frame's address, by which landings name the activation
SKIP = 6  # a word that replay does not need
POINTER = 7  # a pointer is made
EXTERNAL = 8  # a call returned that entered no instrumented code, and its effects are unknown
NUMBER = 9  # a word that says which block this is
UNWANTED = 10  # an operation whose events nobody requested: only its words count

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
# Flags of a step.
STEP_WORD = 1  # the address begins with the next word
STEP_REGISTER = 2  # the address begins with a register
STEP_DYNAMIC = 4  # the size is a word
STEP_LOADS_TOO = 8  # a load stands before the store
STEP_SAME_SIZE = 16  # the size is that of the step before
STEP_GLOBAL = 32  # the address lies in a known global
STEP_STACK = 64  # the address lies in a known stack object
STEP_GROUND_TRUTH = 128  # its last word is the address as the program computed it

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
        ("run", "u4"),  # 0, or one of the kinds below
        ("events", "u4"),  # of a STEADY run: those of each iteration but the first
        ("checked", "u4"),  # of a STEADY run: 1 if an address has to lie in a known object
    ],
    align=True,
)
# Kinds of runs of iterations.
ANY_RUN = 1  # one that is neither of those below
STEADY = 2  # its iterations all cause the same events, at addresses that move by the same distance each time
GROUND_TRUTH_RUN = 3  # it was recorded in full beside it, and only says how many iterations there were


TEMPLATE = np.dtype(
    [
        ("function", "u4"),
        ("continues", "u4"),  # the open call that its first block continues
        ("loop", "u4"),  # of its first block
        ("room", "u4"),  # events at most; NEVER if the path has no template
        ("first_template_event", "u4"),  # row of the template events
        ("words", "u2"),
        ("template_events", "u2"),  # events of its first part
        ("defines", "u2"),
        ("changes", "u2"),
        ("flags", "u2"),
        ("last_depth", "u2"),
        ("call", "u4"),  # the open call after it
        ("block", "u4"),  # the last
        ("first_define", "u4"),
        ("first_change", "u4"),
        ("last_loop", "u4"),
        ("first_dynamic_step", "u4"),
        ("dynamic_steps", "u4"),  # there is one part more than these
        ("slots", "u4"),  # registers of its function: behind them the kernel lays the words of a record
    ],
    align=True,
)
"""A path template (replay/templates.py)."""
NEVER = 0xFFFF_FFFF
GROUP = 4
"""Events and words of a template are handled in groups of so many; there is at least one group of events."""
PAIR = 2
"""Definitions are handled in pairs; there is at least one pair."""
MOST_WORDS = 248
"""Words of a template at most."""
SPARE = MOST_WORDS + 2 * GROUP
"""Registers that are free above those of the top frame."""
# Flags of a template.
TEMPLATE_ENTERS = 1  # it begins an activation
TEMPLATE_LEAVES = 2  # it ends its activation
TEMPLATE_HEADER = 4  # its first block is a loop's header
TEMPLATE_EFFECTS = 8  # its first block continues a call with effects
TEMPLATE_LOOPS = 16  # loops begin, end or iterate between its blocks
TEMPLATE_TERMS = 32  # addresses count iterations
TEMPLATE_UNKNOWN = 64  # nobody has looked whether its path can have one
TEMPLATE_DYNAMIC = 128  # it has dynamic steps
TEMPLATE_RUN = 256  # its record stands for many iterations; only compiled paths know such templates

TEMPLATE_EVENT = np.dtype(
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
"""An event of a template, at ``base + offset``."""
TEMPLATE_EVENT_GROUP = np.dtype(
    [(name, TEMPLATE_EVENT[name], (GROUP,)) for name in ("offset", "subject", "size", "base", "value", "kind")],
    align=True,
)
"""A group of them, as the kernel reads them."""
MOST_TERMS = 4
"""Products that the address of an event of a template may have; but for runs the kernel knows two."""
STRIDES = np.dtype(
    [
        *((f"stride{number}", "u8") for number in range(1, MOST_TERMS + 1)),
        *((f"level{number}", "u4") for number in range(1, MOST_TERMS + 1)),
    ],
    align=True,
)
"""Beside an event: what its address counts, products ``stride * iterations[level]``, each 0 if there is none."""
DYNAMIC_STEP = np.dtype(
    [
        ("offset", "u8"),
        ("size", "u8"),
        *((name, STRIDES[name]) for name in STRIDES.names or ()),
        ("size_base", "u4"),  # a base whose word is added to the size
        ("subject", "u4"),
        ("base", "u4"),
        ("object", "u4"),
        ("first_template_event", "u4"),  # of the part behind it
        ("template_events", "u4"),
        ("code", "u1"),
        ("kind", "u1"),
        ("flags", "u1"),
    ],
    align=True,
)
"""A step (STEP) that takes decisions: a stack object begins or ends, a size is a word, an address has to be checked."""
DEFINE = np.dtype([("word", "u4"), ("register", "u4")], align=True)
"""A register that a template sets to a word, which lies where a TEMPLATE_EVENT's base says."""
CHANGE = np.dtype([("level", "u4"), ("loop", "u4"), ("opens", "u4")], align=True)
"""A loop is open after the path: `opens`, it was entered on the way; else it had one more iteration."""

SLOTS = 8
"""Registers of a function are a multiple of so many: set to 0 together."""
TERM = np.dtype([("stride", "u8"), ("loop", "u4"), ("register", "u4")], align=True)
FUNCTION = np.dtype([("slots", "u4"), ("depth", "u4")], align=True)
RESUMED = np.dtype(
    [
        ("registers", "u4"),  # of the image
        ("first_loop", "u4"),
        ("first_alloc", "u4"),  # of its STACK_ALLOC operations in `allocs`
        ("allocs", "u4"),
    ],
    align=True,
)
LOOP = np.dtype([("parent", "u4"), ("depth", "u4")], align=True)


OPEN_CALL = -2
"""In `Tables.event_words`."""


class Tables(NamedTuple):
    """The program, by record id (paths) and row; all read-only."""

    paths: Any  # PATH[record id]
    templates: Any  # TEMPLATE[record id]
    template_events: Any  # TEMPLATE_EVENT_GROUP
    strides: Any  # STRIDES, GROUP beside a row of template events
    dynamic_steps: Any  # DYNAMIC_STEP
    defines: Any  # DEFINE
    changes: Any  # CHANGE
    members: U4  # blocks of the paths
    blocks: Any  # BLOCK
    steps: Any  # STEP
    terms: Any  # TERM
    functions: Any  # FUNCTION
    resumed: Any  # RESUMED, by function: what records of a window's beginning count from
    allocs: U4  # STACK_ALLOC operations, function by function
    loops: Any  # LOOP
    event_words: I8
    """[event code, 5]: the word that holds subject, address, size (-1: none; OPEN_CALL: no word, but the instruction of
    the open call); words (-1: no record); has a ticket."""
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

# Elements of Stream.scalars.
TOP = 0  # index of the top frame, -1: none
OBJECTS = 1  # how many stack objects live
RECORDS = 2  # records so far
LOST = 3  # 1 if records were dropped
MAY_START = 4  # 1 if the engine lets it pass a thread_start
RUN_DONE = 5  # iterations of the next record that were replayed already
ADDRESSES = 6  # how many addresses were compared with what the program recorded in place, and were equal
BLOCKS = 7  # the same of blocks
RUNS = 8  # the same of runs
PATIENCE = 9  # records of paths not looked at yet to replay before the engine has to make templates
SCALARS = 10
"""How many there are."""

# Violations: what a stream says and no program can have done, but for those OF_PROGRAMS.
NO_FRAME = 0
NOT_OPEN = 1
NOT_CONTINUED = 2
NO_CALL = 3
UNKNOWN_LANDING = 4
BESIDE_HEADER = 5
LOOP_NOT_OPEN = 6
OUTSIDE = 7
NO_PATH = 8
BAD_SIGNAL = 9
BAD_FREE = 10
TOO_LONG = 11
WRONG_ADDRESS = 12
WRONG_BLOCK = 13
WRONG_RUN = 14

_SENTENCES = {
    NO_FRAME: "a block has no activation to belong to",
    NOT_OPEN: "a block continues a call that is not open",
    NOT_CONTINUED: "a block does not continue the call that is open",
    NO_CALL: "a function is entered without a call",
    UNKNOWN_LANDING: "control lands in an unknown activation",
    BESIDE_HEADER: "a loop is entered beside its header",
    LOOP_NOT_OPEN: "an address counts the iterations of a loop that is not open",
    OUTSIDE: "an address lies outside its object",
    NO_PATH: "a record id names no path",
    BAD_SIGNAL: "a signal handler's run does not begin or end properly",
    BAD_FREE: "stack memory is freed that was not allocated",
    TOO_LONG: "a run has more iterations than any program makes",
    WRONG_ADDRESS: "an address is not the one that the program used",
    WRONG_BLOCK: "a path does not run the blocks that it says",
    WRONG_RUN: "a run does not have the iterations that it says",
}
OF_PROGRAMS = (OUTSIDE,)
"""What a program that goes beyond an object can have done: nothing else is wrong then."""
VIOLATIONS = tuple(_SENTENCES[violation] for violation in range(len(_SENTENCES)))
"""By violation: what `tracekit check` says of it."""


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


# Elements of the cursor, int64.
RECORD = 0  # the next record
WORD = 1  # the next word
FILLED = 2  # events in the columns
NEED = 3  # the room, in events, that FULL asks for
NEXT_EVENT = 4  # that of TICKET
NEXT_TICKET = 5
CURSOR = 6
"""How many there are."""

# What the kernel returns: why it stopped.
INPUT = 0  # all records are used up
FULL = 1  # the columns have no room for NEED more events
FRAMES = 2  # the frames have to grow
LOOPS = 3  # the open loops have to grow
REGISTERS = 4  # the registers have to grow
STACK = 5  # the stack objects have to grow
HEAP = 6  # the heap table has to grow
TICKET = 7  # the next ticket is beyond the limit
CREATED = 8  # a thread was created
LOOK = 9  # templates have to be made
