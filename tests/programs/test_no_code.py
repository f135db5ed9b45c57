"""Traces of programs in which nothing was instrumented but a file without functions: all tables are empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import TRACEKIT, compile_program, run
from tracekit.api import analyze


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("no_code")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    (folder / "nothing.c").write_text("int nothing;\n")
    compile_program([folder / "main.c"], folder / "main.o", ["-c"], instrumented=False)
    app = compile_program([folder / "nothing.c"], folder / "app", ["-g", str(folder / "main.o")], instrumented=True)
    outcome = run([*TRACEKIT, "record", "--late", "-o", folder / "trace.zst", "--", app])
    assert outcome.status == 0, outcome.stderr.decode()
    return folder / "trace.zst"


@pytest.mark.parametrize("module", ["camp", "lamp", "advise"])
def test_it_has_no_loops(module: str, trace: Path) -> None:
    assert analyze(trace, module, jobs=1).result["loops"] == []
