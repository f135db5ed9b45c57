"""Programs of many kinds do the same with and without the pass, and what they record obeys the tables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.recorder.instrumented import build, clang, run
from tests.recorder.stream_rules import check_stream

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
# These need a real runtime: threads, signals and processes of their own.
ELSEWHERE = {
    "victim.c",
    "threads.c",
    "between_threads.c",
    "signals.c",
    "siglongjmp.c",
    "fork.c",
    "dlopen.c",
    "plugin.c",
    "endings.c",
    "constructors.cpp",
    "containers.cpp",
    "openmp.c",
    "fork_join.c",
}
# Millions of records, one by one in Python; test_pass_records.py has a short one for the first.
TOO_LONG = {"tail_calls.c", "known_limits.c"}
PROGRAMS = sorted(
    path.name for path in FIXTURES.iterdir() if path.suffix in (".c", ".cpp") and path.name not in ELSEWHERE | TOO_LONG
)


def build_flags(source: Path) -> list[str]:
    """What the fixture's line "// build:" asks for."""
    found = re.search(r"^// build: (.*)$", source.read_text(), re.MULTILINE)
    return found.group(1).split() if found else []


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_records(name: str, level: str, tmp_path: Path) -> None:
    source = FIXTURES / name
    flags = [level, *build_flags(source)]
    clang([*flags, source, "-o", tmp_path / "native", "-lm"], instrument=False, cxx=source.suffix == ".cpp")
    native = subprocess.run([tmp_path / "native"], capture_output=True, text=True, timeout=60)
    instrumented = run(build(tmp_path, [source], *flags))
    assert (instrumented.output, instrumented.status) == (native.stdout, native.returncode)
    assert instrumented.records
    check_stream(instrumented.records)


@pytest.mark.parametrize("flags", [("-O1",), ("-O3",), ("-O3", "-march=native")])
def test_other_levels(flags: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("control_flow.c", "vectors.c", "exceptions.cpp"):
        check_stream(run(build(tmp_path, [FIXTURES / name], *flags)).records)


def test_at_the_end_of_the_pipeline(tmp_path: Path) -> None:
    for name in ("bulk.c", "vectors.c", "virtual_calls.cpp"):
        program = build(tmp_path, [FIXTURES / name], "-O3", "-mavx2", options="record=blocks,at=machine")
        check_stream(run(program).records)
