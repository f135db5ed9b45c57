"""Turns a Program into the layouts of the derive kernel: operations become steps, blocks and paths get their limits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.image import Base, BlockFlag, CallFlag, GlobalFlag, LoopFlag, OpFlag, OpKind, PathFlag
from tracekit.program import validation
from tracekit.program.activations import call_rows, landing_words, may_enter
from tracekit.program.program import Program
from tracekit.replay import runs, template_cache
from tracekit.replay.kernels import layouts
from tracekit.replay.selection import GROUPS

Rows = NDArray[Any]
U1 = NDArray[np.uint8]
U4 = NDArray[np.uint32]

CODES = {
    OpKind.LOAD: layouts.ACCESS,
    OpKind.STORE: layouts.ACCESS,
    OpKind.ATOMIC: layouts.ACCESS,
    OpKind.COPY_FROM: layouts.ACCESS,
    OpKind.COPY_TO: layouts.ACCESS,
    OpKind.SET: layouts.ACCESS,
    OpKind.CALL: layouts.EXTERNAL,
    OpKind.STACK_ALLOC: layouts.ALLOC,
    OpKind.STACK_FREE: layouts.FREE,
    OpKind.POINTER: layouts.POINTER,
    OpKind.BASE: layouts.REGISTER,
    OpKind.FRAME: layouts.FRAME,
    OpKind.LANDING: layouts.SKIP,
    OpKind.GROUND_TRUTH: layouts.NUMBER,
}
LOADS = (OpKind.LOAD, OpKind.COPY_FROM)
SILENT = CallFlag.PURE | CallFlag.ALLOCATES | CallFlag.RETURNS_TWICE
"""Calls with one of these flags have no unknown effects: nothing, allocation events, or only setjmp's."""


NEVER_SO_MANY = 1 << 30
"""Register slots: more than the engine lets a stream have, so that a function with so many is never entered."""
LOOP_EVENTS = [CODE[name] for name in GROUPS["loops"]]
OBJECT_EVENTS = [CODE[name] for name in GROUPS["objects"]]


def build(program: Program, keep: U1) -> layouts.Tables:
    """The kernel's read-only tables for a program; `keep` (256) u1 is 1 for the code of an event that is wanted."""
    alloc_slot, functions, resumed, allocs = _slots(program)
    steps, before = _steps(program, alloc_slot, keep)
    blocks = _blocks(program, steps, before, keep)
    terms = np.zeros(max(len(program.terms), 1), layouts.TERM)
    terms["stride"][: len(program.terms)] = program.terms["stride"].view(np.uint64)
    terms["loop"][: len(program.terms)] = program.terms["loop"]
    terms["register"][: len(program.terms)] = program.terms["stride_register"]
    loops = np.zeros(max(len(program.loops), 1), layouts.LOOP)
    loops["parent"][: len(program.loops)] = program.loops["parent"]
    loops["depth"][: len(program.loops)] = program.loops["depth"]
    first, image_globals = _globals_by_image(program)
    paths = _paths(program, blocks, steps, functions, keep)
    return layouts.Tables(
        paths=paths,
        members=_contiguous(program.path_blocks["block"]),
        **template_cache.none_yet(program),
        blocks=blocks,
        steps=steps,
        terms=terms,
        functions=functions,
        resumed=resumed,
        allocs=allocs,
        loops=loops,
        event_words=_event_words(),
        image_first=first,
        image_globals=image_globals,
        global_address=program.global_address,
        global_size=_contiguous(program.globals["size"]),
    )


def _contiguous(column: Rows) -> Any:
    return np.ascontiguousarray(column)


def _slots(program: Program) -> tuple[U4, Rows, Rows, U4]:
    """Register slots: those of the image, then two for each STACK_ALLOC (its address, its object).

    Also what records of a window's beginning count from, and the STACK_ALLOC operations.
    """
    functions = np.zeros(max(len(program.functions), 1), layouts.FUNCTION)
    count = len(program.functions)
    allocs = program.ops["kind"] == OpKind.STACK_ALLOC
    owner = program.op_function
    owned = allocs & (owner != NONE)
    per_function = np.bincount(owner[owned], minlength=max(count, 1))[: max(count, 1)]
    used = program.functions["registers"] + 2 * per_function[:count] + 2  # the last two stay 0, or are for nobody
    functions["slots"][:count] = np.minimum(-(-used // layouts.SLOTS) * layouts.SLOTS, NEVER_SO_MANY)
    if len(program.loops):
        np.maximum.at(functions["depth"], program.loops["function"], program.loops["depth"])
    rank = np.cumsum(owned) - 1
    before = np.concatenate([[0], np.cumsum(per_function)])
    alloc_slot = np.zeros(len(program.ops), np.uint32)
    alloc_slot[owned] = program.functions["registers"][owner[owned]] + 2 * (rank[owned] - before[owner[owned]])
    resumed = np.zeros(len(functions), layouts.RESUMED)
    for name in ("registers", "first_loop"):
        resumed[name][:count] = program.functions[name]
    resumed["first_alloc"][:count] = before[:count]
    resumed["allocs"][:count] = per_function[:count]
    return alloc_slot, functions, resumed, np.flatnonzero(owned).astype(np.uint32)


def _steps(program: Program, alloc_slot: U4, keep: U1) -> tuple[Rows, NDArray[np.int64]]:
    """One step for each operation but calls that end their block; `before[op]` steps stand before an operation."""
    ops = program.ops
    ends = np.zeros(len(ops), np.bool_)
    ends[program.blocks["call"][program.blocks["call"] != NONE]] = True
    silent = np.zeros(len(ops), np.bool_)
    is_call = ops["kind"] == OpKind.CALL
    silent[is_call] = program.calls["flags"][ops["base"][is_call]] & int(SILENT) != 0
    kept = (ops["kind"] != 0) & ~(is_call & (ends | silent))
    chosen = ops[kept]
    steps = np.zeros(len(chosen), layouts.STEP)
    kind, base = chosen["kind"], chosen["base_kind"]
    addressed = np.isin(kind, validation.ADDRESSED)
    steps["code"] = np.array([CODES.get(OpKind(k), 0) if k else 0 for k in range(max(OpKind) + 1)], np.uint8)[kind]
    steps["kind"] = np.where(np.isin(kind, LOADS), CODE["load"], CODE["store"])
    steps["size"] = np.where(kind == OpKind.POINTER, chosen["type_class"], chosen["size"])
    steps["offset"] = np.where(addressed, chosen["offset"].view(np.uint64), 0)
    rows = np.flatnonzero(kept).astype(np.uint32)
    # Both halves of a copy are one instruction, that of its source.
    steps["subject"] = np.where(kind == OpKind.COPY_TO, rows - 1, rows)
    steps["defines"] = chosen["defines"]
    steps["object"] = NONE
    steps["terms"] = np.where(addressed, chosen["terms"], 0)
    steps["first_term"] = chosen["first_term"]
    steps["flags"] = _step_flags(chosen, addressed)
    steps["values"] = validation.value_words(chosen)
    steps["base"] = np.where(base == Base.REGISTER, chosen["base"], 0)
    stack = addressed & (base == Base.STACK)
    steps["base"][stack] = alloc_slot[chosen["base"][stack]]
    in_global = addressed & (base == Base.GLOBAL)
    steps["object"][in_global] = chosen["base"][in_global]
    steps["offset"][in_global] += program.global_address[chosen["base"][in_global]]
    alloc = kind == OpKind.STACK_ALLOC
    steps["object"][alloc] = alloc_slot[kept][alloc]
    plain = (steps["code"] == layouts.ACCESS) & np.isin(kind, [OpKind.LOAD, OpKind.STORE, OpKind.SET])
    plain &= (steps["flags"] == layouts.STEP_WORD) & (steps["terms"] == 0) & (steps["values"] == 0)
    plain &= (steps["defines"] == NONE) & (steps["size"] != 0) & (steps["offset"] == 0)
    steps["code"][plain] = layouts.RECORDED
    _check_globals(program, steps)
    _pass_over(program, rows, steps, keep)
    return (steps if len(steps) else np.zeros(1, layouts.STEP)), np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)


def _check_globals(program: Program, steps: Rows) -> None:
    """Accesses to global variables, at places known now, that lie inside need no check later."""
    known = (steps["code"] <= layouts.ACCESS) & (steps["flags"] & layouts.STEP_GLOBAL != 0) & (steps["terms"] == 0)
    known &= steps["flags"] & (layouts.STEP_DYNAMIC | layouts.STEP_SAME_SIZE) == 0
    at = np.flatnonzero(known)
    start, size = program.global_address[steps["object"][at]], program.globals["size"][steps["object"][at]]
    past = steps["offset"][at] - start
    inside = (start == 0) | ((past <= size) & (steps["size"][at] <= size - past))
    steps["flags"][at[inside]] &= ~np.uint8(layouts.STEP_GLOBAL)


def _pass_over(program: Program, ops: U4, steps: Rows, keep: U1) -> None:
    """Turn steps (of the operations `ops`) whose events nobody wants, and that nothing depends on, into UNWANTED."""
    load, store = bool(keep[CODE["load"]]), bool(keep[CODE["store"]])
    code = steps["code"]
    access = code <= layouts.ACCESS
    both = access & (steps["flags"] & layouts.STEP_LOADS_TOO != 0)
    halves = both & (steps["values"] != 0)  # the words of two values: which are whose is known only with both events
    if load != store:
        both &= ~halves
        steps["kind"][both] = CODE["load"] if load else CODE["store"]
        steps["flags"][both] &= ~np.uint8(layouts.STEP_LOADS_TOO)
    unwanted = access & (keep[steps["kind"]] == 0) & ~(halves & (load or store))
    for step_code, name in ((layouts.POINTER, "pointer_creation"), (layouts.EXTERNAL, "external_call")):
        unwanted |= (code == step_code) & (not keep[CODE[name]])
    code[unwanted] = layouts.UNWANTED
    steps["flags"][unwanted] &= ~np.uint8(layouts.STEP_GLOBAL | layouts.STEP_STACK)
    if not keep[OBJECT_EVENTS].any():
        on_stack = (steps["flags"] & layouts.STEP_STACK != 0) & ~np.isin(code, (layouts.FREE, layouts.UNWANTED))
        depends = np.zeros(len(program.functions) + 1, np.bool_)
        owner = np.minimum(program.op_function[ops], len(program.functions))
        depends[owner[on_stack]] = True
        code[np.isin(code, (layouts.ALLOC, layouts.FREE)) & ~depends[owner]] = layouts.UNWANTED


def _step_flags(ops: Rows, addressed: NDArray[np.bool_]) -> NDArray[np.uint8]:
    base, kind = ops["base_kind"], ops["kind"]
    dynamic = addressed & (ops["flags"] & OpFlag.DYNAMIC_SIZE != 0)
    word = (addressed & (base == Base.RECORDED)) | np.isin(kind, validation.RECORDS_ONE_WORD)
    follows = np.zeros(len(ops), np.bool_)
    follows[1:] = (kind[1:] == OpKind.COPY_TO) & (kind[:-1] == OpKind.COPY_FROM) & dynamic[:-1]
    pairs = (
        (layouts.STEP_WORD, word),
        (layouts.STEP_REGISTER, addressed & np.isin(base, [Base.REGISTER, Base.STACK])),
        (layouts.STEP_DYNAMIC, dynamic),
        (layouts.STEP_LOADS_TOO, kind == OpKind.ATOMIC),
        (layouts.STEP_SAME_SIZE, follows & ~dynamic),
        (layouts.STEP_GLOBAL, addressed & (base == Base.GLOBAL)),
        (layouts.STEP_STACK, addressed & (base == Base.STACK)),
        (layouts.STEP_GROUND_TRUTH, addressed & (ops["flags"] & OpFlag.GROUND_TRUTH != 0)),
    )
    flags = np.zeros(len(ops), np.uint8)
    for flag, where in pairs:
        flags |= np.where(where, flag, 0).astype(np.uint8)
    return flags


def _blocks(program: Program, steps: Rows, before: NDArray[np.int64], keep: U1) -> Rows:
    source = program.blocks
    blocks = np.zeros(max(len(source), 1), layouts.BLOCK)
    rows = blocks[: len(source)]
    for name in ("function", "loop", "call", "continues"):
        rows[name] = source[name]
    rows["first_step"] = before[source["first_op"]]
    rows["last_step"] = before[source["first_op"].astype(np.int64) + source["ops"]]
    words = np.concatenate([[0], np.cumsum(validation.op_words(program.ops))])
    first = source["first_op"].astype(np.int64)
    rows["words"] = words[first + source["ops"]] - words[first]
    rows["number"] = np.arange(len(source)) - program.functions["first_block"][source["function"]].astype(np.int64)
    flags = source["flags"] & 0xFFFF
    flags = np.where(source["loop"] == NONE, flags & ~np.uint32(BlockFlag.LOOP_HEADER), flags).astype(np.uint32)
    effects = _has_effects(program, source["continues"])
    flags |= np.where(effects, layouts.BLOCK_EFFECTS, 0).astype(np.uint32)
    tail = source["flags"] & BlockFlag.TAIL_CALL != 0
    closed = tail & ~may_enter(program, source["call"])
    flags |= np.where(closed, layouts.BLOCK_TAIL_LEAVES, 0).astype(np.uint32)
    flags |= np.where(closed & _has_effects(program, source["call"]), layouts.BLOCK_TAIL_EFFECTS, 0).astype(np.uint32)
    rows["flags"] = flags
    rows["test_of"] = _tests(program)
    rows["landing_word"] = landing_words(program)
    if not keep[CODE["external_call"]]:
        rows["flags"] &= ~np.uint32(layouts.BLOCK_EFFECTS)
    if not keep[LOOP_EVENTS].any():
        _forget_loops(program, rows)
    return blocks


def _forget_loops(program: Program, blocks: Rows) -> None:
    """Take the loops out of functions in which nothing depends on them."""
    depends = np.zeros(len(program.functions), np.bool_)
    owner = program.op_function[program.ops["terms"] != 0]
    depends[owner[owner != NONE]] = True
    in_run = program.path_blocks["block"][program.paths["first"][program.paths["flags"] & PathFlag.RUN != 0]]
    depends[program.blocks["function"][in_run]] = True
    free = ~depends[blocks["function"]]
    blocks["loop"][free] = blocks["test_of"][free] = NONE
    blocks["flags"][free] &= ~np.uint32(BlockFlag.LOOP_HEADER)


def _has_effects(program: Program, ops: U4) -> NDArray[np.bool_]:
    """Whether each call has effects that the trace does not see, if it enters no instrumented code."""
    used, calls = call_rows(program, ops)
    effects = np.zeros(len(ops), np.bool_)
    effects[used] = program.calls["flags"][calls] & int(SILENT) == 0
    return effects


def _tests(program: Program) -> U4:
    """For each block the while-form loop in whose header it stands, as its first segment or after a call in it."""
    tests = np.full(len(program.blocks), NONE, np.uint32)
    testing = np.flatnonzero(program.loops["flags"] & LoopFlag.TESTS_AT_HEADER != 0).astype(np.uint32)
    tests[program.loops["header"][testing]] = testing
    continues = program.blocks["continues"]
    after = np.flatnonzero((continues != NONE) & (tests == NONE))
    block_of_call = np.full(len(program.ops), NONE, np.uint32)
    resumes = int(BlockFlag.ENTRY | BlockFlag.LANDING)
    ends = np.flatnonzero((program.blocks["call"] != NONE) & (program.blocks["flags"] & resumes != resumes))
    block_of_call[program.blocks["call"][ends]] = ends
    before = block_of_call[continues[after]]
    known = before != NONE
    after, before = after[known], before[known]
    while len(after):  # as many rounds as a header has calls
        reached = tests[before]
        new = (reached != NONE) & (tests[after] == NONE)
        new &= program.blocks["loop"][after] == reached
        if not new.any():
            break
        tests[after[new]] = reached[new]
    return tests


def _paths(program: Program, blocks: Rows, steps: Rows, functions: Rows, keep: U1) -> Rows:
    paths = np.zeros(max(len(program.path_row), FIRST_PATH), layouts.PATH)
    paths["block"] = NONE
    numbers = np.flatnonzero(program.path_row != NONE)
    source = program.paths[program.path_row[numbers]]
    members = program.path_blocks["block"]
    count = (blocks["last_step"] - blocks["first_step"]).astype(np.int64)
    room = 2 * count + 3 * functions["depth"][blocks["function"]].astype(np.int64) + 8
    is_alloc = np.concatenate([[0], np.cumsum(program.ops["kind"] == OpKind.STACK_ALLOC)])
    first_op = program.blocks["first_op"].astype(np.int64)
    allocs = is_alloc[first_op + program.blocks["ops"]] - is_alloc[first_op]
    paths["block"][numbers] = members[source["first"]]
    paths["blocks"][numbers] = source["blocks"]
    paths["first"][numbers] = source["first"]
    paths["words"][numbers] = source["words"]
    for name, per_block in (("room", room), ("allocs", allocs)):
        before = np.concatenate([[0], np.cumsum(per_block[members])])
        first = source["first"].astype(np.int64)
        paths[name][numbers] = np.minimum(before[first + source["blocks"]] - before[first], NONE)
    last = members[source["first"] + source["blocks"] - 1]
    ordinary = source["flags"] & PathFlag.RUN == 0
    paths["leaves"][numbers] = blocks["flags"][last] & int(BlockFlag.RETURNS | BlockFlag.TAIL_CALL) != 0
    runs.describe(program, paths, numbers[~ordinary], blocks, steps, keep)
    return paths


def _globals_by_image(program: Program) -> tuple[U4, U4]:
    """Globals that image_load initialises, by image number: those with an address, in order of rows."""
    count = max(program.image_names, default=-1) + 1
    rows = np.flatnonzero((program.global_address != 0) & (program.globals["flags"] & GlobalFlag.THREAD_LOCAL == 0))
    image = program.global_image[rows]
    order = np.argsort(image, kind="stable")
    first = np.searchsorted(image[order], np.arange(count + 1)).astype(np.uint32)
    return first, rows[order].astype(np.uint32)


def _event_words() -> NDArray[np.int64]:
    """By code: which words are subject, address and size (-1: none), how many there are, whether a ticket is first."""
    table = np.full((FIRST_PATH, 5), -1, np.int64)
    table[:, 4] = 0
    for code in RECORDED:
        event = BY_CODE[code]
        for column, name in enumerate((event.subject, event.address, event.size)):
            if name in event.words:
                table[code, column] = event.words.index(name)
        if event.subject == "instruction":
            table[code, 0] = layouts.OPEN_CALL
        table[code, 3] = len(event.words)
        table[code, 4] = int(bool(event.words) and event.words[0] == "ticket")
    return table
