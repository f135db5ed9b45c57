"""Limits of address space: how much there is, and that the tables of a pass share it; the profile is the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.naive.program_builder import ProgramBuilder
from tracekit.api import analyze
from tracekit.containers import arena, budget, shadow
from tracekit.contexts.kernels.tree import STATIC
from tracekit.contexts.state import empty_contexts, empty_stream
from tracekit.dependence.state import empty_state
from tracekit.formats.errors import TracekitError
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.program.program import Program
from tracekit.translation.kernels.identities import WORDS

FIXTURE = Path(__file__).parents[2] / "fixtures" / "traces" / "v1.zst"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="macOS has no limit of address space")


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets a limit for tables, of so many bytes."""
    return lambda left: monkeypatch.setattr(budget, "limit", lambda: budget.Limit(left, "There is a limit: lift it"))


def some_program() -> Program:
    b = ProgramBuilder()
    block = b.block(b.function("main"), BlockFlag.ENTRY | BlockFlag.RETURNS)
    b.op(block, OpKind.LOAD, 8)
    b.path(block)
    return b.program()


def reserved(state: Any) -> int:
    """Bytes of the arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    return sum(map(reserved, state)) if isinstance(state, tuple) else 0


@pytest.mark.parametrize(("mode", "left"), [("0\n", None), ("1\n", None), ("2\n", 3 << 30)])
def test_a_system_that_does_not_overcommit_is_a_limit(
    mode: str, left: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mode").write_text(mode)
    (tmp_path / "meminfo").write_text(
        "MemTotal:  16000000 kB\nCommitLimit:  8388608 kB\nCommitted_AS:  2097152 kB\nHugePages_Total:  0\n"
    )
    monkeypatch.setattr(budget, "LIMITS", ())
    monkeypatch.setattr(budget, "OVERCOMMIT", tmp_path / "mode")
    monkeypatch.setattr(budget, "MEMINFO", tmp_path / "meminfo")
    found = budget.limit()
    assert (found and found.left) == left
    assert ("vm.overcommit_memory" in budget.advice()) == (left is not None)


@LINUX
@pytest.mark.parametrize("option", ["v", "d"])
def test_the_limits_of_a_process_count(option: str) -> None:
    code = "from tracekit.containers import budget; print(*budget.limit(), sep='|'); print(budget.advice())"
    run = subprocess.run(
        ["bash", "-c", f'ulimit -{option} {1 << 20}; exec "$0" -c "$1"', sys.executable, code],
        capture_output=True,
        text=True,
        check=True,
    )
    first, advice = run.stdout.splitlines()
    assert 1 << 29 < int(first.split("|")[0]) < 3 << 28
    assert f"`ulimit -{option} unlimited`" in advice


def test_parts_are_equal_and_all_there_is(limited: Callable[[int], None]) -> None:
    limited(4000 << 20)
    calls = []

    def make() -> tuple[int, int, int]:
        calls.append(1)
        return budget.most(1 << 40, 8), budget.most(1 << 40, 8, beside=12, parts=3), budget.most(5, 8)

    assert budget.divided(make) == (100 << 20, 120 << 20, 5)
    assert len(calls) == 2
    assert budget.most(1 << 40, 8) == (4000 << 20) // budget.ALONE // 8  # nobody counted


def test_without_a_limit_the_memory_bounds_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "limit", lambda: None)
    assert budget.divided(lambda: budget.most(1 << 60, 8, beside=100)) == budget.memory() // 8
    assert budget.most(7, 8) == 7
    assert budget.advice() == ""


@pytest.mark.parametrize("left", [0, 64 << 20, 1 << 30])
def test_tables_that_depend_on_each_other_fit_each_other(left: int, limited: Callable[[int], None]) -> None:
    limited(left)
    program = some_program()
    states = budget.divided(lambda: [(empty_state(program), empty_contexts(program, STATIC)) for _ in range(2)])
    for state, contexts in states:
        assert len(state.readers.seen) == len(state.relations.accesses.rows)
        assert len(state.relations.tallies) == len(state.relations.levels.rows)
        assert len(state.objects.words) == WORDS * len(state.objects.pages.rows)
        assert len(empty_stream(0, len(contexts.tree.rows)).open) == len(contexts.tree.rows)
    small = 5 << 20  # what any state takes: tables of a fixed size
    assert left * 9 // 10 <= reserved(tuple(states)) <= left + 2 * small


def test_a_shadow_has_tables_of_pages_for_the_streams_that_fit(limited: Callable[[int], None]) -> None:
    limited(1 << 30)
    memory = budget.divided(lambda: shadow.empty("u8", per_stream=True))
    assert len(memory.table) == 0
    assert len(memory.pages) == 16_245  # of 66,096 bytes
    memory = budget.divided(lambda: shadow.empty("u8", per_stream=True, direct=1 << 24))
    assert len(memory.table) == 2 << 24


def analyzed_below(mebibytes: int, jobs: int) -> subprocess.CompletedProcess[str]:
    """What `analyze` prints in a process that has so much address space."""
    command = [sys.executable, "-m", "tracekit", "analyze", "-m", "camp", "--json", "-j", str(jobs), str(FIXTURE)]
    shell = f'ulimit -v {mebibytes << 10}; exec "$0" "$@"'
    return subprocess.run(["bash", "-c", shell, *command], capture_output=True, text=True, check=False)


@LINUX
@pytest.mark.parametrize("jobs", [1, 2])
def test_profiles_are_the_same_below_a_limit(jobs: int) -> None:
    run = analyzed_below(3 << 10, jobs)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == analyze(FIXTURE, "camp", jobs).to_json()


@LINUX
@pytest.mark.parametrize("mebibytes", [260, 500, 700, 900])
def test_where_there_is_hardly_room_a_sentence_says_so_at_worst(mebibytes: int) -> None:
    expected = analyze(FIXTURE, "camp", jobs=2).to_json()  # its kernels are compiled then
    run = analyzed_below(mebibytes, 2)
    if run.returncode:
        assert re.fullmatch(r"tracekit: Ran out of memory.* only what is touched takes memory\.\n", run.stderr)
        assert run.returncode == 1
    else:
        assert (run.stdout, run.stderr) == (expected, "")


def test_a_trace_that_needs_more_is_told_so(limited: Callable[[int], None]) -> None:
    limited(0)
    with pytest.raises(
        arena.TracekitError,
        match=r"^Ran out of memory: \d+ MiB for the analysis are used up\. "
        r"There is a limit: lift it or take fewer jobs \(`-j 1`\); only",
    ):
        analyze(FIXTURE, "camp", jobs=1)


def test_an_analysis_stops_before_the_system_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_next_look", 0.0)
    budget.require_memory()
    monkeypatch.setattr(budget, "unused", lambda: 3 << 20)
    budget.require_memory()  # it has just looked
    monkeypatch.setattr(budget, "_next_look", 0.0)
    with pytest.raises(TracekitError, match=r"^Ran out of memory: 3 MiB of it are left\. Analyse a part of the run"):
        analyze(FIXTURE, "footprint")


def test_how_much_memory_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(budget, "MEMINFO", tmp_path / "meminfo")
    files = [tmp_path / name for name in ("max", "current", "stat")]
    monkeypatch.setattr(budget, "GROUPS", [tuple(map(str, files)), ("/none", "/none", "/none")])
    assert budget.unused() is None
    budget.MEMINFO.write_text("MemTotal: 100 kB\nMemAvailable: 40 kB\n")
    for file, text in zip(files, ("max", "3000", "active_file 1\ninactive_file 500\n")):
        file.write_text(text)
    assert budget.unused() == 40 << 10
    files[0].write_text("10000\n")
    assert budget.unused() == 7500
