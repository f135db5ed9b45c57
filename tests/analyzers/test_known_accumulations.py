"""Loops that accumulate: ``fixtures/known_extremes.c`` and ``known_accumulations.c`` say what is true of each."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.needs import needs
from tests.programs.parallel import compile_parallel, outputs
from tests.programs.running import FIXTURES, compile_program, record, run

SOURCES = [FIXTURES / "known_extremes.c", FIXTURES / "known_accumulations.c"]
LEVELS = ["-O0", "-O1", "-O2", "-O3"]


class Found(NamedTuple):
    """A fixture at one level of optimisation: what camp and advise say."""

    source: Path
    camp: list[Any]
    advise: list[Any]


@pytest.fixture(
    scope="module",
    params=[(source, level) for source in SOURCES for level in LEVELS],
    ids=lambda each: each[0].stem + each[1],
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    from tracekit.api import analyze_all
    from tracekit.modules import registry

    source, level = request.param
    folder = tmp_path_factory.mktemp("accumulations")
    trace = record(compile_program([source], folder / "app", ["-g", level], instrumented=True)).trace
    options = {name: registry.load(name).Options() for name in ("camp", "advise")}
    options["advise"] = dataclasses.replace(options["advise"], top=0, min_share=0.0)
    camp, advise = (each.report["result"]["loops"] for each in analyze_all(trace, options, jobs=1))
    return Found(source, camp, advise)


def marked(source: Path, pattern: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Lines that say something of their loop."""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.search(pattern, line):
            yield number, match


def test_accumulation_is_no_obstacle(found: Found) -> None:
    for line, match in marked(found.source, r"// ALWAYS ([^A-Z]*?) (NO )?CLAUSE(\?)?"):
        (row,) = [row for row in found.camp if row["loop"]["line"] == line]
        assert row["verdict"] == "doall-with", (line, row["blocked_by"])
        operators = {step["operator"] for step in row["recipe"]}
        assert operators <= set(match.group(1).split()), line
        if not match.group(2) and not match.group(3):
            assert operators | {step["object"]["name"] for step in row["recipe"]} == set(match.group(1).split()), line


def test_what_looks_like_accumulation_blocks(found: Found) -> None:
    lines = dict(marked(found.source, "// NOT (.*)$"))
    assert lines
    for line, match in lines.items():
        (row,) = [row for row in found.camp if row["loop"]["line"] == line]
        assert row["verdict"] not in match.group(1).split(), line
        assert row["blocked_by"], line


def test_only_reductions_of_openmp_have_a_clause(found: Found) -> None:
    for line, match in marked(found.source, r"// ALWAYS [^A-Z]* (NO )?CLAUSE(\?)? ?(.*)$"):
        (row,) = [row["openmp"] for row in found.advise if row["loop"]["line"] == line]
        if match.group(1):
            assert not row["pragma"] and row["missing"], line
        else:
            lost = match.group(2) and "the name of a variable" in (row["missing"] or "")
            assert lost or row["pragma"] == f"#pragma omp parallel for {match.group(3)}", (line, row["missing"])


@needs("libomp")
def test_the_directives_do_not_change_the_result(found: Found, tmp_path: Path) -> None:
    from tracekit.recorder.toolchain import find_clang

    lines = found.source.read_text().splitlines()
    for row in sorted(found.advise, key=lambda row: -row["loop"]["line"]):
        if row["openmp"] and row["openmp"]["pragma"]:
            lines.insert(row["openmp"]["line"] - 1, row["openmp"]["pragma"])
    (tmp_path / "with.c").write_text("\n".join(lines))
    assert not compile_parallel(tmp_path / "with.c", tmp_path / "with", ["-O1"])
    built = run([find_clang().path, "-w", "-O1", found.source, "-o", tmp_path / "plain", "-lm"])
    assert built.status == 0, built.stderr.decode()
    plain = run([tmp_path / "plain"])
    assert set(outputs(tmp_path / "with", 4)) == {plain.stdout + str(plain.status).encode()}
