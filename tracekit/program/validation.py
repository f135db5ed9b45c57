"""Checks what the joined image tables promise beyond their references: who owns what, and how many words.

The derive kernel relies on every promise checked here and asks no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.image import Base, BlockFlag, OpFlag, OpKind, PathFlag

Rows = NDArray[Any]
Bools = NDArray[np.bool_]

ADDRESSED = [
    OpKind.LOAD,
    OpKind.STORE,
    OpKind.ATOMIC,
    OpKind.COPY_FROM,
    OpKind.COPY_TO,
    OpKind.SET,
    OpKind.STACK_ALLOC,
    OpKind.STACK_FREE,
    OpKind.POINTER,
]
"""Operations that have an address."""

RECORDS_ONE_WORD = [OpKind.BASE, OpKind.FRAME, OpKind.LANDING, OpKind.GROUND_TRUTH]


def runs(first: NDArray[Any], count: NDArray[Any]) -> NDArray[np.int64]:
    """The rows first[i] .. first[i] + count[i] - 1 for all i, one after another (int64)."""
    counts = count.astype(np.int64)
    ends = np.cumsum(counts)
    return np.repeat(first.astype(np.int64) - (ends - counts), counts) + np.arange(int(ends[-1]) if len(ends) else 0)


def owners(functions: Rows, first: str, count: str, rows: int, table: str) -> NDArray[np.uint32]:
    """The function that each row of `table` belongs to (u4, NONE if none). Raises if two functions share a row."""
    owner = np.full(rows, NONE, np.uint32)
    members = runs(functions[first], functions[count])
    owner[members] = np.repeat(np.arange(len(functions), dtype=np.uint32), functions[count])
    _require(int((owner != NONE).sum()) == len(members), f"two functions share rows of {table}")
    return owner


def value_words(ops: Rows) -> NDArray[np.int64]:
    """How many of them are the value that each operation moves (int64); an ATOMIC moves two."""
    with_value = np.isin(ops["kind"], ADDRESSED) & (ops["flags"] & OpFlag.VALUE != 0)
    values = np.where(ops["kind"] == OpKind.ATOMIC, 2, 1) * with_value
    words: NDArray[np.int64] = values * ((np.minimum(ops["size"], 1 << 20) + 7) // 8).astype(np.int64)
    return words


def op_words(ops: Rows) -> NDArray[np.int64]:
    """How many words each operation records (int64)."""
    addressed = np.isin(ops["kind"], ADDRESSED)
    words: NDArray[np.int64] = (addressed & (ops["base_kind"] == Base.RECORDED)).astype(np.int64)
    words += addressed & (ops["flags"] & OpFlag.DYNAMIC_SIZE != 0)
    words += value_words(ops)
    words += addressed & (ops["flags"] & OpFlag.GROUND_TRUTH != 0)
    words += np.isin(ops["kind"], RECORDS_ONE_WORD)
    return words


def check(tables: Mapping[str, Rows]) -> dict[str, NDArray[np.uint32]]:
    """Check the promises of the tables; returns the owner function of each op, block, loop and path.

    Raises TracekitError that names the broken promise.
    """
    functions, blocks, loops = tables["functions"], tables["blocks"], tables["loops"]
    owner = {
        name: owners(functions, "first_" + name[:-1], name, len(tables[name]), name)
        for name in ("paths", "blocks", "ops", "loops")
    }
    _check_blocks(blocks, owner)
    _check_loops(blocks, loops, owner)
    _check_paths(tables, owner)
    _check_ops(tables, owner)
    return owner


def _check_blocks(blocks: Rows, owner: Mapping[str, NDArray[np.uint32]]) -> None:
    _require(bool(np.all(blocks["function"] == owner["blocks"])), "a block stands outside its function")
    held = np.repeat(blocks["function"], blocks["ops"])
    held_by = owner["ops"][runs(blocks["first_op"], blocks["ops"])]
    _require(bool(np.all(held_by == held)), "a block has another function's operation")
    for field in ("call", "continues"):
        used = blocks[field] != NONE
        same = owner["ops"][blocks[field][used]] == blocks["function"][used]
        _require(bool(np.all(same)), f"a block's {field} stands in another function")
    used = blocks["loop"] != NONE
    inside = owner["loops"][blocks["loop"][used]] == blocks["function"][used]
    _require(bool(np.all(inside)), "a block has another function's loop")


def _check_loops(blocks: Rows, loops: Rows, owner: Mapping[str, NDArray[np.uint32]]) -> None:
    _require(bool(np.all(loops["function"] == owner["loops"])), "a loop stands outside its function")
    _require(bool(np.all(blocks["function"][loops["header"]] == loops["function"])), "a loop has another's header")
    nested = loops["parent"] != NONE
    parents = loops[loops["parent"][nested]]
    _require(bool(np.all(parents["function"] == loops["function"][nested])), "a loop has another function's parent")
    depth = np.ones(len(loops), np.int64)
    depth[nested] = parents["depth"].astype(np.int64) + 1
    _require(bool(np.all(loops["depth"] == depth)), "the depths of loops do not follow from their parents")


def _check_paths(tables: Mapping[str, Rows], owner: Mapping[str, NDArray[np.uint32]]) -> None:
    paths, blocks = tables["paths"], tables["blocks"]
    counts = paths["blocks"].astype(np.int64)
    _require(bool(np.all(counts > 0)), "a path has no block")
    members = tables["path_blocks"]["block"][runs(paths["first"], counts)]
    owns = np.ascontiguousarray(blocks["function"])[members] == np.repeat(owner["paths"], counts)
    _require(bool(np.all(owns)), "a path has another function's block")
    flags = np.ascontiguousarray(blocks["flags"])
    ends = np.cumsum(counts)
    firsts, lasts = members[ends - counts], members[ends - 1]
    at_first = flags & int(BlockFlag.ENTRY | BlockFlag.LANDING) != 0
    once = np.count_nonzero(at_first[members]) == np.count_nonzero(at_first[firsts])
    _require(once, "a path enters its function or lands on its way")
    at_last = flags & int(BlockFlag.RETURNS | BlockFlag.TAIL_CALL) != 0
    once = np.count_nonzero(at_last[members]) == np.count_nonzero(at_last[lasts])
    _require(once, "a path returns on its way")
    before = np.concatenate([[0], np.cumsum(op_words(tables["ops"]))])
    first = blocks["first_op"].astype(np.int64)
    block_words = before[first + blocks["ops"]] - before[first]
    words = np.add.reduceat(block_words[members], ends - counts) if len(ends) else ends
    run = paths["flags"] & PathFlag.RUN != 0
    _require(bool(np.all(np.where(run, 1, words) == paths["words"])), "a path's words are not those of its operations")
    alone = run & (paths["flags"] & PathFlag.GROUND_TRUTH == 0)
    _require(not bool(np.any(words[alone])), "an operation of a run records words")
    _check_runs(tables, members[np.repeat(run, counts)], counts[run])


def _check_runs(tables: Mapping[str, Rows], members: Rows, counts: NDArray[np.int64]) -> None:
    """A run is one whole iteration of a loop, from its header on; `members`: the blocks of all, `counts` of each."""
    blocks, loops = tables["blocks"], tables["loops"]
    starts = np.cumsum(counts) - counts
    first = np.zeros(len(members), np.bool_)
    first[starts] = True
    loop = blocks["loop"][members]
    inside = (loop != NONE) & (loop == np.repeat(loop[starts], counts))
    _require(bool(np.all(inside)), "a run leaves its loop")
    heads = blocks["flags"][members] & BlockFlag.LOOP_HEADER != 0
    _require(bool(np.all(heads == first)), "a run is not one iteration of its loop")
    headed = loops["header"][loop[starts]] == members[starts]
    _require(bool(np.all(headed)), "a run does not begin at its loop's header")
    apart = int(BlockFlag.ENTRY | BlockFlag.LANDING | BlockFlag.RETURNS | BlockFlag.TAIL_CALL)
    calls = (blocks["call"][members] != NONE) | (blocks["continues"][members] != NONE)
    calls |= blocks["flags"][members] & apart != 0
    _require(not bool(np.any(calls)), "a run enters or leaves its function")


def _check_ops(tables: Mapping[str, Rows], owner: Mapping[str, NDArray[np.uint32]]) -> None:
    ops, functions = tables["ops"], tables["functions"]
    owned = owner["ops"] != NONE
    registers = np.zeros(len(ops), np.uint32)
    registers[owned] = functions["registers"][owner["ops"][owned]]
    _require(bool(np.all((ops["defines"] == NONE) | (ops["defines"] < registers))), "an operation has no such register")
    addressed = np.isin(ops["kind"], ADDRESSED)
    based = addressed & (ops["base_kind"] == Base.REGISTER)
    _require(bool(np.all(ops["base"][based] < registers[based])), "an operation has no such register")
    stack = addressed & (ops["base_kind"] == Base.STACK)
    target = ops["base"][stack]
    known = (ops["kind"][target] == OpKind.STACK_ALLOC) & (owner["ops"][target] == owner["ops"][stack])
    _require(bool(np.all(known)), "an address is based on no stack object of its function")
    _require(bool(np.all(ops["kind"] <= max(OpKind))), "an operation is of an unknown kind")
    _require(bool(np.all(ops["base_kind"] <= max(Base))), "an address is of an unknown kind")
    huge = (ops["flags"] & OpFlag.VALUE != 0) & (ops["size"] > 1 << 20)
    _require(not bool(np.any(huge)), "a recorded value is larger than 1 MiB")
    terms = tables["terms"]
    used = runs(ops["first_term"], ops["terms"])
    holder = np.repeat(np.arange(len(ops)), ops["terms"])
    _require(
        bool(np.all(tables["loops"]["function"][terms["loop"][used]] == owner["ops"][holder])),
        "an address counts another function's loop",
    )
    stride = terms["stride_register"][used]
    _require(bool(np.all((stride == NONE) | (stride < registers[holder]))), "a stride has no such register")


def _require(promise: bool, broken: str) -> None:
    if not promise:
        raise TracekitError(f"The trace's image tables are damaged: {broken}. Record it again.")
