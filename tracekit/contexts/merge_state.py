"""Tables of profiles as merge state: columns by name; and their checks when a profile file is read back.

Profile files have it under the key ``evidence``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.contexts.nodes import LOOPS
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE

Rows = npt.NDArray[Any]


def as_columns(tables: Mapping[str, Rows]) -> dict[str, Any]:
    """Tables by name, each its columns by name."""
    return {
        name: {field: np.asarray(table[field]) for field in table.dtype.names or ()} for name, table in tables.items()
    }


def read_tables(merge_state: Any, dtypes: Mapping[str, np.dtype[Any]]) -> dict[str, Rows]:
    """The tables that :func:`as_columns` gave, of these dtypes. Raises TracekitError if they are not all there."""
    try:
        return {name: _table(merge_state[name], dtype) for name, dtype in dtypes.items()}
    except (KeyError, TypeError, ValueError, OverflowError):
        raise TracekitError("A profile is damaged: its evidence is incomplete.") from None


def _table(columns: Any, dtype: Any) -> Rows:
    table = np.zeros(len(columns[dtype.names[0]]), dtype)
    for field in dtype.names:
        values = np.asarray(columns[field])
        table[field] = values.reshape(table[field].shape)
    return table


def check_references(
    tables: Mapping[str, Rows], references: Mapping[tuple[str, str], str], sizes: Mapping[str, int]
) -> None:
    """Refuse numbers of rows that do not exist: (table, column) -> what it names, a table or a key of `sizes`.

    NONE names nothing, which ``!`` forbids. Raises TracekitError, also for a table ``nodes`` that is no tree.
    """
    sizes = {**{name: len(table) for name, table in tables.items()}, **sizes}
    for (name, field), target in references.items():
        numbers, named = tables[name][field], target.rstrip("!")
        if bool(np.any((numbers >= sizes[named]) & ((numbers != NONE) | (named != target)))):
            raise missing(named)
    nodes = tables["nodes"]
    inner = nodes["parent"] != NONE
    loops = np.isin(nodes["kind"], LOOPS)
    if bool(np.any(nodes["parent"][inner] >= np.flatnonzero(inner))) or bool(np.any(nodes["loop"][loops] == NONE)):
        raise TracekitError("A profile is damaged: its contexts are no tree.")


def missing(what: str) -> TracekitError:
    """The complaint about rows that do not exist."""
    return TracekitError(f"A profile is damaged: its evidence names {what} that do not exist.")
