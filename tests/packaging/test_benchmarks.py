"""The benchmarks start as their own texts say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scaling import Measured, simulated

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"^ *python ((?:-m )?benchmarks[\w./]+)", re.MULTILINE)
BENCHMARKS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if "argparse" in path.read_text("utf-8"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_command_of_a_docstring(path: Path) -> None:
    commands = [found for found in COMMAND.findall(path.read_text(encoding="utf-8")) if path.stem in found]
    assert commands, "its docstring gives no command"
    for command in sorted(set(commands)):
        subprocess.run([sys.executable, *command.split(), "--help"], cwd=ROOT, capture_output=True, check=True)


def test_lines_of_code_are_counted() -> None:
    run = subprocess.run([sys.executable, "benchmarks/lines.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line.split(" | ") for line in run.stdout.splitlines()[2:]]
    assert {row[0].strip("| ") for row in rows} >= {"dependence", "points_to", "lamp"}
    assert all(0 < int(row[1]) <= int(row[2]) for row in rows)


def test_more_cores_are_simulated() -> None:
    parts = Measured(ready=[1, 2, 3, 3], analysed=[4, 4, 4, 4], joined=[1, 1, 1, 1], result=2)
    assert [simulated(parts, cores) for cores in (1, 2, 5, 64)] == [3 + 16 + 1 + 2, 11 + 1 + 2, 7 + 1 + 1 + 2, 11]
    assert simulated(parts, 2, tree=True) == 11 + 2 + 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_steps_of_an_analysis_are_timed(jobs: int) -> None:
    """It names functions of tracekit by their texts, which no checker of types follows."""
    trace = ROOT / "fixtures" / "traces" / "v3.zst"
    command = [sys.executable, "-m", "benchmarks.phases", "--module", "accesses", "--repeat", "1", "--jobs", str(jobs)]
    run = subprocess.run([*command, trace], cwd=ROOT, capture_output=True, text=True, check=True)
    head, row = (line.split() for line in run.stdout.splitlines())
    seconds = dict(zip(head[1:], map(float, row[1:]), strict=True))
    steps = [seconds[step] for step in ("start", "opening", "replay", "result", "output")]
    assert 0 < sum(steps) == pytest.approx(seconds["all"], abs=0.05)
