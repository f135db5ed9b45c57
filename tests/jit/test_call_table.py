"""Kernels that call other kernels by their machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tracekit.jit.call_table import ARRAY_ADDRESS, ARRAY_ITEMS, ARRAY_LENGTH, CallTable, call
from tracekit.jit.kernel import kernel
from tracekit.jit.native import raise_problem


@kernel
def weighted(numbers: Any, weight: Any, wanted: Any) -> int:
    """The sum of `numbers` times `weight`; raises ValueError for a sum that is not `wanted`, if that is not None."""
    total = 0
    for number in numbers:
        total += number * weight
    if wanted is not None and total != wanted[0]:
        raise ValueError("another sum")
    return total


@kernel
def call_all(codes: Any, words: Any, results: Any, sums: Any) -> int:
    """Call all rows; returns the first problem, or 0."""
    for row in range(len(sums)):
        problem = call(codes[row], words, row * words.shape[1], results)
        if problem != 0:
            return int(problem)
        sums[row] = results[0]
    return 0


def test_each_row_has_its_arguments() -> None:
    calls, given = CallTable(weighted), [(np.arange(row + 3), 10 * row, None) for row in range(9)]
    for row, arguments in enumerate(given):
        assert calls.set(row, *arguments)
    sums = np.zeros(9, np.int64)
    assert call_all(calls.codes, calls.words, calls.results, sums) == 0
    assert sums.tolist() == [numbers.sum() * weight for numbers, weight, _ in given]
    assert calls.set(4, given[4][0], 7, None)
    call_all(calls.codes, calls.words, calls.results, sums)
    assert sums[4] == given[4][0].sum() * 7 and sums[5] == given[5][0].sum() * 50


def test_rows_may_have_other_types() -> None:
    calls, sums = CallTable(weighted), np.zeros(2, np.int64)
    assert calls.set(0, np.arange(4), 2, None) and calls.set(1, np.arange(4, dtype=np.uint8), 3, None)
    assert calls.codes[0] != calls.codes[1]
    assert call_all(calls.codes, calls.words, calls.results, sums) == 0
    assert sums.tolist() == [12, 18]
    assert calls.set(0, np.arange(4, dtype=np.uint8), 2, None) and calls.codes[0] == calls.codes[1]


def test_words_of_an_array_may_be_replaced() -> None:
    calls, numbers, sums = CallTable(weighted), np.arange(10), np.zeros(1, np.int64)
    assert calls.set(0, numbers, 1, None)
    at = calls.places[0]
    assert calls.words[0, [at + ARRAY_ITEMS, at + ARRAY_ADDRESS, at + ARRAY_LENGTH]].tolist() == [
        10,
        numbers.ctypes.data,
        10,
    ]
    calls.words[0, [at + ARRAY_ITEMS, at + ARRAY_LENGTH]] = 3
    calls.words[0, at + ARRAY_ADDRESS] += 4 * numbers.itemsize
    assert call_all(calls.codes, calls.words, calls.results, sums) == 0
    assert sums[0] == 4 + 5 + 6


def test_what_a_call_raises_can_be_raised() -> None:
    calls, sums = CallTable(weighted), np.zeros(2, np.int64)
    assert calls.set(0, np.arange(3), 1, np.array([3])) and calls.set(1, np.arange(3), 1, np.array([4]))
    problem = call_all(calls.codes, calls.words, calls.results, sums)
    assert sums[0] == 3
    with pytest.raises(ValueError, match="another sum"):
        raise_problem(problem)


def test_what_numba_alone_can_pass_is_refused() -> None:
    assert not CallTable(weighted).set(0, [1, 2, 3], 1, None)
