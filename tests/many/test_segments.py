"""`tracekit analyze --engine` of one trace: segments in real processes and on a real cluster, some of them killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

import tracekit
from tests.many.test_cluster import LONG, Running
from tracekit.cli import main
from tracekit.many.worker import PROGRAM

FIXTURE = str(Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v1.zst")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    cluster = Running(tmp_path)
    yield cluster
    cluster.close()


def analysed(target: Path, *words: str, modules: Sequence[str] = ("accesses", "heatmap")) -> bytes:
    chosen = [word for name in modules for word in ("-m", name)]
    assert main(["analyze", *chosen, *words, "-o", str(target), FIXTURE]) == 0
    return target.read_bytes()


def stopped_child(parent: int) -> psutil.Process:
    """The first process of tracekit's that works for another one, stopped."""
    deadline = time.monotonic() + LONG
    while True:
        for child in psutil.Process(parent).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended
                if PROGRAM in child.cmdline():
                    child.suspend()
                    return child
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killing(kill: object) -> threading.Thread:
    thread = threading.Thread(target=kill)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_processes_of_this_machine_one_of_which_is_killed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    expected = analysed(tmp_path / "whole", "-j", "1")
    killer = killing(lambda: stopped_child(os.getpid()).kill())
    found = analysed(tmp_path / "segments", "--engine", "processes", "-j", "2", "--segments", "5", "--explain")
    killer.join()
    assert found == expected
    assert capfd.readouterr().err.startswith("analysed in 3 segments\n")


def test_the_dependence_family_in_processes_one_of_which_is_killed(tmp_path: Path) -> None:
    modules = ("camp", "dependence")
    expected = analysed(tmp_path / "whole", "-j", "1", modules=modules)
    killer = killing(lambda: stopped_child(os.getpid()).kill())
    words = ("--engine", "processes", "-j", "2", "--segments", "3", "--memory", "1K")
    assert analysed(tmp_path / "segments", *words, modules=modules) == expected
    killer.join()


def test_workers_of_a_cluster_one_of_which_is_killed(running: Running, tmp_path: Path) -> None:
    expected = analysed(tmp_path / "whole", "-j", "1")
    running.add_worker()
    running.add_worker()
    killed: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        worker, child = running.stopped_analysis()
        worker.kill()
        child.kill()
        killed.append(worker)

    killer = killing(kill)
    found = analysed(tmp_path / "segments", "--engine", f"dask://{running.address}", "--segments", "5")
    killer.join()
    assert found == expected and len(killed) == 1


def client_of(*words: str) -> subprocess.Popen[str]:
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from tracekit.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "analyze", "-m", "accesses", "--segments", "4", *words, FIXTURE]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_a_scheduler_that_is_lost(running: Running) -> None:
    running.add_worker()
    client = client_of("--engine", f"dask://{running.address}")
    _, child = running.stopped_analysis()
    running.scheduler.kill()
    said = client.communicate(timeout=LONG)[1]
    child.resume()
    assert (client.returncode, said) == (1, "tracekit: The connection to the Dask scheduler is lost: run it again.\n")


def test_an_interrupt_ends_what_processes_do() -> None:
    client = client_of("--engine", "processes", "-j", "1")
    child = stopped_child(client.pid)
    client.send_signal(signal.SIGINT)
    said = client.communicate(timeout=LONG)[1]
    assert (client.returncode, said.strip()) == (130, "")
    psutil.wait_procs([child], timeout=LONG)
    assert not child.is_running()


@pytest.mark.parametrize(
    "words, status, why",
    [
        (("-m", "reuse", "--segments", "3"), 1, "The module reuse is not analysed in segments: a distance may reach"),
        (("-m", "accesses", "--segments", "3", "--from", "5"), 1, "A window is not analysed in segments: leave out"),
        (("-m", "reuse", "--explain", "-o", os.devnull), 0, "analysed by one worker: The module reuse is not analysed"),
    ],
)
def test_what_one_worker_does(words: Sequence[str], status: int, why: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--engine", "processes", "-j", "1", *words, FIXTURE]) == status
    assert why in capfd.readouterr().err
