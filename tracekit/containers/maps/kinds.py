"""The kinds of maps, as types that kernels specialise on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.jit.kernel import Late

errors: Any = Late("numba.core.errors")


class Table(NamedTuple):
    """What every map consists of; `key` and `value` only give the kernels number and type of a cell's words."""

    control: NDArray[np.uint64]  # (CONTROL,): table.py, exact.py
    buffer: NDArray[np.uint64]  # insertions, one after another: the words of the key, then at most one of the value
    key: tuple[Any, ...]
    value: tuple[Any, ...]


class CountTable(Table):
    """Key -> how often."""


class SumTable(Table):
    """Key -> sum of int64 or uint64, modulo 2**64."""


class FloatSumTable(Table):
    """Key -> sum of float64, exact, rounded once."""


class MinTable(Table):
    """Key -> least value."""


class MaxTable(Table):
    """Key -> greatest value."""


class ConstantTable(Table):
    """Key -> value and whether there were others."""


class PairTable(Table):
    """The members of a set map: (key, member)."""


class SetTable(NamedTuple):
    """Key -> the different values, unless they are more than `limit`.

    `sizes` counts each key's members, to one beyond the limit; from then on `pairs` takes no more of them.
    """

    pairs: PairTable
    sizes: CountTable
    limit: int


KINDS: dict[str, type] = {
    "count": CountTable,
    "sum": SumTable,
    "float_sum": FloatSumTable,
    "min": MinTable,
    "max": MaxTable,
    "constant": ConstantTable,
    "pairs": PairTable,
    "set": SetTable,
}


def kind_of(table: Any) -> str:
    """The kind of a table's Numba type. Raises TypingError if it is no map."""
    made = getattr(table, "instance_class", None)
    for name, kind in KINDS.items():
        if made is kind:
            return name
    raise errors.TypingError(f"A reduction map is wanted here, not {table}.")


def field_type(table: Any, name: str) -> Any:
    """The Numba type of one field of a table's Numba type."""
    return table.types[table.fields.index(name)]
