"""The worked example of docs/object-relative.md: the session, and what the split that `layout` advises brings."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.needs import needs
from tests.programs.running import compile_program, record, run, run_here
from tracekit.render.html.layout import picture

ROOT = Path(tracekit.__file__).resolve().parents[1]
PROGRAMS = ROOT / "fixtures" / "layout"
OUTPUT = b"body 19999: 193100\n"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program before it is split."""
    folder = tmp_path_factory.mktemp("layout")
    shutil.copy(PROGRAMS / "before.c", folder)
    program = compile_program([folder / "before.c"], folder / "before", ["-g", "-O1"], instrumented=True)
    recording = record(program)
    assert recording.outcome.stdout == OUTPUT
    return recording.trace


def test_the_session_of_the_page(trace: Path) -> None:
    page = (ROOT / "docs" / "object-relative.md").read_text()
    shown = re.search(r"analyze -m layout before.zst\n(.*?)```", page, re.DOTALL)
    assert shown
    found = run_here("analyze", "-m", "layout", trace).stdout.decode()

    def lines(text: str) -> list[str]:
        text = re.sub(r"trace [0-9a-f]{32}.*", "trace", text)
        return [line.strip() for line in text.strip().splitlines()]

    assert lines(found) == lines(shown[1])


def test_the_picture_names_every_field_that_is_touched(trace: Path) -> None:
    row: Any = tracekit.analyze(trace, "layout").result["structures"][0]
    drawn = picture(row)
    assert drawn.count("<rect") == len(row["fields"])
    assert "x 98 %, v 100 %" in drawn and 'role="img"' in drawn


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
