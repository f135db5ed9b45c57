"""Reserved arrays: zeros that cost nothing until touched, refused with a sentence, never passed by a kernel."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tracekit.containers import arena as ar
from tracekit.containers.kernels.arena import USED, take
from tracekit.formats.errors import TracekitError
from tracekit.jit.kernel import kernel

ROW = np.dtype([("a", "<u4"), ("b", "<i8")])


def address_space() -> int:
    """Bytes that the process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def test_gigabytes_cost_the_pages_touched() -> None:
    rows = ar.reserve(ROW, 1 << 32)
    assert rows.nbytes == 12 << 32
    assert ar.touched(rows[: 1 << 20]) == 0
    rows[7]["b"] = 5
    rows[1 << 31]["a"] = 1
    assert rows[8].tolist() == (0, 0)
    assert 0 < ar.touched(rows) <= 4 << 20  # two pages, or two huge ones


def test_tables_side_by_side_are_zero_and_apart() -> None:
    tables = ar.side_by_side((5, ROW), (1 << 17, "u4"), (1, "i8"))
    assert [(table.dtype, len(table), table.flags.writeable) for table in tables] == [
        (ROW, 5, True),
        (np.dtype("u4"), 1 << 17, True),
        (np.dtype("i8"), 1, True),
    ]
    for number, table in enumerate(tables):
        assert not table.view(np.uint8).any()
        table.view(np.uint8)[:] = number + 1
    assert all((table.view(np.uint8) == number + 1).all() for number, table in enumerate(tables))
    first = tables[0].ctypes.data
    assert first % ar.HUGE_PAGE == 0 and tables[2].ctypes.data + 8 <= first + ar.HUGE_PAGE  # one huge page does
    assert all(table.ctypes.data % ar.LINE == 0 for table in tables)


@pytest.mark.parametrize("rows", [1, 1 << 18, 1 << 32])
def test_dense_arrays_are_arrays_of_zeros(rows: int) -> None:
    dense = ar.reserve("u8", rows, dense=True)
    assert len(dense) == rows and dense[-1] == 0
    dense[-1] = 3
    assert dense[rows // 2] == 3 * (rows == 1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_dropped_arrays_are_unmapped() -> None:
    before = address_space()
    rows = ar.reserve("u8", 1 << 30)
    view = rows[5:]
    del rows
    view[0] = 1
    assert address_space() >= before + (8 << 30)
    del view
    gc.collect()
    assert address_space() < before + (1 << 30)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is more address space, or less")
def test_address_space_of_what_only_a_cycle_holds_is_taken_back() -> None:
    """An error keeps what a failed analysis has reserved until Python looks for cycles."""
    gc.disable()
    try:
        cycle: list[object] = [ar.reserve("u8", 1 << 43)]  # 64 of 128 TiB
        cycle.append(cycle)
        del cycle
        assert ar.reserve("u8", 1 << 43, 1 << 40).size == 1 << 43
    finally:
        gc.enable()


def test_no_address_space_is_an_error_in_one_sentence() -> None:
    with pytest.raises(TracekitError, match=r"^Ran out of memory: the system refuses [\d,]+ MiB of address space"):
        ar.reserve("u8", 1 << 56)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no limit of address space")
def test_a_limit_of_address_space_is_named() -> None:
    code = (
        "import resource; from tracekit.containers import arena; "
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2); arena.reserve('u8', 1 << 40)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.endswith(
        ": lift that (`ulimit -v unlimited`) or take fewer jobs (`-j 1`); only what is touched takes memory.\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no limit of address space")
def test_a_smaller_reservation_where_the_system_refuses() -> None:
    code = (
        "import resource; from tracekit.containers import arena; "
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2); "
        "rows = arena.reserve('u8', 1 << 40, 100); print(len(rows)); rows[-1] = 3"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1 << 26 < int(run.stdout) < 1 << 30


@kernel
def fill(arena: ar.Arena, count: int) -> int:
    """Take and write `count` rows one by one; returns the last."""
    row = 0
    for number in range(count):
        row = take(arena, 1)
        arena.rows[row].a = number
        arena.rows[row].b = row
    return row


def test_an_arena_that_is_used_up_writes_to_its_first_row_and_says_so() -> None:
    arena = ar.arena(ROW, rows=100, spare=50)
    assert len(arena.rows) == 100
    assert fill(arena, 50) == 99
    ar.check(arena)
    assert arena.control[USED] == 100
    last = arena.rows[50:].copy()
    assert fill(arena, 3) == 0
    assert (arena.rows[50:] == last).all()
    with pytest.raises(TracekitError, match=r"^Ran out of memory: [\d,]+ MiB for the analysis are used up\.$"):
        ar.check(arena)
