"""The program as the kernels of path profiles need it, and what each segment of a record does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.formats.image import LOADS, STORES, Base, BlockFlag, OpFlag, OpKind, PathFlag
from tracekit.paths.kernels import layouts
from tracekit.paths.kernels.layouts import Walked
from tracekit.program.activations import landing_words, may_enter
from tracekit.program.linker import Rows
from tracekit.program.program import Program
from tracekit.program.validation import ADDRESSED, op_words, runs

I8 = NDArray[np.int64]


class Work(NamedTuple):
    """What a segment does each time, without accesses whose size the trace tells: int64 by segment."""

    loads: I8
    stores: I8
    bytes: I8


class _Operations(NamedTuple):
    """Operations, and where their words are."""

    loads: I8  # of each operation, if its size is not 0
    stores: I8
    word: I8  # by operation: words before it, of all operations
    size_word: I8  # where its size is, among all words; -1 if it is known
    size: I8


def walked(program: Program) -> tuple[Walked, Work]:
    """The tables of a program, and the work of its segments."""
    blocks = np.zeros(max(len(program.blocks), 1), layouts.BLOCK)
    blocks["loop"][: len(program.blocks)] = program.blocks["loop"]
    in_loop = program.blocks["loop"] != NONE
    blocks["header"][: len(program.blocks)] = in_loop & (program.blocks["flags"] & BlockFlag.LOOP_HEADER != 0)
    parents = np.zeros(max(len(program.loops), 1), np.uint32)
    parents[: len(program.loops)] = program.loops["parent"]
    first, count, of_path = _segments(program, blocks, parents)
    members = program.path_blocks["block"]
    operations = _operations(program)
    work = _work(program, operations, first, count, members)
    segments = np.zeros(max(len(first), 1), layouts.SEGMENT)
    segments["first"][: len(first)], segments["blocks"][: len(first)] = first, count
    segments["accesses"][: len(first)] = work.loads + work.stores
    records = _records(program, of_path, segments)
    sized = _sized(program, operations, segments, of_path, members)
    has_sized = np.zeros(len(of_path), np.bool_)
    np.logical_or.at(has_sized, _owners(of_path), segments["dynamics"][: len(first)] > 0)
    used = np.flatnonzero(program.path_row != NONE)
    records["flags"][used] |= np.where(has_sized[:-1][program.path_row[used]], layouts.DYNAMIC, 0).astype(np.uint32)
    kernel_tables = Walked(records, segments, sized, np.ascontiguousarray(members), blocks, parents)
    return kernel_tables, work


def _owners(of_path: I8) -> I8:
    """The path of each segment; `of_path`: the first segment of each path, and how many there are."""
    return np.repeat(np.arange(len(of_path) - 1), np.diff(of_path))


def _segments(program: Program, blocks: Rows, parents: Rows) -> tuple[I8, I8, I8]:
    """First member and number of blocks of each segment; the first segment of each path, and how many there are.

    A path is one segment, unless a back edge stands between its blocks (the recorder makes no such path).
    """
    starts = program.paths["first"].astype(np.int64)
    lengths = program.paths["blocks"].astype(np.int64)
    rows = runs(program.paths["first"], program.paths["blocks"])
    members = program.path_blocks["block"][rows].astype(np.int64)
    path_of = np.repeat(np.arange(len(starts)), lengths)
    is_first = np.zeros(len(rows), np.bool_)
    is_first[np.cumsum(lengths) - lengths] = True
    keys = np.sort(path_of << 32 | members)
    repeated = path_of[:0] if len(keys) == 0 else keys[1:][keys[1:] == keys[:-1]] >> 32
    odd = np.union1d(repeated, path_of[(blocks["header"][members] != 0) & ~is_first])
    cuts: list[tuple[int, int]] = []
    for path in odd.tolist():
        held: list[int] = []
        for at in range(int(starts[path]), int(starts[path] + lengths[path])):
            block = int(program.path_blocks["block"][at])
            if held and (block in held or (blocks["header"][block] and _inside(blocks, parents, held[-1], block))):
                cuts.append((path, at))
                held = []
            held.append(block)
    cut_path, cut_at = np.array(cuts, np.int64).reshape(-1, 2).T
    owner = np.concatenate([np.arange(len(starts)), cut_path])
    first = np.concatenate([starts, cut_at])
    order = np.lexsort((first, owner))
    owner, first = owner[order], first[order]
    ends = (starts + lengths)[owner]
    same = owner[1:] == owner[:-1]
    ends[:-1][same] = first[1:][same]
    return first, ends - first, np.searchsorted(owner, np.arange(len(starts) + 1))


def _inside(blocks: Rows, parents: Rows, block: int, header: int) -> bool:
    """Whether the loop of a header contains another block."""
    loop = int(blocks["loop"][block])
    while loop not in (NONE, int(blocks["loop"][header])):
        loop = int(parents[loop])
    return loop != NONE


def _operations(program: Program) -> _Operations:
    ops = program.ops
    words = np.concatenate([[0], np.cumsum(op_words(ops))])
    dynamic = np.isin(ops["kind"], ADDRESSED) & (ops["flags"] & OpFlag.DYNAMIC_SIZE != 0)
    size_word = np.where(dynamic, words[:-1] + (ops["base_kind"] == Base.RECORDED), -1)
    if len(ops):
        follows = (ops["kind"] == OpKind.COPY_TO) & ~dynamic
        follows[0] = False
        follows[1:] &= (ops["kind"][:-1] == OpKind.COPY_FROM) & dynamic[:-1]
        size_word[follows] = size_word[np.flatnonzero(follows) - 1]
    return _Operations(
        np.isin(ops["kind"], LOADS).astype(np.int64),
        np.isin(ops["kind"], STORES).astype(np.int64),
        words,
        size_word,
        ops["size"].view(np.int64) if ops["size"].flags.c_contiguous else ops["size"].astype(np.int64),
    )


def has_known_size(program: Program) -> NDArray[np.bool_]:
    """By operation: whether each of its accesses has the same size, so that :class:`Work` counts it; bool (ops,)."""
    return _operations(program).size_word < 0


def _work(program: Program, operations: _Operations, first: I8, count: I8, members: Rows) -> Work:
    known = (operations.size_word < 0) & (operations.size != 0)
    sums = []
    for column in (
        operations.loads,
        operations.stores,
        (operations.loads + operations.stores) * operations.size,
    ):
        before = np.concatenate([[0], np.cumsum(np.where(known, column, 0))])
        first_op = program.blocks["first_op"].astype(np.int64)
        per_block = before[first_op + program.blocks["ops"]] - before[first_op]
        along = np.concatenate([[0], np.cumsum(per_block[members])])
        sums.append(along[first + count] - along[first])
    return Work(*sums)


def _records(program: Program, of_path: I8, segments: Rows) -> Rows:
    """The table by record id."""
    records = np.zeros(max(len(program.path_row), FIRST_PATH), layouts.RECORD)
    events = np.flatnonzero(program.arity[:FIRST_PATH] != NONE)
    records["words"][events] = program.arity[events]
    records["flags"][:FIRST_PATH] = layouts.EVENT
    used = np.flatnonzero(program.path_row != NONE)
    path = program.path_row[used]
    source = program.paths[path]
    blocks, members = program.blocks, program.path_blocks["block"]
    start = members[source["first"]]
    last = members[source["first"] + source["blocks"] - 1]
    rows = records[used]
    rows["accesses"] = segments["accesses"][of_path[path]]
    rows["words"] = source["words"]
    rows["function"] = blocks["function"][start]
    rows["continues"] = blocks["continues"][start]
    rows["call"] = blocks["call"][last]
    rows["segment"] = of_path[path]
    rows["segments"] = of_path[path.astype(np.int64) + 1] - of_path[path]
    rows["landing_word"] = landing_words(program)[start]
    rows["frame_word"] = _frame_words(program)[path]
    ends = blocks["flags"][last]
    is_run = source["flags"] & PathFlag.RUN != 0
    returns = ends & BlockFlag.RETURNS != 0
    tail = ends & BlockFlag.TAIL_CALL != 0
    for flag, where in (
        (layouts.ENTERS, blocks["flags"][start] & BlockFlag.ENTRY != 0),
        (layouts.LANDS, blocks["flags"][start] & BlockFlag.LANDING != 0),
        (layouts.RETURNS, returns),
        (layouts.TAIL, ~returns & tail),
        (layouts.CLOSED, tail & ~may_enter(program, blocks["call"][last])),
        (layouts.RUN, is_run),
        (layouts.SILENT, is_run & (source["flags"] & PathFlag.GROUND_TRUTH != 0)),
    ):
        rows["flags"] |= np.where(where, flag, 0).astype(np.uint32)
    records[used] = rows
    return records


def _frame_words(program: Program) -> NDArray[np.uint32]:
    """For each path, which of its words is the last one of a FRAME operation, or NONE."""
    found = np.full(len(program.paths), NONE, np.uint32)
    frames = np.flatnonzero(program.ops["kind"] == OpKind.FRAME)
    if not len(frames):
        return found
    words = np.concatenate([[0], np.cumsum(op_words(program.ops))])
    first_op = program.blocks["first_op"].astype(np.int64)
    in_block = words[first_op + program.blocks["ops"]] - words[first_op]
    at_most = np.searchsorted(frames, first_op + program.blocks["ops"]) - 1  # the last one in each block, if it has one
    has = (at_most >= 0) & (frames[np.maximum(at_most, 0)] >= first_op)
    word = np.where(has, words[frames[np.maximum(at_most, 0)]] - words[first_op], 0)
    members = program.path_blocks["block"][runs(program.paths["first"], program.paths["blocks"])]
    path_of = np.repeat(np.arange(len(program.paths)), program.paths["blocks"])
    along = np.concatenate([[0], np.cumsum(in_block[members])])
    begins = np.cumsum(program.paths["blocks"].astype(np.int64)) - program.paths["blocks"]
    chosen = np.flatnonzero(has[members])
    found[path_of[chosen]] = along[chosen] - along[begins[path_of[chosen]]] + word[members[chosen]]
    return found


def _sized(program: Program, operations: _Operations, segments: Rows, of_path: I8, members: Rows) -> Rows:
    """The accesses of dynamic size of all segments, which are told where theirs begin."""
    sized: list[tuple[int, int, int]] = []
    dynamic = np.concatenate([[0], np.cumsum(operations.size_word >= 0)])
    first_op = program.blocks["first_op"].astype(np.int64)
    has = dynamic[first_op + program.blocks["ops"]] > dynamic[first_op]
    if has.any():
        along = np.concatenate([[0], np.cumsum(has[members])])
        in_block = operations.word[first_op + program.blocks["ops"]] - operations.word[first_op]
        before = np.concatenate([[0], np.cumsum(in_block[members])])
        owner = _owners(of_path)
        ends = segments["first"].astype(np.int64) + segments["blocks"]
        holding = np.flatnonzero((along[ends] > along[segments["first"]])[: len(owner)])
        for segment in holding.tolist():
            segments["dynamic"][segment] = len(sized)
            record_begins = int(before[program.paths["first"][owner[segment]]])
            for at in range(int(segments["first"][segment]), int(ends[segment])):
                block = int(members[at])
                for op in range(int(first_op[block]), int(first_op[block]) + int(program.blocks["ops"][block])):
                    if operations.size_word[op] >= 0 and operations.loads[op] + operations.stores[op]:
                        word = int(operations.size_word[op] - operations.word[first_op[block]])
                        place = int(before[at]) - record_begins + word
                        sized.append((place, int(operations.loads[op]), int(operations.stores[op])))
            segments["dynamics"][segment] = len(sized) - int(segments["dynamic"][segment])
    made = np.zeros(max(len(sized), 1), layouts.SIZED)
    made[: len(sized)] = sized
    return made
