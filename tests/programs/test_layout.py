"""The worked example of docs/object-relative.md: the session, and what the split that `layout` advises brings."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.needs import needs
from tests.programs.running import compile_program, record, run, run_here
from tracekit.analyzers.layout import Layout
from tracekit.render.html.layout import picture

ROOT = Path(tracekit.__file__).resolve().parents[1]
PROGRAMS = ROOT / "fixtures" / "layout"
OUTPUT = b"body 19999: 193100\n"


def recorded(name: str, folder: Path, output: bytes) -> Path:
    """A program of the page, compiled and run."""
    shutil.copy(PROGRAMS / f"{name}.c", folder)
    program = compile_program([folder / f"{name}.c"], folder / name, ["-g", "-O1"], instrumented=True)
    recording = record(program)
    assert recording.outcome.stdout == output
    return recording.trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program before it is split."""
    return recorded("before", tmp_path_factory.mktemp("layout"), OUTPUT)


@pytest.fixture(scope="module")
def list_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list that is walked."""
    return recorded("list", tmp_path_factory.mktemp("list"), b"9990000\n")


@pytest.mark.parametrize(("module", "name"), [("layout", "trace"), ("leap", "list_trace"), ("whomp", "list_trace")])
def test_the_sessions_of_the_page(module: str, name: str, request: pytest.FixtureRequest) -> None:
    page = (ROOT / "docs" / "object-relative.md").read_text()
    shown = re.search(rf"analyze -m {module} \w+\.zst\n(.*?)```", page, re.DOTALL)
    assert shown
    found = run_here("analyze", "-m", module, request.getfixturevalue(name)).stdout.decode()

    def lines(text: str) -> list[str]:
        text = re.sub(r"trace [0-9a-f]{32}.*", "trace", text)
        return [line.strip() for line in text.strip().splitlines()]

    assert lines(found) == lines(shown[1])


@pytest.mark.parametrize("name", ["trace", "list_trace"])
def test_what_leap_compares_with_are_the_dependences_of_the_module(name: str, request: pytest.FixtureRequest) -> None:
    """Of accesses of one size, in objects: which load read what which store stored."""
    path = request.getfixturevalue(name)
    rows = tracekit.analyze(path, "leap", compare=True).result["dependences"]
    exact = tracekit.analyze(path, "dependence", counts=True).result["dependences"]
    wanted = {(row["source"]["id"], row["destination"]["id"]): row["count"] for row in exact}
    found = {
        (row["store"]["id"], row["load"]["id"]): round(row["last"] * row["loads"] / 100) for row in rows if row["last"]
    }
    assert found == wanted
    assert all(row["window"] <= row["exact"] and row["last"] <= row["exact"] for row in rows)


def test_layouts_of_several_runs_are_those_of_one(trace: Path) -> None:
    profile = tracekit.analyze(trace, "layout")
    with tracekit.open(trace) as opened:
        one, three = (Layout.merge([vars_of(profile)] * count, opened.program) for count in (1, 3))
    assert json.dumps(one["result"]) == json.dumps(profile.result)
    for name in ("visits", "accesses", "bytes_saved"):
        assert three["result"]["summary"][name] == pytest.approx(3 * profile.result["summary"][name], rel=1e-6)
    for row, times in zip(profile.result["loads"], three["result"]["loads"], strict=True):
        assert {**times, "begun": 0, "loads": 0} == {**row, "begun": 0, "loads": 0}
        assert (times["begun"], times["loads"]) == (3 * row["begun"], 3 * row["loads"])


def vars_of(profile: Any) -> Any:
    """What a module's merge is given of a profile."""
    return json.loads(json.dumps({**profile.report, "evidence": profile.evidence}))


def test_the_picture_names_every_field_that_is_touched(trace: Path) -> None:
    row: Any = tracekit.analyze(trace, "layout").result["structures"][0]
    drawn = picture(row)
    assert drawn.count("<rect") == len(row["fields"])
    assert "x 98%, v 100%" in drawn and 'role="img"' in drawn


@needs("valgrind")
def test_the_split_saves_the_misses_that_it_is_said_to_save(trace: Path, tmp_path: Path) -> None:
    misses = {}
    for name in ("before", "after"):
        program = compile_program([PROGRAMS / f"{name}.c"], tmp_path / name, ["-O1"], instrumented=False)
        tool = [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            "--D1=49152,12,64",
            "--cachegrind-out-file=/dev/null",
        ]
        outcome = run([*tool, program])
        assert outcome.stdout == OUTPUT
        found = re.search(r"D1 +misses: +([\d,]+)", outcome.stderr.decode())
        assert found
        misses[name] = int(found[1].replace(",", ""))
    (advice,) = tracekit.analyze(trace, "layout").result["structures"][0]["advice"]
    assert advice["kind"] == "split" and advice["keep"] == ["x", "v"]
    saved = 100 * (misses["before"] - misses["after"]) / misses["before"]
    assert saved == pytest.approx(advice["percent"], abs=3)
