"""Processes that compile the same kernel take turns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tracekit.jit import lock

HOLD = """
import sys, time
from tracekit.jit.lock import one_process
with one_process("kernel", "int64"):
    print("has it", flush=True)
    time.sleep(600)
"""


def holder(cache: Path) -> subprocess.Popen[str]:
    """A process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "has it\n"
    return process


def test_a_process_that_is_killed_lets_the_next_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    process = holder(tmp_path)
    entered = threading.Event()

    def enter() -> None:
        with lock.one_process("kernel", "int64"):
            entered.set()

    waiting = threading.Thread(target=enter)
    waiting.start()
    assert not entered.wait(0.3)
    with lock.one_process("kernel", "float64"):  # another kernel is another matter
        process.send_signal(signal.SIGKILL)
    waiting.join(60)
    process.wait()
    assert entered.is_set()


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(lock, "PATIENCE", 0.2)
    process = holder(tmp_path)
    with lock.one_process("kernel", "int64"):
        assert process.poll() is None
    process.kill()
    process.wait()


def test_a_cache_that_cannot_be_written_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with lock.one_process("kernel"), lock.one_process("kernel"):
        pass
