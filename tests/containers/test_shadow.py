"""Shadow memory of any metadata against a dict of bytes: words, parts, clearing, streams, pages out of the table."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.shadow_bytes import NaiveShadow
from tracekit.containers import arena, budget, shadow
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.shadow import (
    PAGE,
    PAGES,
    SCRATCH,
    STREAM,
    Shadow,
    cell_of,
    changing,
    first_of_two,
    only_row,
    parts_of,
    reading,
    reading_range,
    turn_to,
    writing,
    writing_range,
)
from tracekit.formats.errors import TracekitError
from tracekit.jit.kernel import kernel

KNOWN = np.dtype([("number", "<u4"), ("changes", "<i8")])
BASES = (0x7FFF_0000_0FC0, 0x1000, -0x4000 + 0xFC0, 0x7FFF_FFFF_FFFF_FFC0)
"""Near the end of a page: of a stack, at the bottom, near the top, and before the addresses whose sign bit is set."""

WRITE, CHANGE, CLEAR, WRITE_RANGE = range(4)


@kernel
def act(memory: Shadow, action: int, stream: int, address: int, size: int, number: int) -> int:
    """Do one action; returns the number of rows that the access had."""
    turn_to(memory, stream)
    rows = 0
    if action == WRITE:
        for row in writing(memory, address, size):
            memory.rows[row].number = number
            memory.rows[row].changes = 0
            rows += 1
    elif action == CHANGE:
        for row in changing(memory, address, size):
            memory.rows[row].changes += 1
            rows += 1
    elif action == WRITE_RANGE:
        left = size
        while left > 0:
            first, last, taken = writing_range(memory, address + size - left, left)
            for row in range(first, last + 1):
                memory.rows[row].number = number
                memory.rows[row].changes = 0
                rows += 1
            left -= taken
    else:
        clear(memory, address, size)
    return rows


@kernel
def look(memory: Shadow, stream: int, address: int, size: int, found: Any) -> int:
    """Copy the rows of an access to `found`; returns how many there are."""
    turn_to(memory, stream)
    rows = 0
    for row in reading(memory, address, size):
        found[rows].number = memory.rows[row].number
        found[rows].changes = memory.rows[row].changes
        rows += 1
    return rows


@kernel
def look_alone(memory: Shadow, stream: int, address: int, size: int, found: Any) -> int:
    """The same of the row that is the only one; 0 if there may be several."""
    turn_to(memory, stream)
    row, parts = only_row(memory, address, size)
    if row < 0:
        return 0
    found[0].number = memory.rows[row].number
    found[0].changes = memory.rows[row].changes
    return 1 if parts_of(memory, row) == parts else -1


@kernel
def look_at_two(memory: Shadow, stream: int, address: int, size: int, found: Any) -> int:
    """The same of rows that are two whole words; 0 if they may be others."""
    turn_to(memory, stream)
    first: Any = first_of_two(memory, address, size)
    if first < 0:
        return 0
    for k in range(2):
        found[k].number = memory.rows[first + k].number
        found[k].changes = memory.rows[first + k].changes
    return 2


@kernel
def look_at_ranges(memory: Shadow, stream: int, address: int, size: int, found: Any) -> int:
    """The same, range by range; `found` has the number of ranges behind the rows."""
    turn_to(memory, stream)
    rows, ranges, left = 0, 0, size
    while left > 0:
        first, last, taken = reading_range(memory, address + size - left, left)
        for row in range(first, last + 1):
            found[rows].number = memory.rows[row].number
            found[rows].changes = memory.rows[row].changes
            rows += 1
        left -= taken
        ranges += 1
    found[rows].number = ranges
    return rows


def read(memory: Shadow, stream: int, address: int, size: int) -> list[tuple[int, int]]:
    found = np.zeros(size, KNOWN)
    return [tuple(row) for row in found[: look(memory, stream, address, size, found)].tolist()]


def read_alone(memory: Shadow, stream: int, address: int, size: int) -> list[tuple[int, int]]:
    found = np.zeros(1, KNOWN)
    return [tuple(row) for row in found[: look_alone(memory, stream, address, size, found)].tolist()]


def read_two(memory: Shadow, stream: int, address: int, size: int) -> list[tuple[int, int]]:
    found = np.zeros(2, KNOWN)
    return [tuple(row) for row in found[: look_at_two(memory, stream, address, size, found)].tolist()]


def read_ranges(memory: Shadow, stream: int, address: int, size: int) -> tuple[list[tuple[int, int]], int]:
    found = np.zeros(size + 1, KNOWN)
    rows = look_at_ranges(memory, stream, address, size, found)
    return [tuple(row) for row in found[:rows].tolist()], int(found[rows]["number"])


def signed(address: int) -> int:
    """An address as kernels see it."""
    return address - (1 << 64) if address >> 63 == 1 else address


SIZES = st.sampled_from([0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 33, 64, 100, 120, 248, 256, 5000])
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from([WRITE, WRITE, CHANGE, CHANGE, CLEAR, WRITE_RANGE]),
        st.integers(0, 2),
        st.integers(0, 120),
        SIZES,
        st.integers(0, 3),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=150)
@given(ACTIONS, st.sampled_from([BASES[:1], BASES]), st.booleans(), st.sampled_from([1 << 36, 4]), st.booleans())
def test_every_byte_has_its_own_history(
    actions: list[tuple[int, ...]], bases: tuple[int, ...], per_stream: bool, direct: int, limited: bool
) -> None:
    limit = budget.Limit(64 << 20, "") if limited else None  # of address space: too little for tables of 1 << 36 pages
    with patch.object(budget, "limit", lambda: limit):
        memory = shadow.empty(KNOWN, per_stream=per_stream, pages=100, direct=direct)
    assert not limited or len(memory.table) < 1 << 20
    naive = NaiveShadow()
    for number, (action, stream, offset, size, base) in enumerate(actions, 1):
        stream = stream if per_stream else 0
        address = signed(bases[base % len(bases)] + offset)
        act(memory, action, stream, address, size, number)
        assert int(memory.control[STREAM]) == stream  # clearing goes through all of them, and comes back
        if action in (WRITE, WRITE_RANGE):
            naive.write(stream, address, size, number)
        elif action == CHANGE:
            naive.change(stream, address, size)
        else:
            naive.clear(address, size)
        around = {naive.at(stream, byte) for byte in range(address, address + size)}
        rows = read(memory, stream, address, size)
        assert set(rows) == around
        assert read_alone(memory, stream, address, size) == (rows if len(rows) == 1 else [])
        assert read_two(memory, stream, address, size) in ([], rows)
        assert read_ranges(memory, stream, address, size)[0] == rows
    for stream in range(3 if per_stream else 1):
        for base in bases:
            for byte in range(base - 16, base + 240):
                assert read(memory, stream, signed(byte), 1) == [naive.at(stream, byte)]
    arena.check(memory)


def test_two_whole_words_of_a_page_are_found_at_once() -> None:
    memory = shadow.empty(KNOWN, pages=4)
    act(memory, WRITE, 0, 0x1FF0, 24, 1)
    for address, size in ((0x1FF0, 16), (0x1FF3, 8), (0x1FF7, 2), (0x1FF7, 9)):
        assert read_two(memory, 0, address, size) == read(memory, 0, address, size) != []
    for address, size in ((0x1FF0, 8), (0x1FF3, 5), (0x1FF0, 17), (0x1FFC, 8), (0x1FF8, 0)):  # one, three, two pages
        assert read_two(memory, 0, address, size) == []
    act(memory, CHANGE, 0, 0x1FF9, 1, 2)
    assert read_two(memory, 0, 0x1FF3, 8) == []
    assert read_two(memory, 0, 0x9FF3, 8) == read(memory, 0, 0x9FF3, 8)  # never written


def test_a_word_has_one_row_until_an_access_divides_it() -> None:
    memory = shadow.empty(KNOWN, pages=4)
    base = 0x1000
    assert act(memory, WRITE, 0, base, 64, 1) == 8
    assert len(read(memory, 0, base + 3, 4)) == 1  # reading divides nothing
    assert len(read(memory, 0, base, 8)) == 1
    assert act(memory, CHANGE, 0, base, 4, 0) == 1
    assert read(memory, 0, base, 8) == [(1, 1), (1, 0)]
    assert act(memory, WRITE, 0, base + 1, 1, 2) == 1
    assert len(read(memory, 0, base, 8)) == 8
    assert act(memory, CHANGE, 0, base, 8, 0) == 8  # as different as they may be
    assert len(read(memory, 0, base + 8, 56)) == 7
    assert act(memory, WRITE, 0, base, 8, 3) == 1  # whole again
    assert read(memory, 0, base, 8) == [(3, 0)]


def test_a_range_has_all_words_of_a_page_that_are_divided_alike() -> None:
    memory = shadow.empty(KNOWN, pages=4)
    base = 0x1FC0
    assert act(memory, WRITE_RANGE, 0, base, 4096, 1) == 512
    assert read_ranges(memory, 0, base, 4096) == ([(1, 0)] * 512, 2)  # in two pages
    assert read_ranges(memory, 0, base + 13, 4000) == ([(1, 0)] * 501, 2)
    act(memory, WRITE, 0, base + 64 + 24, 4, 2)
    assert read_ranges(memory, 0, base + 64, 64) == ([(1, 0)] * 3 + [(2, 0)] + [(1, 0)] * 5, 3)
    assert act(memory, WRITE_RANGE, 0, base + 64 + 2, 60, 3) == 3 + 6 + 3
    assert read_ranges(memory, 0, base + 64, 64)[0] == [(1, 0), *[(3, 0)] * 12, (1, 0)]
    assert read_ranges(memory, 0, 1 << 40, 4096) == ([(0, 0)] * 512, 1)
    assert memory.control[PAGES] == SCRATCH + 3


def test_reading_makes_nothing() -> None:
    memory = shadow.empty("u8", pages=4)
    before = memory.control.copy()
    found = np.zeros(3, KNOWN)
    other = shadow.empty(KNOWN, pages=4)
    assert look(other, 0, 1 << 40, 17, found) == 3
    assert found.tolist() == [(0, 0)] * 3
    assert (other.control == before).all()


def test_clearing_an_address_space_takes_no_longer_than_its_pages() -> None:
    memory = shadow.empty(KNOWN, pages=4)
    act(memory, WRITE, 0, 0x5000, 8, 1)
    act(memory, CLEAR, 0, 0, 1 << 62, 0)
    assert read(memory, 0, 0x5000, 8) == [(0, 0)]


def test_streams_that_share_pages_do_not_crowd_one_another_out() -> None:
    cells, far, pages = 4096, np.zeros(8192, np.uint32), np.zeros(1, PAGE)
    taken = {int(cell_of(pages, far, cells, np.uint64(0x7FFF_0000_0), stream)) for stream in range(17, 417)}
    assert len(taken) > 350  # of 400 places; chance gives 381


def test_memory_is_what_was_touched() -> None:
    memory = shadow.empty("u4")
    assert memory.rows.nbytes > 1 << 33
    assert shadow.shadow_bytes(memory) < 1 << 20


def test_a_shadow_that_is_full_says_so_and_writes_nowhere_else() -> None:
    memory = shadow.empty(KNOWN, pages=5)
    room = len(memory.pages) - 2
    for page in range(room):
        act(memory, WRITE, 0, page << 12, 8, page + 1)
    arena.check(memory)
    act(memory, WRITE, 0, room << 12, 8, 99)
    assert [read(memory, 0, page << 12, 8) for page in range(room)] == [[(page + 1, 0)] for page in range(room)]
    assert read(memory, 0, room << 12, 8) == [(0, 0)]
    with pytest.raises(TracekitError, match=r"^Ran out of memory"):
        arena.check(memory)
