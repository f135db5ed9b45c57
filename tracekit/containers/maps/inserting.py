"""The insertions, as authors write them in a callback: count, add, minimum, maximum, constant, member."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.maps.keys import words_of
from tracekit.containers.maps.kinds import kind_of
from tracekit.containers.maps.sets import drain_set
from tracekit.containers.maps.table import AHEAD, FILLED, drain, record_words
from tracekit.jit.kernel import Late, inlined, kernel, specialised

types: Any = Late("numba.core.types")
errors: Any = Late("numba.core.errors")


def _word(value: Any, sample: Any) -> Any:
    """A value as the 64 bits that a map keeps of it."""


def _float_word(value: Any, sample: Any) -> Any:
    return np.float64(value).view(np.uint64)


def _integer_word(value: Any, sample: Any) -> Any:
    return np.uint64(value)


@specialised(_word)
def _word_of_type(value: Any, sample: Any) -> Any:
    given = types.unliteral(value)
    if sample == types.float64 and isinstance(given, (types.Float, types.Integer, types.Boolean)):
        return _float_word
    if isinstance(given, (types.Integer, types.Boolean)):
        return _integer_word
    raise errors.TypingError(f"A map of {sample} takes no value of type {given}.")


@inlined
def _write(table: Any, key: Any) -> Any:
    """Begin an insertion with its key; returns where in the buffer the value goes."""
    words, at = words_of(table.key, key), table.control[FILLED]
    for i in range(len(words)):
        table.buffer[at + np.uint64(i)] = words[i]
    return at + np.uint64(len(words))


@inlined
def _end(table: Any, at: Any) -> Any:
    """End an insertion before ``buffer[at]``; whether the buffer is full. What lies beyond is for looking ahead."""
    table.control[FILLED] = at
    return at + np.uint64(AHEAD) * record_words(table) >= np.uint64(table.buffer.size)


@inlined
def _insert(table: Any, key: Any, value: Any) -> None:
    at = _write(table, key)
    table.buffer[at] = _word(value, table.value[0])
    if _end(table, at + np.uint64(1)):
        drain(table)


@inlined
def _insert_member(table: Any, key: Any, value: Any) -> None:
    words, at = words_of(table.sizes.key, key), table.pairs.control[FILLED]
    for i in range(len(words)):
        table.pairs.buffer[at + np.uint64(i)] = words[i]
    at += np.uint64(len(words))
    table.pairs.buffer[at] = _word(value, np.uint64(0))
    if _end(table.pairs, at + np.uint64(1)):
        drain_set(table)


def _inserted(table: Any, key: Any, value: Any) -> None:
    _insert(table, key, value)


def _counted(table: Any, key: Any) -> None:
    _insert(table, key, 1)


def _member_inserted(table: Any, key: Any, value: Any) -> None:
    _insert_member(table, key, value)


def insert(table: Any, key: Any, value: Any) -> None:
    """Insert a value into a map of any kind."""


@specialised(insert)
def _insert_any(table: Any, key: Any, value: Any) -> Any:
    return _member_inserted if kind_of(table) == "set" else _inserted


def _check(verb: str, table: Any, *kinds: str) -> None:
    """Raises TypingError if a table's Numba type is not of one of the `kinds`."""
    if kind_of(table) not in kinds:
        raise errors.TypingError(f"maps.{verb} does not fit a {kind_of(table)} map.")


def count(table: Any, key: Any) -> None:
    """Count `key` once more in a count map."""


@specialised(count)
def _count(table: Any, key: Any) -> Any:
    _check("count", table, "count")
    return _counted


def add(table: Any, key: Any, value: Any) -> None:
    """Add `value` to the sum of `key`; in a count map, count `key` so many times."""


@specialised(add)
def _add(table: Any, key: Any, value: Any) -> Any:
    _check("add", table, "sum", "float_sum", "count")
    return _inserted


def minimum(table: Any, key: Any, value: Any) -> None:
    """Keep the least value of `key`."""


@specialised(minimum)
def _minimum(table: Any, key: Any, value: Any) -> Any:
    _check("minimum", table, "min")
    return _inserted


def maximum(table: Any, key: Any, value: Any) -> None:
    """Keep the greatest value of `key`."""


@specialised(maximum)
def _maximum(table: Any, key: Any, value: Any) -> Any:
    _check("maximum", table, "max")
    return _inserted


def constant(table: Any, key: Any, value: Any) -> None:
    """Note a value of `key`, of which is kept whether it is always the same."""


@specialised(constant)
def _constant(table: Any, key: Any, value: Any) -> Any:
    _check("constant", table, "constant")
    return _inserted


def member(table: Any, key: Any, value: Any) -> None:
    """Add `value` to the set of `key`."""


@specialised(member)
def _member(table: Any, key: Any, value: Any) -> Any:
    _check("member", table, "set")
    return _member_inserted


@kernel
def insert_rows(table: Any, keys: Any, values: Any) -> None:
    """Insert one value after the other: keys uint64, (n,) or (n, words); values (n,)."""
    for i in range(len(values)):
        insert(table, keys[i], values[i])
