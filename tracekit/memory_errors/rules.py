"""What each instruction of a program is to memory_errors, and the module's empty state."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers import shadow
from tracekit.containers.arena import reserve
from tracekit.containers.hash_table import hash_table
from tracekit.containers.kernels.granules import WIDE_PAGES
from tracekit.contexts.scopes import MOST_STREAMS
from tracekit.formats.image import CallFlag, OpFlag, OpKind, OpUse
from tracekit.memory_errors import libraries
from tracekit.memory_errors.kernels import checks, contents, states
from tracekit.memory_errors.variables import named_accesses
from tracekit.objects.live import live_objects, unloading
from tracekit.program.allocators import standard_name

if TYPE_CHECKING:
    from tracekit.program.program import Program

Array = Any


_WHOLE_OBJECTS = re.compile("[CD](1)E")


def rules_of(program: Program, recorded: Collection[str]) -> Array:
    """The bits of kernels/checks.py for each instruction, and for none: shape (instructions + 1,), uint16.

    recorded: see :func:`libraries.is_harmless`.
    """
    ops = program.ops
    rules = np.zeros(len(ops) + 1, np.uint16)
    kinds, uses = ops["kind"], ops["use"]
    rules[:-1][(kinds == OpKind.LOAD) & (uses & OpUse.DECIDES != 0)] |= checks.DECIDES
    rules[:-1][(kinds == OpKind.STACK_ALLOC) & (uses & OpUse.EMPTY != 0)] |= checks.EMPTY
    rules[:-1][np.isin(kinds, (OpKind.COPY_FROM, OpKind.COPY_TO))] |= checks.COPIES | checks.BULK
    rules[:-1][kinds == OpKind.SET] |= checks.BULK
    named = (ops["name"] != 0) & (ops["flags"] & OpFlag.BY_POINTER == 0) & (kinds <= OpKind.SET)
    rules[:-1][named] |= checks.NAMED
    calls = np.flatnonzero(kinds == OpKind.CALL).tolist()
    for op in calls:
        rules[op] |= _rule_of_call(program, int(ops["base"][op]), recorded)
    if asks_for_sizes(program):
        for op in calls:
            if rules[op] & checks.COPIES:
                rules[op] ^= rules[op] & checks.EMPTY  # a realloc keeps what was written behind the old size, too
    return rules


def asks_for_sizes(program: Program) -> bool:
    """Whether the program asks how many bytes its blocks really have, all of which it may use."""
    endings = libraries.SIZE_ASKING if program.own_allocators else ()
    names = {program.text(name) for name in set(program.calls["callee"].tolist())}
    return any(name == "malloc_usable_size" or name.endswith(endings) for name in names)


def _rule_of_call(program: Program, call: int, recorded: Collection[str]) -> int:
    name, flags = standard_name(program, call), int(program.calls["flags"][call])
    if flags & CallFlag.INLINE_ASM:
        return checks.OPAQUE
    if not name or is_defined(program, name):
        return checks.OPAQUE | checks.BULK  # of what an indirect call calls nothing is known
    rule = checks.BULK
    if program.text(int(program.calls["callee"][call])) in program.own_allocators:
        rule |= checks.PACKED
    if name in libraries.MALLOC or libraries.is_new(name):
        rule |= checks.EMPTY
    if name in libraries.MAPPING:
        rule |= checks.MAPS
    if name in libraries.MOVING:
        rule |= checks.COPIES
    if name in libraries.SORTING:
        rule |= checks.SORTS
    if name in libraries.READERS:
        rule |= checks.STRICT
    if name in libraries.FIRST_BYTE:
        rule |= checks.FIRST
    if libraries.calls_back(name):
        rule |= checks.CALLS_BACK
    if flags & CallFlag.CLOCK or libraries.is_harmless(name, recorded):
        return rule
    return rule | checks.OPAQUE | checks.HOSTS


def defined(program: Program) -> frozenset[str]:
    """The linkage names of the program's functions."""
    known: frozenset[str] | None = program.__dict__.get("_defined_names")
    if known is None:
        known = frozenset(program.text(name) for name in program.functions["name"].tolist())
        program.__dict__["_defined_names"] = known
    return known


def is_defined(program: Program, name: str) -> bool:
    """Whether the program has this function.

    A constructor or destructor of whole objects (C1, D1 in its linkage name) may be another name of that of bases (C2,
    D2), which is the only one that the tables have then.
    """
    names = defined(program)
    others = (name[: at.start(1)] + "2" + name[at.end(1) :] for at in _WHOLE_OBJECTS.finditer(name))
    return name in names or any(other in names for other in others)


def blind_functions(program: Program, recorded: Collection[str]) -> Array:
    """1 for each function that calls what may write memory and is delivered as no event: shape (functions,), uint8.

    The pass takes a function that touches nothing but what it is given for one without effects (frexp, modf).
    """
    blind = np.zeros(len(program.functions), np.uint8)
    for call in np.flatnonzero(program.calls["flags"] & CallFlag.PURE).tolist():
        row = program.calls[call]
        name, signature = program.text(int(row["callee"])), program.text(int(row["signature"]))
        if int(row["flags"]) & (CallFlag.INLINE_ASM | CallFlag.CLOCK) or "ptr" not in signature:
            continue
        if not is_defined(program, name) and not libraries.is_harmless(name, recorded):
            blind[int(program.op_function[int(row["op"])])] = 1
    return blind


def families(program: Program) -> Array:
    """What each instruction allocates or frees with (libraries.family_of): shape (instructions + 1,), uint8."""
    found = np.zeros(len(program.ops) + 1, np.uint8)
    for op in np.flatnonzero(program.ops["kind"] == OpKind.CALL).tolist():
        name = program.text(int(program.calls["callee"][int(program.ops["base"][op])]))
        found[op] = 0 if name in program.own_allocators else libraries.family_of(name)
    return found


def moves_of(program: Program) -> Array:
    """What a store by each instruction, or by none, puts into memory (memory_errors/kernels/contents.py): uint8."""
    ops = program.ops
    kinds = ops["kind"]
    moves = np.zeros(len(ops) + 1, np.uint8)
    moves[:-1][np.isin(kinds, (OpKind.STORE, OpKind.ATOMIC))] = contents.UNKNOWN
    moves[:-1][program.valued] = contents.VALUE
    moves[:-1][np.isin(kinds, (OpKind.COPY_FROM, OpKind.COPY_TO))] = contents.COPY
    for op in np.flatnonzero(kinds == OpKind.CALL).tolist():
        name = standard_name(program, int(ops["base"][op]))
        if name in libraries.MOVING or name in libraries.COPYING:
            moves[op] = contents.COPY
        elif name in libraries.SORTING:
            moves[op] = contents.ORDER
    return moves


def stores_have_values(program: Program) -> bool:
    """Whether what is stored is known of some part of the program (``tracekit cc --values``)."""
    return bool(np.any(program.valued & (program.ops["kind"] == OpKind.STORE)))


def empty_contents(program: Program) -> contents.Contents:
    """Memory that holds nothing; without values no more than a type for the kernels."""
    valued = stores_have_values(program)
    return contents.Contents(
        shadow.empty("u8") if valued else shadow.empty("u8", pages=1, direct=1),
        moves_of(program),
        reserve("i8", 3 * MOST_STREAMS).reshape(-1, 3),
    )


def empty_state(program: Program, recorded: Collection[str]) -> checks.State:
    """Nothing lives, nothing was found. recorded: see :func:`libraries.is_harmless`."""
    control = np.zeros(checks.CONTROL, np.int64)
    accesses = program.ops["kind"] <= OpKind.SET
    atomic = (program.ops["flags"] & OpFlag.ATOMIC != 0) | (program.ops["kind"] == OpKind.ATOMIC)
    atomic_accesses = program.ops["flags"] & OpFlag.VOLATILE != 0
    atomic_accesses = atomic_accesses & ~atomic if program.has_atomic_order else atomic_accesses | atomic
    control[checks.ATOMICS] = bool(np.any(accesses & atomic_accesses))
    control[checks.ROUNDED] = asks_for_sizes(program)
    return checks.State(
        live=live_objects(program),
        states=states.States(
            shadow.empty("u4"),
            shadow.empty("u4", direct=WIDE_PAGES),
            np.zeros(states.CONTROL, np.int64),
        ),
        deaths=hash_table([], 1 << 26),
        errors=checks.Errors(
            hash_table([], 1 << 26),
            hash_table([], 1 << 26),
            hash_table(checks.FOUND, 1 << 26),
            np.zeros(checks.REASONS, np.int64),
        ),
        rules=rules_of(program, recorded),
        family=families(program),
        blind=blind_functions(program, recorded),
        copied=reserve("i8", 3 * MOST_STREAMS).reshape(-1, 3),
        doubt=reserve("i8", MOST_STREAMS),
        hosted=reserve("i8", MOST_STREAMS),
        images=unloading(program),
        contents=empty_contents(program),
        named=named_accesses(program),
        control=control,
    )
