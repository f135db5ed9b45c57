"""SIGKILL at random moments: the trace is sound, and holds every region that the victim had finished.

A handful for each run of the suite; TRACEKIT_LONG=N kills N victims.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.programs.running import FIXTURES, TRACEKIT, compile_program, opened, tracekit
from tracekit.formats.events import CODE

COUNT = int(os.environ.get("TRACEKIT_LONG", "4"))


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("kill") / "victim"
    return compile_program([FIXTURES / "victim.c"], output, ["-O2"], instrumented=True)


@pytest.mark.parametrize("seed", range(COUNT))
def test_nothing_finished_is_lost(seed: int, victim: Path, tmp_path: Path) -> None:
    page, trace = tmp_path / "page", tmp_path / "trace.zst"
    record = subprocess.Popen([*TRACEKIT, "record", "-o", trace, "--", victim, page], stderr=subprocess.PIPE)
    while not (page.exists() and page.stat().st_size):
        assert record.poll() is None
        time.sleep(0.001)
    time.sleep(random.Random(seed).uniform(0, 0.1))
    os.kill(_child(record.pid, victim), signal.SIGKILL)
    _, errors = record.communicate(timeout=60)
    assert record.returncode == 128 + signal.SIGKILL, errors
    tracekit("check", trace)
    finished = int.from_bytes(page.read_bytes()[:8], "little")
    assert finished <= _returns(trace) <= finished + 1


def _child(process: int, program: Path) -> int:
    """The child that runs the program; the other one is the collector."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    [found] = [int(child) for child in children if os.readlink(f"/proc/{child}/exe") == str(program)]
    return found


def _returns(trace: Path) -> int:
    """How often `work` returned."""
    returned = 0
    with opened(trace) as (program, replay):
        [work] = [row for row in range(len(program.functions)) if program.function_name(row) == "work"]
        for batch in replay.batches():
            exits = (batch.kind == CODE["function_exit"]) & (batch.subject == work)
            returned += int((exits & (batch.size == 0)).sum())  # size: whether the frame was unwound
    return returned
