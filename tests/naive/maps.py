"""Reduction maps, slowly and obviously: a dict from each key to the list of all its values, reduced when it is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

WORD = 1 << 64


class NaiveMap:
    """One map for all insertions, whoever makes them."""

    def __init__(self, kind: str, dtype: str, limit: int | None = None) -> None:
        self.kind, self.dtype, self.limit = kind, dtype, limit
        self.values: dict[tuple[int, ...], list[Any]] = {}

    def insert(self, key: Iterable[int], value: Any) -> None:
        """Insert one value; integers are taken modulo 2**64."""
        self.values.setdefault(tuple(word % WORD for word in key), []).append(value)

    def rows(self) -> list[tuple[Any, ...]]:
        """(key, value), or (key, value, constant), in ascending order of keys."""
        return [(key, *self._reduced(values)) for key, values in sorted(self.values.items())]

    def members(self) -> list[tuple[tuple[int, ...], int]]:
        """(key, member) of all sets within the limit."""
        return [
            (key, value)
            for key, values in sorted(self.values.items())
            if self._reduced(values)[0] >= 0
            for value in sorted(set(values))
        ]

    def _reduced(self, values: list[Any]) -> tuple[Any, ...]:
        if self.kind == "count":
            return (len(values),)
        if self.kind == "sum":
            return (_total(values) if self.dtype == "float64" else _wrapped(sum(values), self.dtype),)
        if self.kind == "min":
            return (min(values),)
        if self.kind == "max":
            return (max(values),)
        if self.kind == "constant":
            constant = len(set(values)) == 1
            return (values[0] if constant else 0, constant)
        size = len(set(values))
        return (size if self.limit is None or size <= self.limit else -1,)


def _wrapped(total: int, dtype: str) -> int:
    total %= WORD
    return total - WORD if dtype == "int64" and total >= WORD // 2 else total


def _total(values: list[float]) -> float:
    """The exact sum, rounded once; ``math.fsum`` is that too but refuses infinities."""
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return math.nan
    if any(map(math.isinf, values)):
        return math.inf if math.inf in values else -math.inf
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
