"""Loops that store the same again, or count in two variables: ``fixtures/known_stores.c`` says what is true of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import FIXTURES, compile_program, record

SOURCE = FIXTURES / "known_stores.c"
MARKED = {
    number: (found.group(1).strip(), found.group(2).strip())
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
    if (found := re.search(r"// RECIPE (.*)SAYS(.*)$", line))
}
"""Line -> the recipe, and what directive or reason hold."""


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O3"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    from tracekit.api import analyze

    folder: Path = tmp_path_factory.mktemp("stores")
    trace = record(compile_program([SOURCE], folder / "app", ["-g", request.param], instrumented=True)).trace
    return {row["loop"]["line"]: row for row in analyze(trace, "advise", jobs=1, top=0, min_share=0).result["loops"]}


def test_the_recipe_tells_what_is_stored(found: dict[int, Any]) -> None:
    for line, (recipe, _) in MARKED.items():
        (case,) = found[line]["cases"]
        steps = [f"{step['kind']} {step['object']['name']}" for step in case["recipe"]]
        assert steps == ([recipe] if recipe else []), line
        assert found[line]["verdict"] == ("doall-with" if recipe else "doall"), line


def test_directive_or_reason_follow_from_it(found: dict[int, Any]) -> None:
    for line, (_, says) in MARKED.items():
        assert says in (found[line]["openmp"]["pragma"] or found[line]["openmp"]["missing"]), line
