"""Summaries that are joined as they come: in order, in a tree, on disk where memory is bounded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.containers.spilling import Stack


def one_after_the_other(first: str, then: str) -> str:
    """Not commutative, so a change of order shows."""
    return first + then


@given(st.lists(st.text(max_size=3)), st.one_of(st.none(), st.integers(0, 200)))
def test_they_come_to_all_in_their_order(summaries: list[str], memory: int | None) -> None:
    joined, apart = Stack(one_after_the_other), Stack(None)
    for stack in (joined, apart):
        stack.memory = memory
        for summary in summaries:
            stack.push(summary)
    assert joined.all() == (["".join(summaries)] if summaries else [])
    assert apart.all() == summaries
    assert joined.all() == apart.all() == []


def test_few_take_part_in_few_joins() -> None:
    depths: list[int] = []

    def join(first: int, then: int) -> int:
        depths.append(max(first, then) + 1)
        return depths[-1]

    stack = Stack(join)
    for _ in range(1000):
        stack.push(0)
        assert stack.waiting <= 10
    stack.all()
    assert len(depths) == 999 and max(depths) <= 15


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_what_waits_beyond_the_bound_is_on_disk(disk: Path) -> None:
    def files() -> list[Path]:
        return [Path(folder, name) for folder, _, names in os.walk(disk) for name in names]

    stack = Stack(None)
    stack.memory = 3_000
    content = [np.random.default_rng(number).bytes(1_000) for number in range(10)]
    for number, each in enumerate(content):
        stack.push(each)
        on_disk = sum(file.stat().st_size for file in files())
        assert 1_000 * (number + 1) - on_disk <= 3_000 and on_disk <= 1_100 * max(number - 1, 0)
    assert len(files()) == stack.spilled == 8
    assert stack.all() == content
    assert list(disk.iterdir()) == []


def test_what_cannot_be_packed_stays_as_it_is() -> None:
    stack = Stack(None)
    stack.memory = 0
    from tracekit.containers.arena import reserve

    reserved: Any = reserve("u1", 1 << 40)
    stack.push(reserved)
    stack.push("other")
    left = stack.all()
    assert left[0] is reserved and left[1] == "other"
