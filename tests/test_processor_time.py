"""Processor time by file of tests is that of the tests and of what they start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BUSY = """
import subprocess, sys, time

def burn(seconds):
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        pass

def test_here():
    time.sleep(1)
    burn(0.5)

def test_waited_for():
    subprocess.run([sys.executable, "-c", BURN], check=True)

def test_runs_on():
    running = subprocess.Popen([sys.executable, "-c", BURN + "; time.sleep(60)"], stdout=subprocess.PIPE)
    running.stdout.readline()
    CHILDREN.append(running)

def test_ends():
    CHILDREN.pop().kill()

CHILDREN = []
BURN = "import time\\nwhile time.process_time() < 0.5: pass\\nprint('burnt', flush=True)"
"""
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_own_time_and_that_of_children_counts_and_sleep_does_not(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_busy.py").write_text(BUSY)
    (tmp_path / "test_idle.py").write_text("def test_idle(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.processor_time", "--dist", "loadfile", *options]
    run = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout
    seconds = {
        name: float(value) for value, name in re.findall(r"^ *([\d.]+)  (test_\w+.py)$", run.stdout, re.MULTILINE)
    }
    assert list(seconds) == ["test_busy.py", "test_idle.py"]
    assert 1.4 < seconds["test_busy.py"] < 4 and seconds["test_idle.py"] < 0.5
