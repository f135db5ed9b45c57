"""Loops with loaded bounds: ``fixtures/known_bounds.c``, ``.cpp``, ``known_joins.c`` say what is true of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import FIXTURES, compile_program, profiles, record

SOURCES = [FIXTURES / "known_bounds.c", FIXTURES / "known_bounds.cpp", FIXTURES / "known_joins.c"]


def marked(source: Path, word: str) -> dict[int, list[str]]:
    """Lines whose comment begins with `word`, and what follows it."""
    lines = enumerate(source.read_text().splitlines(), 1)
    return {number: found.group(1).split() for number, line in lines if (found := re.search(f"// {word} (.*)$", line))}


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O3"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    folder: Path = tmp_path_factory.mktemp("bounds")
    traces = {
        source: record(
            compile_program([source], folder / f"{source.name}.out", ["-g", request.param], instrumented=True)
        ).trace
        for source in SOURCES
    }
    return {source: profiles(trace, "camp", "lamp") for source, trace in traces.items()}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_a_bound_that_no_iteration_changes_is_no_obstacle(found: dict[Path, Any], source: Path, module: str) -> None:
    verdicts = {
        line: {row["verdict"] for row in found[source][module]["loops"] if row["loop"]["line"] == line}
        for line in marked(source, "ALWAYS")
    }
    expected = {line: set(verdict) for line, verdict in marked(source, "ALWAYS").items()}
    if module == "lamp":  # does not see which call read what
        expected |= {line: verdicts[line] for line in expected if "size(" in source.read_text().splitlines()[line - 1]}
    assert verdicts == expected


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_a_bound_that_changes_blocks(found: dict[Path, Any], source: Path, module: str) -> None:
    for line, never in marked(source, "NOT").items():
        rows = [row for row in found[source][module]["loops"] if row["loop"]["line"] == line]
        assert rows
        for row in rows:
            assert row["verdict"] not in never, line
            assert row["blocked_by"], line
            assert not row["rests_on"], line


def test_the_profile_says_what_the_verdict_rests_on(found: dict[Path, Any]) -> None:
    source = SOURCES[0]
    (line,) = [line for line in marked(source, "ALWAYS") if "*n" in source.read_text().splitlines()[line - 1]]
    (row,) = [row for row in found[source]["camp"]["loops"] if row["loop"]["line"] == line]
    assert [(each["kind"], each["line"]) for each in row["rests_on"]] == [("load", line)]
