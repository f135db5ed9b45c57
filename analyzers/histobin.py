"""How many ones and zeros a program reads and writes, by the size of the access (Alleria, section 2.8.1).

What a memory with costly ones, or a bus with costly changes, would pay for. Needs ``tracekit cc --values``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tracekit.module import ACCESS_EVENTS, CODE, BatchModule, Display, EventBatch, add, join_rows

WIDEST = 64
"""Bytes of the widest value that is recorded."""

ONES = np.array([number.bit_count() for number in range(256)], np.uint8)

# Sums for each kind and size.
COUNTED = 0  # ones
ACCESSES = 1  # accesses with a value
WITHOUT = 2  # accesses without
SUMS = 3


def ones_in(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The ones in each word."""
    ones: NDArray[np.int64] = ONES[words.view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.int64)
    return ones


class Histobin(BatchModule):
    """One row for loads, and for stores, of each size."""

    events: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(ACCESS_EVENTS, ("instruction", "size", "value"))

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        program.require_values()
        self._valued = np.append(program.valued, False)  # the last stands for library accesses
        self._sums = np.zeros((2, WIDEST + 1, SUMS), np.int64)

    def feed(self, batch: EventBatch) -> None:
        """Count the bits of a batch."""
        valued = self._valued[np.minimum(batch.subject, len(self._valued) - 1)]
        size = np.where(valued, batch.size, 0)
        ones = ones_in(batch.value)
        np.add.at(ones, batch.wide_event, ones_in(batch.wide))
        is_store = (batch.kind == CODE["store"]).astype(np.int64)
        place = is_store * (WIDEST + 1) + size.astype(np.int64)
        shape = self._sums.shape[:2]
        weights = (np.where(valued, ones, 0), valued, ~valued)
        for column, weight in zip((COUNTED, ACCESSES, WITHOUT), weights):
            counted = np.bincount(place, weight, minlength=self._sums[..., 0].size).astype(np.int64)
            self._sums[..., column] += counted.reshape(shape)

    def found(self) -> NDArray[np.int64]:
        """The sums."""
        return self._sums

    def combine(self, found: Sequence[NDArray[np.int64]]) -> None:
        """All numbers add."""
        self._sums = np.sum(found, axis=0, dtype=np.int64)

    def result(self) -> dict[str, Any]:
        """Loads, then stores, by size; and how many accesses had no value (of libraries, of other compilers)."""
        rows = []
        for number, kind in enumerate(ACCESS_EVENTS):
            for size in range(1, WIDEST + 1):
                ones, accesses, _ = self._sums[number, size].tolist()
                if accesses:
                    rows.append(
                        {
                            "kind": kind,
                            "size": size,
                            "accesses": accesses,
                            "ones": ones,
                            "zeros": 8 * size * accesses - ones,
                        }
                    )
        summary = {
            "ones": sum(row["ones"] for row in rows),
            "zeros": sum(row["zeros"] for row in rows),
            "accesses_without_value": int(self._sums[..., WITHOUT].sum()),
        }
        return {"accesses": rows, "summary": summary}

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """All numbers add."""
        tables = [profile["result"]["accesses"] for profile in profiles]
        names = ("accesses", "ones", "zeros")
        rows = join_rows(
            tables, ("kind", "size"), dict.fromkeys(names, add), order=lambda row: (row["kind"], row["size"])
        )
        summaries = [profile["result"]["summary"] for profile in profiles]
        return {
            "result": {
                "accesses": rows,
                "summary": {name: sum(each[name] for each in summaries) for name in summaries[0]},
            }
        }


DISPLAY = Display(
    columns={
        "accesses": "kind size accesses ones zeros",
    },
)
MODULE = Histobin
