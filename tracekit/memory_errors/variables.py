"""Which variable each access is known to be to, by the program's text."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.image import OpFlag, OpKind
from tracekit.memory_errors.kernels.variables import Named

if TYPE_CHECKING:
    from tracekit.program.program import Program


def named_accesses(program: Program) -> Named:
    """The groups of kernels/variables.py, with the addresses of global variables.

    What is left out: copies, whose load and store are one instruction's with two variables; names that a global and a
    local variable share or several global ones; thread-local variables; and those that the source gets to through a
    pointer where they are accessed (a function that was inlined).
    """
    ops, variables = program.ops, program.globals
    of_local = np.zeros(len(ops) + 1, np.int32)
    of_access, of_global = of_local.copy(), np.zeros(len(variables), np.int32)
    groups: dict[tuple[int, int], int] = {}
    low, high = [0], [0]
    for op in np.flatnonzero((ops["kind"] == OpKind.STACK_ALLOC) & (ops["name"] != 0)).tolist():
        key = int(program.op_function[op]), int(ops["name"][op])
        if key not in groups:
            groups[key] = len(low)
            low.append(0)
            high.append(0)
        of_local[op] = groups[key]
    by_name: defaultdict[str, set[int]] = defaultdict(set)
    for row in range(len(variables)):
        for field in ("name", "source_name"):
            by_name[program.text(int(variables[field][row]))].add(row)
    single = np.isin(ops["kind"], (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.SET))
    wanted = single & (ops["name"] != 0) & (ops["flags"] & OpFlag.BY_POINTER == 0)
    for op in np.flatnonzero(wanted).tolist():
        name = int(ops["name"][op])
        local = groups.get((int(program.op_function[op]), name), 0)
        rows = by_name.get(program.text(name), set())
        if local and not rows:
            of_access[op] = local
        elif len(rows) == 1 and not local:
            (row,) = rows
            address, size = int(program.global_address[row]), int(variables["size"][row])
            if address and size:
                if not of_global[row]:
                    of_global[row] = len(low)
                    low.append(address)
                    high.append(address + size)
                of_access[op] = of_global[row]
    return Named(of_access, of_local, of_global, np.array(low, np.int64), np.array(high, np.int64))
