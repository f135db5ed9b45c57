"""Profiles with compiled paths, forced upon every path, against those without."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.programs.running import FIXTURES, Recording, build_flags, compile_program, record
from tracekit.api import analyze_all
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.jit import object_cache
from tracekit.jit.cache import KEPT_DAYS
from tracekit.modules import registry
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.table import with_rows
from tracekit.program.program import Program
from tracekit.replay.compiled.compiler import ENOUGH, LOOK_FOR_PLAN, CompiledPaths, plan_of
from tracekit.replay.compiled.cost_model import LONG_ENOUGH, SETTING, WORK_OF_PATH, work_of
from tracekit.replay.compiled.functions import Constants
from tracekit.replay.totals import trace_totals
from tracekit.segments.analysis import SegmentedAnalysis
from tracekit.segments.start_cache import StartCache

ALL_KINDS = {"dependence": {"kinds": "raw,war,waw", "counts": True, "distance": True}}
SEVERAL: Mapping[str, Mapping[str, Any]] = {"accesses": {}, "camp": {}, "footprint": {}, "object_lifetime": {}}
CASES = (
    *((name, 1, {"dependence": {}}) for name in ("tail_calls.c", "longjmp.c", "signals.c", "threads.c", "vla.c")),
    *((name, 2, {"dependence": {}}) for name in ("exceptions.cpp", "recursion.c", "qsort.c", "bulk.c")),
    ("known_dependences.c", 0, ALL_KINDS),
    ("control_flow.c", 1, ALL_KINDS),
    ("recursion.c", 1, SEVERAL),
    ("known_verdicts.c", 1, SEVERAL),
    ("array_loops.c", 0, {"camp": {}}),
    ("array_loops.c", 1, {"camp": {}, "dependence": {}}),
    ("array_loops.c", 2, {"camp": {"contexts": "static"}, "lamp": {}}),
)

SEGMENTED = (
    ("known_dependences.c", 0, "camp", {}),
    ("recursion.c", 1, "dependence", {"kinds": "raw,war,waw", "counts": True}),
    ("recursion.c", 1, "leap", {}),
    ("threads.c", 1, "leap", {}),
)

RAISING = """
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import Module


class State(NamedTuple):
    seen: Any


class Raises(Module):
    def state(self):
        return State(np.zeros(1, np.int64))

    @staticmethod
    def load(state, address):
        state.seen[0] += 1
        if state.seen[0] > 20:
            raise ValueError("twenty loads are enough")

    def result(self, state):
        return {}


MODULE = Raises
"""


def profiles(trace: Path, modules: Mapping[str, Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """What each module finds, and the facts beside it."""
    options = {name: registry.load(name).Options(**chosen) for name, chosen in modules.items()}
    return [(found.report["result"], found.facts) for found in analyze_all(trace, options, jobs=1)]


@pytest.mark.parametrize("name, level, module, options", SEGMENTED)
def test_segments_are_replayed_by_compiled_paths(
    name: str,
    level: int,
    module: str,
    options: Mapping[str, Any],
    recording: Callable[..., Recording],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = recording(name, level).trace
    monkeypatch.setattr(StartCache, "write", lambda kept: None)
    monkeypatch.setenv(SETTING, "0")
    ((without, _),) = profiles(path, {module: options})
    monkeypatch.setenv(SETTING, "always")
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
        kind = registry.load(module)
        runners = {module: CallbackRunner(kind(program, kind.Options(**options)), module, 1)}
        accesses = trace_totals(trace, program)["accesses"]
        segmented = SegmentedAnalysis(trace, program, runners, batch=64)
        parts = segmented.run(2, [accesses // 3, 2 * accesses // 3])
        assert with_rows(runners[module].result()[0]) == without
    explained = segmented.explained()
    assert 1 + parts == len(explained) > 1
    assert parts > 1 or name == "threads.c"  # which chunks its trace has depends on the run
    assert all(
        re.match(r"(pass ahead|segment \d), compiled paths: [1-9]\d* paths? replayed", line) for line in explained
    )


@pytest.mark.parametrize("name, level, modules", CASES)
def test_profiles_are_the_same(
    name: str,
    level: int,
    modules: Mapping[str, Mapping[str, Any]],
    recording: Callable[..., Recording],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = recording(name, level).trace
    monkeypatch.setenv(SETTING, "0")
    without = profiles(trace, modules)
    monkeypatch.setenv(SETTING, "always")
    assert profiles(trace, modules) == without


@pytest.mark.parametrize(
    "name, flags, modules",
    [
        ("known_values.c", ["--values"], {"value_pattern": {}, "histobin": {}}),
        ("vectors.c", ["--values"], {"value_pattern": {}}),
        ("known_pointees.c", ["--values", "--pointers"], {"points_to": {}, "privateer": {}}),
    ],
)
def test_profiles_of_values_and_pointers_are_the_same(
    name: str,
    flags: Sequence[str],
    modules: Mapping[str, Mapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    source = FIXTURES / name
    compile_program([source], tmp_path / "program", ["-O1", *flags, *build_flags(source)], instrumented=True)
    trace = record(tmp_path / "program").trace
    monkeypatch.setenv(SETTING, "0")
    without = profiles(trace, modules)
    monkeypatch.setenv(SETTING, "always")
    assert profiles(trace, modules) == without


def test_what_a_callback_raises_is_told_with_its_line(
    recording: Callable[..., Recording], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = recording("recursion.c", 1).trace
    module = tmp_path / "raising.py"
    module.write_text(RAISING)
    messages = []
    for setting in ("0", "always"):
        monkeypatch.setenv(SETTING, setting)
        with pytest.raises(TracekitError, match="twenty loads are enough") as error:
            profiles(trace, {str(module): {}})
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_only_long_traces_are_compiled_for_and_shorter_ones_of_known_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    monkeypatch.delenv(SETTING, raising=False)
    assert CompiledPaths([], b"program", LONG_ENOUGH).may_compile
    assert not CompiledPaths([], b"program", LONG_ENOUGH - 1).may_compile
    plan = plan_of(b"program", [])
    plan.add([[(64, [0])]])
    plan.keep()
    assert CompiledPaths([], b"program", LONG_ENOUGH - 1).may_compile
    assert not CompiledPaths([], b"other", LONG_ENOUGH - 1).may_compile


def test_more_hot_paths_than_a_trace_pays_for_are_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    monkeypatch.delenv(SETTING, raising=False)
    most = LONG_ENOUGH // WORK_OF_PATH
    assert CompiledPaths([], b"program", 0, LONG_ENOUGH, hot=lambda: most).may_compile
    assert not CompiledPaths([], b"program", 0, LONG_ENOUGH, hot=lambda: most + 1).may_compile
    plan = plan_of(b"program", [])
    plan.add([[(64, [0])]])
    plan.keep()
    assert CompiledPaths([], b"program", 0, LONG_ENOUGH, hot=lambda: most + 1).may_compile


def test_the_pass_ahead_takes_paths_when_a_segment_has_compiled_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    monkeypatch.delenv(SETTING, raising=False)
    ahead = CompiledPaths([], b"program", LONG_ENOUGH, follows=True)
    ids = np.full(ENOUGH, 64, np.uint32)
    assert not any(ahead.see(0, ids) for _ in range(2 * LOOK_FOR_PLAN))
    plan = plan_of(b"program", [])
    plan.add([[(64, [0])]])
    plan.keep()
    assert any(ahead.see(0, ids) for _ in range(LOOK_FOR_PLAN))
    assert ahead.seen().tolist() == [64]


def test_the_code_of_a_library_does_not_depend_on_the_lengths_of_a_programs_tables() -> None:
    fixed, here, there = np.zeros(8, np.int64), np.zeros(1000, np.int64), np.zeros(3000, np.int64)
    constants = [Constants((fixed, table)) for table in (here, there)]
    one, other = ([*each.text((fixed, table))] for each, table in zip(constants, (here, there)))
    assert one == other
    assert [each.addresses["length0"] for each in constants] == [1000, 3000]
    assert "i64 8" in one


def test_long_runs_are_for_modules_that_take_many_accesses_at_once() -> None:
    usual, runs = (1 << 25, 6 << 25), (1 << 16, 1 << 30)
    assert work_of(*usual, for_runs=False) == work_of(*usual, for_runs=True) == 1 << 25
    assert work_of(*runs, for_runs=False) == 0
    assert work_of(*runs, for_runs=True) > LONG_ENOUGH


def test_a_kept_file_that_is_damaged_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    assert object_cache.kept("key", lambda: b"code") == (b"code", False)
    assert object_cache.kept("key", lambda: b"other") == (b"code", True)
    (tmp_path / "code" / "key").write_bytes((tmp_path / "code" / "key").read_bytes()[:-1])
    assert object_cache.kept("key", lambda: b"code") == (b"code", False)


def test_what_nobody_uses_for_a_month_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    object_cache.write("old", b"")
    object_cache.write("new", b"")
    long_ago = time.time() - (KEPT_DAYS + 1) * 86_400
    os.utime(tmp_path / "code" / "old", (long_ago, long_ago))
    object_cache.forget_unused()
    assert (object_cache.read("old"), object_cache.read("new")) == (None, b"")


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path / "file")
    assert object_cache.kept("key", lambda: b"code") == (b"code", False)
    assert object_cache.kept("key", lambda: b"code") == (b"code", False)
