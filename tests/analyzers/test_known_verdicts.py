"""Loops with known verdicts, compiled, recorded and analysed: ``fixtures/known_verdicts.c`` says what is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import FIXTURES, compile_program, profiles, record
from tracekit.verdicts.verdicts import Verdict

SOURCE = FIXTURES / "known_verdicts.c"
LINES = list(enumerate(SOURCE.read_text().splitlines(), 1))
VERDICTS = {number: match.group(1).split() for number, line in LINES if (match := re.search(r"// VERDICT (.*)$", line))}
NEVER = {number: match.group(1).split() for number, line in LINES if (match := re.search(r"// NOT (.*)$", line))}
CALLS = {number: match.group(1) for number, line in LINES if (match := re.search(r"// CALL (.*)$", line))}
PER_CALLER = next(number for number, line in LINES if line.endswith("// PER CALLER"))


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2"])
def level_and_profiles(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    folder: Path = tmp_path_factory.mktemp("verdicts")
    program = compile_program([SOURCE], folder / "app", [request.param], instrumented=True)
    return request.param, profiles(record(program).trace, "camp", "lamp")


def rows_at(profile: Any, line: int) -> list[Any]:
    return [row for row in profile["loops"] if row["loop"]["line"] == line]


def named(row: Any) -> set[str]:
    """The operators and the variables that a recipe names."""
    steps = row["recipe"]
    return {step["operator"] for step in steps} | {step["object"].get("name", "") for step in steps}


@pytest.mark.parametrize("line", VERDICTS)
@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_the_verdict_is_right(level_and_profiles: tuple[str, Any], module: str, line: int) -> None:
    level, found = level_and_profiles
    expected, *names = VERDICTS[line]
    (row,) = rows_at(found[module], line)
    if level == "-O1":
        assert row["verdict"] == expected
        assert set(names) <= named(row)
    else:
        # Without the optimiser a maximum is a branch, with all of it a value stays in a register that the
        # compiler calls a recurrence: the verdict may be worse, never better.
        assert Verdict(row["verdict"]).rank >= Verdict(expected).rank
    assert bool(row["recipe"]) == (row["verdict"] == "doall-with")
    assert bool(row["blocked_by"]) == (row["verdict"] in ("pipeline", "sequential"))


@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_no_level_makes_the_iterations_of_a_stencil_hand_on_what_they_loaded(
    level_and_profiles: Any, module: str
) -> None:
    (line,) = [number for number, text in LINES if "a[i - 1] + a[i] + a[i + 1]" in text]
    (row,) = rows_at(level_and_profiles[1][module], line)
    assert row["verdict"] == "doall"


@pytest.mark.parametrize("line", NEVER)
@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_the_verdict_is_never_better_than_the_truth(level_and_profiles: Any, module: str, line: int) -> None:
    (row,) = rows_at(level_and_profiles[1][module], line)
    assert row["verdict"] not in NEVER[line]
    assert row["blocked_by"]


def test_a_loop_is_judged_for_each_caller(level_and_profiles: tuple[str, Any]) -> None:
    found = level_and_profiles[1]
    verdicts = {}
    for row in rows_at(found["camp"], PER_CALLER):
        (call, own) = row["context"]["path"]
        assert own == f"loop shift:{PER_CALLER}"
        verdicts[int(call.split(":")[1])] = row["verdict"]
    assert verdicts == CALLS
    (row,) = rows_at(found["lamp"], PER_CALLER)
    assert row["verdict"] == "sequential"
    assert row["context"] is None


def test_contexts_make_more_loops_parallel_never_fewer(level_and_profiles: tuple[str, Any]) -> None:
    found = level_and_profiles[1]
    summary = found["camp"]["summary"]
    lamp = sum(row["verdict"] in ("doall", "doall-with", "pipeline") for row in found["lamp"]["loops"])
    assert summary["parallel_loops_lamp"] == lamp <= summary["parallel_loops_camp"]
