"""Structures as bytes: they say the same where they arrive, and go on growing there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.containers import maps
from tracekit.containers.initial_pages import blocks_with, contents
from tracekit.containers.kernels.arena import USED
from tracekit.containers.serialization import Frozen, deserialized, serialized

KINDS: dict[str, Callable[[], Any]] = {
    "count": maps.count_map,
    "sum": lambda: maps.sum_map(key_words=2),
    "float": lambda: maps.sum_map(dtype=np.float64),
    "min": maps.min_map,
    "max": maps.max_map,
    "constant": maps.constant_map,
    "set": lambda: maps.set_map(limit=3),
}


def insert(table: Any, kind: str, rng: np.random.Generator, count: int) -> None:
    """Random keys and values."""
    keys = rng.integers(0, 40, (count, 2) if kind == "sum" else count)
    values = rng.random(count) if kind == "float" else rng.integers(0, 5, count)
    maps.insert_columns([table], keys, 1 if kind == "count" else values)


def said(table: Any, kind: str) -> list[bytes]:
    """All that a map holds."""
    return [maps.rows(table).tobytes(), maps.members(table).tobytes() if kind == "set" else b""]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(sorted(KINDS)), st.integers(0, 500), st.integers(0, 500))
def test_maps(seed: int, kind: str, before: int, after: int) -> None:
    rng = np.random.default_rng(seed)
    here = KINDS[kind]()
    insert(here, kind, rng, before)
    frozen = Frozen(here)
    elsewhere, later = deserialized(serialized(here)), np.random.default_rng(seed + 1)
    assert said(elsewhere, kind) == said(here, kind)
    insert(here, kind, np.random.default_rng(seed + 1), after)
    insert(elsewhere, kind, later, after)
    assert said(elsewhere, kind) == said(here, kind)
    again = frozen.thawed()
    insert(again, kind, np.random.default_rng(seed + 1), after)
    assert said(again, kind) == said(here, kind)


@pytest.mark.parametrize("size", [1 << 16, 70_001, 9 * 8191, 1 << 18])
def test_arrays_without_the_zeros_at_their_end(size: int) -> None:
    for places in ([], [0], [size - 1], [5, 40_000]):
        for dtype in ("u1", [("x", "<i8"), ("y", "<u4")]):
            array = np.zeros(size, dtype)
            array.view("u1")[places] = 7
            found = deserialized(serialized(array))
            assert found.dtype == array.dtype and found.flags.writeable and np.array_equal(found, array)
    assert len(Frozen(np.zeros(1 << 24, np.uint8))._data) < 1000


def test_blocks_of_pages() -> None:
    rng = np.random.default_rng(1)
    granules = rng.integers(0, 4, (5, 512)).astype(np.uint8)
    count = int((1 << granules.astype(np.int64)).sum())
    blocks = blocks_with(np.zeros(count, [("store", "<u4"), ("reserved", "<u4"), ("stamp", "<i8")]), granules)
    begun = int(blocks.rows.control[USED]) - count
    blocks.rows.rows["stamp"][begun : begun + count] = np.arange(count)
    rows, words = contents(blocks, np.array([2, 4]))
    assert np.array_equal(words, granules[[1, 3]])
    sizes = (1 << granules.astype(np.int64)).sum(axis=1)
    starts = np.cumsum(sizes) - sizes
    expected = [np.arange(starts[block], starts[block] + sizes[block]) for block in (1, 3)]
    assert np.array_equal(rows["stamp"], np.concatenate(expected))
    moved = blocks_with(rows, words)
    again, _ = contents(moved, np.array([1, 2]))
    assert np.array_equal(again, rows)
