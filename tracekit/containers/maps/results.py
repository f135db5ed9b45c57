"""Reads maps from Python: reduced to one, as sorted arrays, at any time and any number of times."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracekit.containers.maps.contents import absorb, extract
from tracekit.containers.maps.exact import round_rows
from tracekit.containers.maps.inserting import insert_rows
from tracekit.containers.maps.kinds import ConstantTable, FloatSumTable, SetTable
from tracekit.containers.maps.sets import absorb_set, drain_set
from tracekit.containers.maps.table import USED, drain
from tracekit.containers.maps.tables import empty_like


def reduce(tables: Sequence[Any]) -> Any:
    """A new map of what the maps of all workers hold; they stay as they are. Raises ValueError if kinds differ."""
    reduced = empty_like(tables[0])
    for table in tables:
        if _shape(table) != _shape(reduced):
            raise ValueError("only maps of one kind, key and limit can be reduced")
        (absorb_set if isinstance(table, SetTable) else absorb)(reduced, table)
    return reduced


def _shape(table: Any) -> tuple[Any, ...]:
    if isinstance(table, SetTable):
        return SetTable, *_shape(table.pairs), table.limit
    return type(table), len(table.key), *map(type, table.value)


def rows(table: Any) -> NDArray[Any]:
    """The map as a structured array in ascending order of keys.

    ``key``: uint64, or uint64 (words,) if keys have several words. ``value``: int64, uint64 or float64, as the map was
    made; of a set map, int64, the number of members, or -1 if it is beyond the limit. A constant map also has
    ``constant``, bool; where it is false, ``value`` is 0.
    """
    if isinstance(table, SetTable):
        drain_set(table)
        sizes = rows(table.sizes)
        sizes["value"][sizes["value"] > table.limit] = -1
        return sizes
    keys, values = _content(table)
    kind = [("key", np.uint64, keys.shape[1:] if keys.shape[1] > 1 else ()), ("value", type(table.value[0]))]
    if isinstance(table, ConstantTable):
        kind.append(("constant", np.bool_))
    result = np.empty(len(keys), np.dtype(kind))
    result["key"] = keys if keys.shape[1] > 1 else keys[:, 0]
    if isinstance(table, FloatSumTable):
        round_rows(table.control, values[:, 0].copy(), values[:, 0])
    result["value"] = values[:, 0].view(type(table.value[0]))
    if isinstance(table, ConstantTable):
        result["constant"] = values[:, 1] == 0
        result["value"][~result["constant"]] = 0
    return result


def members(table: SetTable) -> NDArray[Any]:
    """The members of all sets within the limit: ``key`` and ``value``, uint64, in ascending order of both."""
    drain_set(table)
    pairs, _ = _content(table.pairs)
    sizes = rows(table.sizes)["value"]
    kept = pairs[np.repeat(sizes <= table.limit, sizes)]
    words = pairs.shape[1] - 1
    kind = [("key", np.uint64, (words,) if words > 1 else ()), ("value", np.uint64)]
    result = np.empty(len(kept), np.dtype(kind))
    result["key"] = kept[:, :-1] if words > 1 else kept[:, 0]
    result["value"] = kept[:, -1]
    return result


def insert_columns(tables: Sequence[Any], keys: ArrayLike, values: ArrayLike = 1) -> None:
    """Insert whole columns, with one thread for each of the `tables`, which get equal shares of the rows.

    `keys`: (n,), or (n, words); `values`: (n,) or one for all. Which table a row goes to shows in no reduced result.
    """
    words = np.asarray(keys)
    words = np.ascontiguousarray(words.astype(np.uint64, copy=False))
    column = np.ascontiguousarray(np.broadcast_to(np.asarray(values), len(words)))
    bounds = [len(words) * i // len(tables) for i in range(len(tables) + 1)]
    shares = [(table, words[low:high], column[low:high]) for table, low, high in zip(tables, bounds, bounds[1:])]
    if len(shares) == 1:
        insert_rows(*shares[0])
        return
    with ThreadPoolExecutor(len(shares)) as pool:
        for done in [pool.submit(insert_rows, *share) for share in shares]:
            done.result()


def _content(table: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Keys (n, words), ascending, and the value words of their cells."""
    drain(table)
    number = int(table.control[USED])
    keys = np.empty((number, len(table.key)), np.uint64)
    values = np.empty((number, len(table.value)), np.uint64)
    if number:
        extract(table, keys, values)
    order = np.argsort(keys[:, 0]) if keys.shape[1] == 1 else np.lexsort(keys.T[::-1])  # of one column: no two equal
    return keys[order], values[order]
