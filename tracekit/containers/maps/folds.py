"""What each kind of map does with a value: `fold`, on which the table's kernels specialise.

All of them may be applied in any order and grouping, so that workers, buffers and reductions do not show in the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.maps.exact import add_float, add_row, new_row
from tracekit.containers.maps.kinds import field_type, kind_of
from tracekit.jit.kernel import Late, specialised

types: Any = Late("numba.core.types")

ZERO = np.uint64(0)
ONE = np.uint64(1)


def fold(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    """Combine the value at ``cells[at]`` (`new`: there is none yet) with that of an insertion, ``source[value]``."""


def join(table: Any, cells: Any, at: Any, new: Any, other: Any, source: Any, value: Any) -> None:
    """Combine the value at ``cells[at]`` with that of a cell of the map `other`, ``source[value]``."""


def _add(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    cells[at] += source[value]  # modulo 2**64, for either sign


def _least(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    if new or np.int64(source[value]) < np.int64(cells[at]):
        cells[at] = source[value]


def _least_unsigned(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    if new or source[value] < cells[at]:
        cells[at] = source[value]


def _greatest(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    if new or np.int64(source[value]) > np.int64(cells[at]):
        cells[at] = source[value]


def _greatest_unsigned(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    if new or source[value] > cells[at]:
        cells[at] = source[value]


def _constant(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    if new:
        cells[at] = source[value]
    elif cells[at] != source[value]:
        cells[at + ONE] = ONE  # it varies, whatever comes


def _join_constant(table: Any, cells: Any, at: Any, new: Any, other: Any, source: Any, value: Any) -> None:
    if new:
        cells[at], cells[at + ONE] = source[value], source[value + ONE]
    elif cells[at] != source[value] or source[value + ONE] != ZERO:
        cells[at + ONE] = ONE


def _add_float(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    if new:
        cells[at] = new_row(table.control)
    add_float(table.control, cells[at], source[value])


def _join_float(table: Any, cells: Any, at: Any, new: Any, other: Any, source: Any, value: Any) -> None:
    if new:
        cells[at] = new_row(table.control)
    add_row(table.control, cells[at], other.control, source[value])


def _nothing(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> None:
    return


SIGNED: dict[str, Any] = {
    "count": _add,
    "sum": _add,
    "min": _least,
    "max": _greatest,
    "constant": _constant,
    "float_sum": _add_float,
    "pairs": _nothing,
}
UNSIGNED: dict[str, Any] = {**SIGNED, "min": _least_unsigned, "max": _greatest_unsigned}
JOINS: dict[str, Any] = {"constant": _join_constant, "float_sum": _join_float}


@specialised(fold)
def _fold(table: Any, cells: Any, at: Any, new: Any, source: Any, value: Any) -> Any:
    words = field_type(table, "value")
    unsigned = len(words) > 0 and words[0] == types.uint64
    return (UNSIGNED if unsigned else SIGNED)[kind_of(table)]


def _join_as_inserted(table: Any, cells: Any, at: Any, new: Any, other: Any, source: Any, value: Any) -> None:
    fold(table, cells, at, new, source, value)


@specialised(join)
def _join(table: Any, cells: Any, at: Any, new: Any, other: Any, source: Any, value: Any) -> Any:
    return JOINS.get(kind_of(table), _join_as_inserted)
