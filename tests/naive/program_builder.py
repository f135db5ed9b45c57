"""Builds small programs by hand, row by row, for tests: a unit's tables and one image around them.

    b = ProgramBuilder()
    f = b.function("main", registers=1)
    entry = b.block(f, BlockFlag.ENTRY)
    b.op(entry, OpKind.LOAD, size=4)
    b.path(entry)
    program = b.program()
    b.path_number(entry)

Rows may be made in any order; :meth:`unit_tables` sorts them so that those of a function are contiguous.
A builder's handles (functions, blocks, ops, loops) are the numbers in order of creation; ``rows`` of the
:class:`Layout` that it returns map them to rows of the tables.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.formats.image import (
    DTYPES,
    Base,
    BlockFlag,
    CallFlag,
    GlobalFlag,
    LoopFlag,
    OpFlag,
    OpKind,
    PathFlag,
)
from tracekit.program.program import Program

ADDRESSED = frozenset(
    (
        OpKind.LOAD,
        OpKind.STORE,
        OpKind.ATOMIC,
        OpKind.COPY_FROM,
        OpKind.COPY_TO,
        OpKind.SET,
        OpKind.STACK_ALLOC,
        OpKind.STACK_FREE,
        OpKind.POINTER,
    )
)


@dataclass
class HandUnit:
    """A unit made by hand."""

    tables: dict[str, Any]
    hash: str


@dataclass
class HandImage:
    """An image made by hand."""

    units: list[HandUnit]
    functions: Any
    globals: Any
    span: int
    number: int = 0
    first_path: int = FIRST_PATH
    name: str = "app"


@dataclass
class ProgramBuilder:
    """Collects rows (dicts) of one unit; handles are positions in these lists."""

    functions: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    ops: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    loops: list[dict[str, Any]] = field(default_factory=list)
    globals: list[dict[str, Any]] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    """Names of functions of other units whose address this one takes."""
    declared: dict[str, str] = field(default_factory=dict)
    """Linkage name -> source name of functions that this unit only declares."""
    paths: list[dict[str, Any]] = field(default_factory=list)
    phis: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    strings: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    offsets: dict[str, int] = field(default_factory=lambda: {"": 0})
    locations: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def string(self, text: str) -> int:
        if text not in self.offsets:
            self.offsets[text] = len(self.strings)
            self.strings += text.encode() + b"\0"
        return self.offsets[text]

    def location(self, line: int, column: int = 1, inlined_at: int = NONE, function: str = "") -> int:
        self.locations.append((0, line, column, self.string(function), inlined_at))
        return len(self.locations) - 1

    def function(
        self,
        name: str,
        registers: int = 0,
        flags: int = 0,
        signature: str = "void ()",
        line: int = 1,
        source_name: str = "",
    ) -> int:
        self.functions.append(
            {
                "name": self.string(name),
                "source_name": self.string(source_name or name),
                "flags": flags,
                "signature": self.string(signature),
                "registers": registers,
                "location": self.location(line),
            }
        )
        return len(self.functions) - 1

    def loop(self, function: int, parent: int = NONE, flags: int = LoopFlag.TESTS_AT_HEADER, line: int = 1) -> int:
        """A loop; its header is the first block made with LOOP_HEADER in it."""
        depth = 1 if parent == NONE else self.loops[parent]["depth"] + 1
        self.loops.append(
            {
                "function": function,
                "parent": parent,
                "depth": depth,
                "flags": flags,
                "header": NONE,
                "location": self.location(line),
                "end_line": line,
            }
        )
        return len(self.loops) - 1

    def block(self, function: int, flags: int = 0, loop: int = NONE, continues: int = NONE, line: int = 1) -> int:
        flags |= BlockFlag.CONTINUES if continues != NONE else 0
        self.blocks.append(
            {
                "function": function,
                "flags": flags,
                "loop": loop,
                "call": NONE,
                "continues": continues,
                "location": self.location(line),
            }
        )
        handle = len(self.blocks) - 1
        if flags & BlockFlag.LOOP_HEADER:
            self.loops[loop]["header"] = handle
        return handle

    def op(
        self,
        block: int,
        kind: OpKind,
        size: int = 0,
        base: Base | None = None,
        of: int = 0,
        offset: int = 0,
        terms: tuple[tuple[int, int, int], ...] = (),
        defines: int = NONE,
        flags: int = 0,
        line: int = 1,
    ) -> int:
        """An operation. `of`: register, global or op handle by `base`; terms: (stride, loop, stride register)."""
        if base is None:
            base = Base.RECORDED if kind in ADDRESSED else Base.NO_ADDRESS
        self.ops.append(
            {
                "block": block,
                "kind": int(kind),
                "size": size,
                "base_kind": int(base),
                "base": of,
                "offset": offset,
                "affine": terms,
                "defines": defines,
                "flags": flags,
                "location": self.location(line),
            }
        )
        return len(self.ops) - 1

    def call(
        self,
        block: int,
        callee: str = "",
        flags: int = 0,
        signature: str = "void ()",
        targets: tuple[str, ...] = (),
        ends: bool = True,
        line: int = 1,
    ) -> int:
        """A call operation; it ends its block unless `ends` is false."""
        op = self.op(block, OpKind.CALL, of=len(self.calls), line=line)
        self.calls.append(
            {
                "callee": self.string(callee),
                "signature": self.string(signature),
                "op": op,
                "block": block,
                "flags": flags | (0 if callee else CallFlag.INDIRECT),
                "names": [self.string(name) for name in targets],
            }
        )
        if ends:
            self.blocks[block]["call"] = op
        return op

    def variable(self, name: str, size: int, address: int, flags: int = 0) -> int:
        self.globals.append(
            {
                "name": self.string(name),
                "source_name": self.string(name),
                "size": size,
                "flags": flags,
                "address": address,
                "location": NONE,
            }
        )
        return len(self.globals) - 1

    def path(self, *blocks: int, flags: int = 0) -> int:
        """A path through blocks of one function; returns its handle."""
        self.paths.append({"function": self.blocks[blocks[0]]["function"], "members": blocks, "flags": flags})
        return len(self.paths) - 1

    def layout(self) -> Layout:
        return Layout(self)

    def program(self) -> Program:
        return Program.from_images([self.layout().image()])


class Layout:
    """The rows of a builder in the order that the tables demand: sorted by function, ops by block."""

    def __init__(self, builder: ProgramBuilder) -> None:
        self.builder = builder
        b = builder
        self.block_order = sorted(range(len(b.blocks)), key=lambda k: b.blocks[k]["function"])
        self.block = {handle: row for row, handle in enumerate(self.block_order)}
        self.op_order = sorted(range(len(b.ops)), key=lambda k: self.block[b.ops[k]["block"]])
        self.op = {handle: row for row, handle in enumerate(self.op_order)}
        self.loop_order = sorted(range(len(b.loops)), key=lambda k: b.loops[k]["function"])
        self.loop = {handle: row for row, handle in enumerate(self.loop_order)}
        self.path_order = sorted(range(len(b.paths)), key=lambda k: b.paths[k]["function"])
        self.path = {handle: row for row, handle in enumerate(self.path_order)}

    def block_number(self, block: int) -> int:
        """The number of a block among those of its function."""
        function = self.builder.blocks[block]["function"]
        return self.block[block] - sum(1 for other in self.builder.blocks if other["function"] < function)

    def path_number(self, path: int, first_path: int = FIRST_PATH) -> int:
        """The record id of a path handle."""
        return first_path + self.path[path]

    def unit(self) -> HandUnit:
        """The unit's tables (structured arrays by name)."""
        b = self.builder
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in DTYPES}
        rows["unit"] = [{"source": b.string("app.c")}]
        rows["sources"] = [{"path": b.string("app.c")}]
        fields = ("source", "line", "column", "function", "inlined_at")
        rows["locations"] = [dict(zip(fields, at)) for at in b.locations]
        rows["phis"] = [dict(phi) for phi in b.phis]
        rows["globals"] = [dict(variable) for variable in b.globals]
        rows["address_taken"] = [{"name": b.string(name)} for name in b.taken]
        rows["declarations"] = [
            {"name": b.string(name), "source_name": b.string(shown)} for name, shown in b.declared.items()
        ]
        self._operations(rows)
        self._blocks_and_paths(rows)
        self._functions(rows)
        tables = {name: self._table(name, given) for name, given in rows.items() if name != "strings"}
        tables["strings"] = np.frombuffer(bytes(b.strings), np.uint8).view(DTYPES["strings"])
        digest = hashlib.blake2b(b"".join(tables[name].tobytes() for name in DTYPES), digest_size=8)
        return HandUnit(tables, digest.hexdigest())

    def image(self) -> HandImage:
        b = self.builder
        first, rows = 0, []
        for handle in range(len(b.functions)):
            rows.append((0, handle, first))
            first += sum(1 for path in b.paths if path["function"] == handle)
        placed = [
            (variable["address"], 0, row)
            for row, variable in enumerate(b.globals)
            if not variable["flags"] & GlobalFlag.THREAD_LOCAL
        ]
        return HandImage(
            [self.unit()],
            np.array(rows, [("unit", "<u4"), ("function", "<u4"), ("first", "<u4")]),
            np.array(placed, [("address", "<u8"), ("unit", "<u4"), ("global", "<u4")]),
            first,
        )

    @staticmethod
    def _table(name: str, given: list[dict[str, Any]]) -> Any:
        table = np.zeros(len(given), DTYPES[name])
        for row, values in enumerate(given):
            for column in DTYPES[name].names or ():
                if column in values:
                    table[column][row] = values[column]
        return table

    def _operations(self, rows: dict[str, list[dict[str, Any]]]) -> None:
        b = self.builder
        for handle in self.op_order:
            op = dict(b.ops[handle])
            if op["base_kind"] == Base.STACK:
                op["base"] = self.op[op["base"]]
            op["first_term"], op["terms"] = len(rows["terms"]), len(op["affine"])
            for stride, loop, register in op["affine"]:
                rows["terms"].append({"stride": stride, "loop": self.loop[loop], "stride_register": register})
            rows["ops"].append(op)
        for call in b.calls:
            rows["calls"].append(
                {
                    **call,
                    "op": self.op[call["op"]],
                    "block": self.block[call["block"]],
                    "first_target": len(rows["call_targets"]),
                    "targets": len(call["names"]),
                }
            )
            rows["call_targets"] += [{"name": name} for name in call["names"]]

    def _blocks_and_paths(self, rows: dict[str, list[dict[str, Any]]]) -> None:
        b = self.builder
        first = 0
        for handle in self.block_order:
            block = dict(b.blocks[handle])
            count = sum(1 for op in b.ops if op["block"] == handle)
            block.update(first_op=first, ops=count)
            first += count
            for name, order in (("loop", self.loop), ("call", self.op), ("continues", self.op)):
                block[name] = NONE if block[name] == NONE else order[block[name]]
            rows["blocks"].append(block)
        for handle in self.loop_order:
            loop = dict(b.loops[handle])
            loop["header"] = self.block[loop["header"]]
            loop["parent"] = NONE if loop["parent"] == NONE else self.loop[loop["parent"]]
            rows["loops"].append(loop)
        for handle in self.path_order:
            members = b.paths[handle]["members"]
            words = sum(recorded_words(op) for block in members for op in b.ops if op["block"] == block)
            flags = b.paths[handle]["flags"]
            rows["paths"].append(
                {
                    "first": len(rows["path_blocks"]),
                    "blocks": len(members),
                    "flags": flags,
                    "words": 1 if flags & PathFlag.RUN else words,
                }
            )
            rows["path_blocks"] += [{"block": self.block[block]} for block in members]

    def _functions(self, rows: dict[str, list[dict[str, Any]]]) -> None:
        b = self.builder
        members = {
            "path": [path["function"] for path in b.paths],
            "block": [block["function"] for block in b.blocks],
            "op": [b.blocks[op["block"]]["function"] for op in b.ops],
            "loop": [loop["function"] for loop in b.loops],
        }
        for handle, function in enumerate(b.functions):
            row = dict(function)
            for name, owners in members.items():
                row["first_" + name] = sum(1 for owner in owners if owner < handle)
                row[name + "s"] = owners.count(handle)
            rows["functions"].append(row)


def recorded_words(op: dict[str, Any]) -> int:
    """How many words an operation records (formats/image.py, in words)."""
    kind = op["kind"]
    if kind in (OpKind.BASE, OpKind.FRAME, OpKind.LANDING, OpKind.GROUND_TRUTH):
        return 1
    if kind not in ADDRESSED:
        return 0
    words = 1 if op["base_kind"] == Base.RECORDED else 0
    words += 1 if op["flags"] & OpFlag.DYNAMIC_SIZE else 0
    words += 1 if op["flags"] & OpFlag.GROUND_TRUTH else 0
    values = (2 if kind == OpKind.ATOMIC else 1) if op["flags"] & OpFlag.VALUE else 0
    return words + values * ((op["size"] + 7) // 8)
