"""OpenMP programs (libomp): the answers, what each thread leaves in the trace, and the same from both recorders."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, build, events, read, record

SOURCE = (ROOT / "fixtures/openmp.c").read_text()


pytestmark = needs("libomp")


@pytest.fixture(scope="module", params=["paths", "blocks", "both"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A recorded run: its trace, its output."""
    folder = tmp_path_factory.mktemp("openmp")
    run = record(folder, build(folder, SOURCE, "-fopenmp", f"--record={request.param}"))
    assert run.returncode == 0, run.stderr
    return folder / "trace.zst", run.stdout


def info(trace: Path) -> dict[str, Any]:
    out = subprocess.run([*TRACEKIT, "info", "--json", trace], env=ENVIRONMENT, capture_output=True, check=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def test_answers_and_soundness(recorded: tuple[Path, str]) -> None:
    trace, output = recorded
    assert output == "71820100 4 6 144 101133400\n"
    check = subprocess.run([*TRACEKIT, "check", trace], env=ENVIRONMENT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
    assert info(trace)["threads"] >= 4


def test_calls_objects_and_threads(recorded: tuple[Path, str]) -> None:
    trace, _ = recorded
    records = read(trace)
    squares = Counter(found.stream for found in records if found.name == "square")
    assert squares.total() >= 600
    ran = {found.stream for found in records if found.name.startswith("main.omp_outlined")}
    assert len(ran) >= 4  # each thread has the outlined functions at its root
    allocated = [found for found in events(trace, "heap_alloc") if found.words[2] == 80]
    freed = {found.words[1]: found.stream for found in events(trace, "heap_free")}
    assert len(allocated) == 4 and all(freed[found.words[1]] == found.stream for found in allocated)
    created = {found.words[1] for found in events(trace, "thread_create")}
    assert ran - {0} <= created
