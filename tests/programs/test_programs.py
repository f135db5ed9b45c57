"""Every program of fixtures/ behaves under `tracekit record` as it does natively, and leaves a sound trace."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.conftest import Build
from tests.programs.running import profiles, record, run, tracekit

LEVELS = (0, 1, 2, 3) if os.environ.get("TRACEKIT_LONG") else (0, 2)


@dataclass(frozen=True)
class Case:
    """A run of a program of fixtures/."""

    source: str
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    accesses: int = 100
    """So many loads and stores it makes at least."""

    def __str__(self) -> str:
        return " ".join((self.source, *self.arguments))


ENDINGS = ("return", "exit", "_exit", "quick_exit", "abort", "kill", "terminate", "fault", "trap", "exec")
CASES = (
    Case("camp_fig1.c"),
    Case("camp_fig7.c", accesses=12),
    Case("recursion.c", accesses=150_000),
    Case("event_loop.c", ("again",), accesses=3_000),
    Case("function_pointers.c", accesses=5_000),
    Case("virtual_calls.cpp"),
    Case("exceptions.cpp", accesses=1_000),
    Case("longjmp.c", accesses=500),
    Case("builtin_longjmp.c", accesses=500),
    Case("vla.c", accesses=1_500),
    Case("bit_fields.c", accesses=2_000),
    Case("unions_packed.c", accesses=200),
    Case("vectors.c", accesses=500),
    Case("array_loops.c", accesses=100_000),
    Case("atomics.c", accesses=15_000),
    Case("bulk.c", accesses=4_000),
    Case("threads.c", accesses=25_000),
    Case("signals.c", accesses=20_000),
    Case("siglongjmp.c"),
    Case("fork.c", accesses=2_000),
    *(Case("endings.c", (mode,), accesses=3_000) for mode in ENDINGS),
    Case("dlopen.c"),
    Case("constructors.cpp"),
    Case("qsort.c", accesses=20_000),
    Case("heap.cpp", accesses=10_000),
    Case("control_flow.c", accesses=1_000),
    Case("tail_calls.c", accesses=3_000_000),
    Case("long_block.c", accesses=100_000),
    Case("containers.cpp", accesses=500),
    Case("varargs.c", stdin=b"one 2 three\n4x5 last line 17\n"),
    Case("known_dependences.c", accesses=60),
    Case("known_unwinding.cpp"),
    Case("lifetimes.c"),
    Case("pointers.c", accesses=80),
    Case("heaps.c", accesses=2_000),
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_program(case: Case, level: int, build: Build) -> None:
    natively, recorded = _plugins(case, level, build)
    native = run([build(case.source, level, instrumented=False), *natively], case.stdin)
    recording = record(build(case.source, level), recorded, case.stdin)
    assert recording.outcome.stdout == native.stdout
    assert recording.outcome.status == native.status
    tracekit("check", recording.trace)
    info = json.loads(tracekit("info", "--json", recording.trace))
    assert info["complete"]
    assert info["accesses"] >= case.accesses
    assert info["loads"] > 0 and info["stores"] > 0
    found = profiles(recording.trace, "camp", "lamp")
    assert found["camp"]["summary"]["dependences"] >= found["lamp"]["summary"]["dependences"] > 0


@pytest.mark.parametrize("level", LEVELS)
def test_unrecorded_programs_run_as_without_instrumentation(level: int, build: Build) -> None:
    for case in CASES:
        natively, instrumented = _plugins(case, level, build)
        native = run([build(case.source, level, instrumented=False), *natively], case.stdin)
        other = run([build(case.source, level), *instrumented], case.stdin)
        assert (other.stdout, other.status, other.stderr) == (native.stdout, native.status, native.stderr), str(case)


def _plugins(case: Case, level: int, build: Build) -> tuple[list[str | Path], list[str | Path]]:
    """The arguments of the native and of the recorded run: each opens a library of its own kind."""
    if case.source != "dlopen.c":
        return list(case.arguments), list(case.arguments)
    return [build("plugin.c", level, instrumented=False)], [build("plugin.c", level)]
