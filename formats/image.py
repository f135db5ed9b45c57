"""The program image: the static tables that let a reader derive events from path records.

The compiler pass writes one *unit* for each translation unit: a header, a directory and tables of
fixed-width little-endian rows (SPEC.md, "Image tables"). Every index in a row counts rows of the
same unit's tables; every string is an offset into the unit's ``strings`` table (offset 0 is the
empty string). :data:`NONE` stands where there is nothing to point to.

The dtypes below are the one definition of these rows; ``cheader.py`` turns them into the C structs
that pass and runtime fill in.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

UNIT_MAGIC = b"TKUNIT\0\0"
UNIT_VERSION = 1
UNIT_IN_PLANES = 2
"""The version of units as traces hold them since format version 3."""

IMPORTED = "machine code"
"""What ``unit.at`` says of an imported trace."""


class OpKind(IntEnum):
    """What an operation does; LOAD to SET are memory accesses."""

    LOAD = 1
    STORE = 2
    ATOMIC = 3  # read-modify-write: a load and a store of the same bytes
    COPY_FROM = 4  # the source of a bulk copy or move; its size is the length of the copy
    COPY_TO = 5  # the row after COPY_FROM: same instruction, same size
    SET = 6
    CALL = 7  # `base` is a row of `calls`; records nothing; ends its block unless it cannot re-enter
    STACK_ALLOC = 8  # a stack object begins (alloca, or its lifetime); it ends with its frame at the latest
    STACK_FREE = 9  # its lifetime ends
    POINTER = 10  # a pointer is created (records its value)
    BASE = 11  # records a value into a register of the frame; no event
    FRAME = 12  # records the address that names this activation (functions control may land in)
    LANDING = 13  # records the FRAME address of the activation that control landed in
    GROUND_TRUTH = 14  # records the number of its block among those of the function; no event


LOADS = (OpKind.LOAD, OpKind.ATOMIC, OpKind.COPY_FROM)
"""Operations that load."""
STORES = (OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_TO, OpKind.SET)
"""Operations that store."""


class OpFlag(IntFlag):
    """Flags of an operation."""

    VOLATILE = 1
    ATOMIC = 2
    DYNAMIC_SIZE = 4  # the size in bytes is a recorded word, after the address; 0: no access (a lane masked out)
    VALUE = 8  # the bits loaded or stored are recorded, ceil(size / 8) words, after address and size; of ATOMIC both
    LIBRARY = 16  # a library function that the pass knows (strlen, ...), not an instruction
    GROUND_TRUTH = 32  # the address is recorded in place too, as the operation's last word; a reader compares the two
    SAME_VALUE = 64  # a store of a value from outside all loops of its function
    BY_POINTER = 128  # the source gets to `name` through a pointer or reference there, or may


class OpUse(IntFlag):
    """What an operation's memory or value is used for. Traces made before this field have none."""

    DECIDES = 1  # of a LOAD: each time, a branch, an address or what is printed follows from all bits of its value
    EMPTY = 2  # of a STACK_ALLOC: the object begins without a value; an argument passed by value has one
    OF_LANE = 4  # of an access in a SIMD loop: each lane has a copy of the memory, such as a private variable
    BY_REFERENCE = 8  # of a LOAD or STORE: `name` is the reference or dummy argument by which the source gets there
    ALLOCA = 16  # of a STACK_ALLOC: what `alloca` gives, whose memory ends with the function; no variable


class Base(IntEnum):
    """How an operation's address is known: base + offset + sum(stride * iteration) over `terms`."""

    RECORDED = 0  # the address is the next recorded word
    REGISTER = 1  # `base` is a register of the frame
    GLOBAL = 2  # `base` is a row of `globals`
    STACK = 3  # `base` is an operation STACK_ALLOC of the same function
    ABSOLUTE = 4  # no base: offset is the address
    NO_ADDRESS = 5  # the operation has none (CALL)


class TypeClass(IntEnum):
    """The class of the value that an operation moves."""

    UNKNOWN = 0
    INTEGER = 1
    FLOAT = 2
    POINTER = 3
    VECTOR = 4
    AGGREGATE = 5


class PathFlag(IntFlag):
    """Flags of a path."""

    RUN = 1  # one iteration of a loop: the record's only word says how many of them ran, one after another
    GROUND_TRUTH = 2  # of a RUN: those iterations have records of their own; a reader compares their number


class BlockFlag(IntFlag):
    """Flags of a block; a block here is a basic block's segment between calls."""

    ENTRY = 1  # begins an activation of its function
    CONTINUES = 2  # follows, in its basic block or at an invoke's normal edge, the call `continues`
    LOOP_HEADER = 4  # first segment of the header of its loop
    LANDING = 8  # control may arrive here by unwinding or a second return of setjmp
    RETURNS = 16  # ends by leaving the function
    TAIL_CALL = 32  # ends with a call whose return leaves this function too
    LATCH = 64  # has a back edge to the header of its loop


class FunctionFlag(IntFlag):
    """Flags of a function."""

    ADDRESS_TAKEN = 1
    LOCAL = 2  # internal linkage: its name binds in this unit only
    VARARGS = 4
    RETURNS_TWICE = 8  # calls setjmp or its like
    THREAD_LOCAL = 16  # uses variables of one thread


class CallFlag(IntFlag):
    """Flags of a call site."""

    INDIRECT = 1
    MAY_CALL_BACK = 2  # an external callee that may enter instrumented code
    PURE = 4  # touches no memory but what is recorded, does no input or output
    NO_RETURN = 8
    ALLOCATES = 16  # allocation or deallocation function
    RETURNS_TWICE = 32
    TAIL = 64  # kept a tail call: no record follows its return
    INLINE_ASM = 128  # its memory operands are not seen
    LEAF = 256  # a function of the C library that calls nothing back: does not end its block
    HANDED_ON = 512  # its function returns the result, or keeps it in what it returns, and passes a number it was given
    CLOCK = 1024  # PURE, but what it returns or stores is another value each time


class LoopFlag(IntFlag):
    """Flags of a loop."""

    COUNTABLE = 1  # trip count computable at entry, and a single exit
    EXITS_ON_DATA = 2  # an exit depends on loaded data or on a call
    EXITS_EARLY = 4  # break, return, goto: an exit besides the loop's own test
    TESTS_AT_HEADER = 8  # the header may leave the loop and is not a latch (while form)
    FOR_STATEMENT = 16  # a for or a DO, counted in its head alone; with SOURCE: one that OpenMP accepts
    LEAVES_VALUES = 32  # a value that no variable of the source names is used after the loop, other than a reduction's
    CAUSES = 64  # `causes` says what its exits depend on
    SOURCE = 128  # FOR_STATEMENT and the loop's `variables` are those of the source, seen before any optimisation
    SIMD = 256  # the source says that iterations may run at once in lanes (omp simd); upper 16 bits: how many, 0: any
    BINDING = 512  # with SOURCE: it uses a structured binding of C++ that is declared outside
    PRAGMA = 1024  # with SOURCE: a pragma about loops that compilers act on stands before it; in Fortran any directive
    CONSTEXPR = 2048  # with SOURCE: in a constexpr function of C++; in Fortran in a pure procedure or DO CONCURRENT
    LINES_ONLY = 4096  # with SOURCE: built without -g, so nothing is known of its variables, and it is no FOR_STATEMENT
    THREAD_LOCAL = 8192  # with SOURCE: it, or a function of the unit that it calls, uses variables of one thread
    CONCURRENT = 16384  # with SOURCE: a directive of OpenMP says that its iterations may run in any order
    WORD_IS_MACRO = 32768  # with SOURCE: a macro of its file has the name of a word of directives, as `private`


class PhiKind(IntEnum):
    """What the value that a loop header's phi carries from iteration to iteration is."""

    INDUCTION = 1
    REDUCTION = 2
    RECURRENCE = 3
    LAST_VALUE = 4  # no iteration looks at, or by the source has, what the one before assigned; code after it may


class CauseOf(IntEnum):
    """What has a cause."""

    EXIT = 1  # row of `loop_exits`: what the decision whether to leave there depends on
    PHI = 2  # row of `phis`: what a RECURRENCE advances by, or is loaded from; without causes it does more


class CauseKind(IntEnum):
    """A cause, found by following registers up to the loop's edge."""

    LOAD = 1  # row of `ops`
    CALL = 2  # row of `ops`: what a call returns
    PHI = 3  # row of `phis`, of the loop's own header
    OTHER = 4  # something else that may change: a volatile or atomic load, what an inner loop ends with
    ENDS = 5  # of an exit, and alone: it unwinds, or the program ends behind it
    BEFORE = 6  # of an exit from a function, or by goto: row of `ops`, runs at least as often as the decision
    BEHIND = 7  # row of `ops`: runs at most as often as it is decided to go on. As often as BEFORE: never left there


class CauseFlag(IntFlag):
    """Flags of a cause."""

    FIXED = 1  # of LOAD, CALL: address or arguments are the same in all iterations, if all FIXED loads and calls are


class PartKind(IntEnum):
    """What more than one load and one store belongs to an update: these use the accumulated value, and nothing else."""

    MEMBER = 1  # row of `ops`: another load or store of the variable
    DECISION = 2  # row of `blocks`: it ends with a branch on whether the variable is replaced
    POSITION = 3  # row of `ops`: stores something beside it where the variable is replaced, by an operator of its own


class LoopFate(IntEnum):
    """What the optimiser has made of a loop of the source."""

    UNROLLED = 1  # what is left of it runs without a loop of its own: in straight code, or as part of another loop
    COMPUTED = 2  # the same, and that is arithmetic alone
    SET = 3  # a call of memset
    COPY = 4  # a call of memcpy or memmove
    DELETED = 5  # nothing is left of it
    INTERCHANGED = 6  # it runs inside a loop that it surrounds in the source


class VariableFlag(IntFlag):
    """Flags of a variable that a loop assigns; those from READ_FIRST on are of loops with the flag SOURCE."""

    USED_AFTER = 1  # what the loop leaves in it may be used after the loop
    INDUCTION = 2  # an induction of the loop, which a phi carries; with SOURCE: the counter of a FOR_STATEMENT
    READ_FIRST = 4  # an iteration may read it before it has assigned it
    SOMETIMES = 8  # an iteration may leave it, or a part of it, unassigned; of the counter: perhaps no iteration runs
    CALLEE = 16  # a function that is called in the loop uses it, too
    REACHED = 32  # the loop gives its address to a call, or may reach it through a pointer
    VARYING = 64  # an array or structure, of which the loop uses different parts at one place
    GLOBAL = 128  # of static storage
    NO_REDUCTION = 256  # its type is none that OpenMP's reductions take in C and C++: a number, or an array of them
    POINTEE = 512  # no variable, but memory behind a pointer, always the same, that the optimised loop does not store
    LENT = 1024  # a local one: the loop gives its address to calls, and no call in its function keeps it
    RENAMED = 2048  # the loop's text has another name for it: a reference, or a constant pointer
    WATCHED = 4096  # a counter that is REACHED, nothing optimised: the run shows whether the loop's head alone sets it
    WHOLE = 8192  # its type is known, and holds no floating-point number
    WITHIN = 16384  # of static storage, and declared inside the loop, perhaps (extern, using): no clause can name it
    OTHER_SIGN = 32768  # an integer that the loop compares as one of the other signedness
    SHARED = 65536  # a static member of a class, which OpenMP has threads share, whatever a clause says
    NO_COPY = 131072  # no clause makes copies of its class, or these would run code of the program (constructors)
    REFERENCE = 262144  # of C++, or a dummy argument: by its name the loop's text accumulates in a number
    ELSEWHERE = 524288  # a counter that is REACHED: its address is taken outside of the loop, too


class EdgeKind(IntEnum):
    """An edge of the program dependence graph within a function."""

    REGISTER = 1
    CONTROL = 2


class NodeKind(IntEnum):
    """An end of such an edge."""

    OP = 1  # row of `ops`: memory access or call
    PHI = 2  # row of `phis`
    BRANCH = 3  # row of `blocks`: the block that ends with the branch


class StructureKind(IntEnum):
    """What a row of `types` describes."""

    STRUCT = 1  # a structure or class
    UNION = 2


class TypedKind(IntEnum):
    """What is known to be of a type."""

    OP = 1  # row of `ops`: an access to a part, `offset` bytes from its start; a STACK_ALLOC of it, or an array of it
    GLOBAL = 2  # row of `globals`: a variable of the type, or an array of it


class GlobalFlag(IntFlag):
    """Flags of a global variable."""

    CONSTANT = 1
    THREAD_LOCAL = 2
    LOCAL = 4


TABLES: dict[str, list[tuple[str, str]]] = {
    # NUL-terminated UTF-8; the first byte is NUL
    "strings": [("byte", "u1")],
    # one row: the unit itself
    "unit": [("source", "u4"), ("producer", "u4"), ("target", "u4"), ("at", "u4")],
    "sources": [("path", "u4"), ("md5", "u4")],  # md5: hex string or 0
    # function: as functions.source_name; inlined_at: row of locations or NONE
    "locations": [("source", "u4"), ("line", "u4"), ("column", "u4"), ("function", "u4"), ("inlined_at", "u4")],
    # name: linkage name; source_name: what its language calls it, demangled, or 0.
    # The rows of a function's paths, blocks, ops, loops and edges are contiguous.
    "functions": [
        ("name", "u4"),
        ("source_name", "u4"),
        ("signature", "u4"),
        ("location", "u4"),
        ("flags", "u4"),
        ("first_path", "u4"),
        ("paths", "u4"),
        ("first_block", "u4"),
        ("blocks", "u4"),
        ("first_op", "u4"),
        ("ops", "u4"),
        ("first_loop", "u4"),
        ("loops", "u4"),
        ("first_edge", "u4"),
        ("edges", "u4"),
        ("registers", "u4"),
    ],
    # words: how many words follow the id. first: row of path_blocks
    "paths": [("first", "u4"), ("blocks", "u4"), ("words", "u4"), ("flags", "u4")],
    "path_blocks": [("block", "u4")],
    # loop: innermost, or NONE. call: the row of ops of the call that ends the block, or NONE.
    # continues: the row of ops of the call that this block follows, or NONE.
    "blocks": [
        ("function", "u4"),
        ("loop", "u4"),
        ("first_op", "u4"),
        ("ops", "u4"),
        ("flags", "u4"),
        ("call", "u4"),
        ("continues", "u4"),
        ("location", "u4"),
    ],
    # base: what `base_kind` says. defines: the register that the recorded word sets, or NONE. name: of a
    # stack object, or of the global or local variable that an access is known to lie in, or 0
    "ops": [
        ("size", "u8"),
        ("offset", "i8"),
        ("location", "u4"),
        ("base", "u4"),
        ("first_term", "u4"),
        ("defines", "u4"),
        ("terms", "u2"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("type_class", "u1"),
        ("base_kind", "u1"),
        ("use", "u2"),
        ("name", "u4"),
    ],
    # an affine term: (stride + value of stride_register if not NONE) * iteration of loop
    "terms": [("stride", "i8"), ("loop", "u4"), ("stride_register", "u4")],
    # callee: linkage name, or 0 if indirect. first_target: rows of call_targets, functions passed as arguments
    "calls": [
        ("callee", "u4"),
        ("signature", "u4"),
        ("flags", "u4"),
        ("first_target", "u4"),
        ("targets", "u4"),
        ("op", "u4"),
        ("block", "u4"),
    ],
    "call_targets": [("name", "u4")],
    # header: row of blocks. depth from 1. location: of the loop statement; end_line: last line inside
    "loops": [
        ("function", "u4"),
        ("header", "u4"),
        ("parent", "u4"),
        ("depth", "u4"),
        ("location", "u4"),
        ("end_line", "u4"),
        ("flags", "u4"),
        ("first_phi", "u4"),
        ("phis", "u4"),
        ("first_exit", "u4"),
        ("exits", "u4"),
    ],
    # exit edges, from a block inside to one outside
    "loop_exits": [("source", "u4"), ("target", "u4"), ("location", "u4")],
    # operator: "+", "*", "&", "|", "^", "&&", "||", "min", "max"; "argmin", "argmax": what is taken along with such;
    # "=": an iteration leaves it alone or sets it to a value, the same in all; of an INDUCTION what it advances by, if
    # that is a constant: "+3", "-1", of a pointer "+8 bytes"; of a RECURRENCE the same, if it advances in some
    # iterations and keeps its value in others; or 0. name: of the variable, or 0
    "phis": [("kind", "u4"), ("operator", "u4"), ("name", "u4"), ("location", "u4")],
    "edges": [("kind", "u1"), ("from_kind", "u1"), ("to_kind", "u1"), ("reserved", "u1"), ("from", "u4"), ("to", "u4")],
    # load-operator-store: rows of ops, same address
    "updates": [("load", "u4"), ("store", "u4"), ("operator", "u4")],
    # size in bytes
    "globals": [
        ("size", "u8"),
        ("name", "u4"),
        ("source_name", "u4"),
        ("type", "u4"),
        ("flags", "u4"),
        ("location", "u4"),
        ("reserved", "u4"),
    ],
    # functions that this unit only declares and takes the address of, by linkage name
    "address_taken": [("name", "u4")],
    # variables declared outside a loop that it assigns
    "variables": [("loop", "u4"), ("name", "u4"), ("flags", "u4"), ("location", "u4")],
    # functions that this unit calls and does not define, by linkage name, if source_name (as of functions) is another
    "declarations": [("name", "u4"), ("source_name", "u4")],
    # the compilation folder, which relative paths in `sources` start from: UTF-8 without an end; no part of the hash
    "folder": [("byte", "u1")],
    # what the pass was asked to record beyond accesses: "pointers=1", "threads=1", "values=all",
    # and what it took for allocators of the program's own: "allocator=pool_realloc:_bs"
    "options": [("option", "u4")],
    # what exits of loops depend on, and what recurrences advance by. of: row of loop_exits or phis; index: of ops, phis
    "causes": [("of_kind", "u4"), ("of", "u4"), ("kind", "u4"), ("index", "u4"), ("flags", "u4")],
    # update: row of updates. operator: of a POSITION, or 0
    "update_parts": [("update", "u4"), ("kind", "u4"), ("index", "u4"), ("operator", "u4")],
    # loops of the source that are no loops of the optimised program, or not in their place. into: row of locations
    "loop_fates": [("location", "u4"), ("end_line", "u4"), ("fate", "u4"), ("into", "u4")],
    # what the source's loop does to a variable, and nothing else. kind: PhiKind; operator: as of `phis`
    "variable_updates": [("variable", "u4"), ("kind", "u4"), ("operator", "u4")],
    # structures of the source; size in bytes. kind: StructureKind
    "types": [
        ("size", "u8"),
        ("name", "u4"),
        ("kind", "u4"),
        ("first_member", "u4"),
        ("members", "u4"),
        ("location", "u4"),
        ("reserved", "u4"),
    ],
    # their members; offset and size in bits. type: row of types, of a member that is a structure or an array of them
    "members": [
        ("offset", "u8"),
        ("size", "u8"),
        ("name", "u4"),
        ("type_name", "u4"),
        ("type", "u4"),
        ("location", "u4"),
    ],
    # what is known to be of a type. of_kind: TypedKind; of: row of ops or globals
    "typed": [("of_kind", "u4"), ("of", "u4"), ("type", "u4"), ("offset", "u4")],
    # lines that a block's code stands in, beside that of the block's own location
    "lines": [("block", "u4"), ("location", "u4")],
    # the machine code of an imported trace. op: row of ops; binary: name of the file that the counter lies in, or 0
    "counters": [("counter", "u8"), ("op", "u4"), ("binary", "u4")],
}
"""Name of a table -> (field, little-endian type) of its rows, packed, in the order of the directory ids."""

DTYPES: dict[str, np.dtype] = {
    name: np.dtype([(field, "<" + kind) for field, kind in fields]) for name, fields in TABLES.items()
}
"""Name of a table -> its NumPy row dtype."""
