"""Reduction maps (PROMPT, section 5.3): count, sum, min, max, constant, set, by keys of one or more 64-bit words.

A module makes its maps, keeps them in its state, and inserts from its callbacks, which run compiled; a map grows by
itself, so there is no capacity to think of::

    from tracekit.module import maps

    class State(NamedTuple):
        executions: maps.CountTable
        bytes: maps.SumTable
        values: maps.ConstantTable
        targets: maps.SetTable

    def state():
        return State(maps.count_map(), maps.sum_map(key_words=2), maps.constant_map(), maps.set_map(limit=4))

    @njit
    def load(state, instruction, context, address, size, value):
        maps.count(state.executions, instruction)
        maps.add(state.bytes, (instruction, context), size)
        maps.constant(state.values, instruction, value)
        maps.member(state.targets, instruction, address)

A key is an integer, a tuple of integers, or a row of an integer array; each word is taken modulo 2**64. Insertions wait
in a small buffer until it is drained into the table, whose cache misses then overlap. One thread at a time uses a map:
every worker has its own, and `reduce` makes one of them. Reading drains the buffer first, changes nothing else, and may
come between insertions::

    whole = maps.reduce([state.executions for state in states])
    for key, value in maps.rows(whole): ...

What is read depends on nothing but the insertions, in whatever order they came and to whichever worker: rows ascend by
key; integer sums are modulo 2**64; sums of float64 are exact and rounded once, as by ``math.fsum``; a constant map says
value or that it varies; a set beyond its limit has no members, and its size is -1.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracekit.containers.maps.inserting import add, constant, count, insert, maximum, member, minimum
    from tracekit.containers.maps.kinds import (
        ConstantTable,
        CountTable,
        FloatSumTable,
        MaxTable,
        MinTable,
        SetTable,
        SumTable,
    )
    from tracekit.containers.maps.results import insert_columns, members, reduce, rows
    from tracekit.containers.maps.tables import (
        constant_map,
        count_map,
        empty_like,
        max_map,
        min_map,
        nbytes,
        set_map,
        sum_map,
    )

__all__ = [
    "ConstantTable",
    "CountTable",
    "FloatSumTable",
    "MaxTable",
    "MinTable",
    "SetTable",
    "SumTable",
    "add",
    "constant",
    "constant_map",
    "count",
    "count_map",
    "empty_like",
    "insert",
    "insert_columns",
    "max_map",
    "maximum",
    "member",
    "members",
    "min_map",
    "minimum",
    "nbytes",
    "reduce",
    "rows",
    "set_map",
    "sum_map",
]

_WHERE = {
    **dict.fromkeys(("add", "constant", "count", "insert", "maximum", "member", "minimum"), "inserting"),
    **dict.fromkeys(("insert_columns", "members", "reduce", "rows"), "results"),
    **dict.fromkeys(
        ("constant_map", "count_map", "empty_like", "max_map", "min_map", "nbytes", "set_map", "sum_map"), "tables"
    ),
}


_NEW_NAMES = {"merge": "reduce"}
"""Name in version 0.1 -> name now; a module that uses an old one gets a warning, and goes on."""


def __getattr__(name: str) -> Any:
    """Import what is requested when it is requested: it needs Numba, and a module that is only looked at does not."""
    if name in _NEW_NAMES:
        # Not a DeprecationWarning, which Python shows for the file that it runs alone: modules are imported.
        warnings.warn(f"maps.{name} is called {_NEW_NAMES[name]} now: rename it.", FutureWarning, stacklevel=2)
        name = _NEW_NAMES[name]
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module(f"{__name__}.inserting")  # known before Numba comes to a callback that inserts
    return getattr(importlib.import_module(f"{__name__}.{_WHERE.get(name, 'kinds')}"), name)
