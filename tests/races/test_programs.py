"""Every construct that orders threads, with and without its race: fixtures/races, each case `ok` and `race`.

What is reported has to lie on lines marked with a comment, and nothing is reported for a program that orders what it
does.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.needs import NEEDS, needs
from tests.recorder.instrumented import toolchain
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, record

FOLDER = ROOT / "fixtures/races"
PROGRAMS = {
    "locks": "locks.c",
    "order": "order.c",
    "memory": "memory.c",
    "atomics": "atomics.c",
    "cxx": "cxx.cpp",
    "openmp": "openmp.c",
    "openmp_tasks": "openmp_tasks.c",
}
OPTIONS = {"openmp": ["-fopenmp"], "openmp_tasks": ["-fopenmp"]}
CASES = [
    pytest.param(program, case, marks=needs("libomp") if program in OPTIONS else ())
    for program, file in PROGRAMS.items()
    for case in re.findall(r'\{"(\w+)", \w+\}', (FOLDER / file).read_text())
]


@cache
def marked(file: str) -> frozenset[int]:
    """The lines of a file on which races may lie."""
    lines = (FOLDER / file).read_text().splitlines()
    return frozenset(number for number, line in enumerate(lines, 1) if re.search(r"(/\* race \*/|// race)", line))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs, compiled; those of OpenMP where its runtime is there."""
    folder = tmp_path_factory.mktemp("programs")
    toolchain()
    for name, file in PROGRAMS.items():
        if name in OPTIONS and not NEEDS["libomp"].is_there():
            continue
        compiler = ["c++", "-std=c++20"] if file.endswith("cpp") else ["cc"]
        command = [
            *TRACEKIT,
            *compiler,
            "--threads",
            "-g",
            "-O1",
            "-pthread",
            *OPTIONS.get(name, []),
            str(FOLDER / file),
            "-o",
            str(folder / name),
        ]
        run = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
    return {name: folder / name for name in PROGRAMS}


def races(folder: Path, program: Path, case: str, variant: str) -> dict[str, Any]:
    """What is found in a run."""
    run = record(folder, program, case, variant)
    assert run.returncode == 0, run.stderr
    result: dict[str, Any] = tracekit.analyze(str(folder / "trace.zst"), "races").result
    assert result["summary"]["unordered_atomics"] == result["summary"]["old_barriers"] == 0
    return result


def lines_of(end: dict[str, Any], file: str) -> set[int]:
    """The lines of the program's own file that an end of a race lies on, is inlined into, or is called from."""
    places = [end["instruction"], *end["instruction"]["inlined_at"]]
    lines = {place["line"] for place in places if place["file"].endswith(file)}
    return lines or {int(step.split(":")[-2]) for step in end["context"]["path"] if re.search(r":\d+:\d+$", step)}


@pytest.mark.parametrize(("program", "case"), CASES)
def test_ordered(tmp_path: Path, programs: dict[str, Path], program: str, case: str) -> None:
    result = races(tmp_path, programs[program], case, "ok")
    assert result["races"] == [] and result["summary"]["races"] == 0


@pytest.mark.parametrize(("program", "case"), CASES)
def test_racing(tmp_path: Path, programs: dict[str, Path], program: str, case: str) -> None:
    found = races(tmp_path, programs[program], case, "race")["races"]
    assert found
    file = PROGRAMS[program]
    for race in found:
        for end in (race["first"], race["second"]):
            assert lines_of(end, file) & marked(file), end


def test_there_are_many() -> None:
    cases = [tuple(case.values) for case in CASES]
    assert len(cases) == len(set(cases)) >= 160
