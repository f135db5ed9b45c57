"""Loops that an error would leave: ``fixtures/known_exits.c`` says what is true of each at every level."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.programs.running import FIXTURES, compile_program, record

SOURCE = FIXTURES / "known_exits.c"
LINES = SOURCE.read_text().splitlines()
ALWAYS = {
    n: found for n, line in enumerate(LINES, 1) if (found := re.search(r"// ALWAYS (\S+) ?(DIRECTIVE)?(LEFT)?", line))
}
NEVER = {n: found.group(1).split() for n, line in enumerate(LINES, 1) if (found := re.search(r"// NOT (.*)$", line))}


class Found(NamedTuple):
    """What camp, lamp and advise say of the loops of one build."""

    camp: list[Any]
    lamp: list[Any]
    advise: list[Any]
    from_the_second_access: list[Any]
    """camp's rows in a window on all but the first access."""


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O3"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    from tracekit.api import analyze_all
    from tracekit.modules import registry

    folder: Path = tmp_path_factory.mktemp("exits")
    trace = record(compile_program([SOURCE], folder / "app", ["-g", request.param], instrumented=True)).trace
    options = {name: registry.load(name).Options() for name in ("camp", "lamp", "advise")}
    options["advise"] = dataclasses.replace(options["advise"], top=0, min_share=0.0)
    whole = analyze_all(trace, options, jobs=1)
    rest = analyze_all(trace, {"camp": options["camp"]}, jobs=1, window={"from": "1"})
    return Found(*(each.report["result"]["loops"] for each in [*whole, *rest]))


@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_an_error_that_did_not_happen_is_no_obstacle(found: Found, module: str) -> None:
    for line, expected in ALWAYS.items():
        for row in (row for row in getattr(found, module) if row["loop"]["line"] == line):
            assert row["verdict"] == expected.group(1), (line, row["blocked_by"])
            left = [exit_["line"] for exit_ in row["not_taken"]]
            assert not (left and expected.group(2)) and not (expected.group(3) and not left), line
            assert all("a[" in LINES[at - 1] for at in left), line


@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_an_exit_that_was_taken_or_searches_is_one(found: Found, module: str) -> None:
    for line, never in NEVER.items():
        rows = [row for row in getattr(found, module) if row["loop"]["line"] == line]
        assert rows
        for row in rows:
            assert row["verdict"] not in never, line
            assert row["blocked_by"], line
            assert not row["not_taken"], line


def test_a_window_does_not_show_that_an_exit_was_never_taken(found: Found) -> None:
    """What is counted for that may stand on both sides of where it begins."""
    assert any(row["not_taken"] for row in found.camp)
    for row in found.from_the_second_access:
        assert not row["not_taken"], row["loop"]
    blocked = {row["loop"]["line"] for row in found.from_the_second_access if row["blocked_by"]}
    assert {row["loop"]["line"] for row in found.camp if row["not_taken"]} <= blocked


def test_only_loops_without_another_way_out_have_a_directive(found: Found) -> None:
    for line, expected in ALWAYS.items():
        for row in (row for row in found.advise if row["loop"]["line"] == line):
            assert row["openmp"] and bool(row["openmp"]["pragma"]) == bool(expected.group(2)), (line, row)
