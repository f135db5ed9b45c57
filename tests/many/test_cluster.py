"""`tracekit analyze --engine`: the same bytes from a Dask cluster, whatever happens to its workers; traces at URLs."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

import tracekit
from tests.commands.test_merge import CHAINED, FAR, INDEPENDENT, ONCE, record
from tracekit.cli import main
from tracekit.formats.errors import TracekitError
from tracekit.formats.remote import size_of
from tracekit.many import cluster
from tracekit.many.cluster import Cluster, address_of
from tracekit.many.worker import PROGRAM

LONG = 60
"""Seconds that a process has to come to something."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("traces")
    runs = {"independent": INDEPENDENT, "chained": CHAINED, "far": FAR, "once": ONCE}
    return [str(record(folder / f"{name}.zst", addresses)) for name, addresses in runs.items()]


class Running:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder
        port = self.address.partition(":")[2]
        self.scheduler = self._started("dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self, **environment: str) -> None:
        words = ("dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        self.workers.append(self._started(*words, **environment))

    def _started(self, program: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *words],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
                stdout=log,
                stderr=log,
            )

    def stopped_analysis(self) -> tuple[subprocess.Popen[bytes], psutil.Process]:
        """The first worker that analyses, and the process in which it does, which is stopped now."""
        deadline = time.monotonic() + LONG
        while True:
            for worker in self.workers:
                for child in psutil.Process(worker.pid).children():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        if PROGRAM in child.cmdline():
                            child.suspend()
                            return worker, child
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    cluster = Running(tmp_path)
    yield cluster
    cluster.close()


def analysed(engine: Sequence[str], traces: Sequence[str], target: Path) -> bytes:
    assert main(["analyze", "-m", "camp", "-m", "accesses", *engine, "-o", str(target), *traces]) == 0
    return target.read_bytes()


def test_workers_of_this_machine_log_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """As a worker does whose heartbeat comes while the cluster ends."""

    def complain() -> None:
        import logging

        logging.getLogger("distributed.worker").error("Failed to communicate with scheduler during heartbeat.")

    with Cluster(None, 1) as cluster:
        cluster._client.run(complain)
    assert capfd.readouterr().err == ""


def test_a_cluster_of_this_machine(traces: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    expected = analysed([], traces, tmp_path / "here")
    assert analysed(["--engine", "dask", "-j", "2"], traces, tmp_path / "there") == expected
    one = ["analyze", "-m", "footprint", "--json", traces[0]]  # does not merge, and need not
    capfd.readouterr()
    assert main(one) == 0
    printed = capfd.readouterr()
    assert main([*one, "--engine", "dask", "-j", "1"]) == 0
    assert capfd.readouterr() == printed


def test_a_trace_that_is_damaged_is_named(traces: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.zst"
    bad.write_bytes(b"no trace")
    words = ["analyze", "-m", "accesses", "--engine", "dask", "-j", "1", "-o", str(tmp_path / "kept")]
    assert main([*words, str(bad)]) == 1
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and "bad.zst" in said
    assert main([*words, "--keep-going", str(bad), *traces]) == 1
    assert f"tracekit: {bad} is left out: " in capfd.readouterr().err
    assert (tmp_path / "kept").exists()


def test_a_worker_that_is_killed_loses_nothing(traces: list[str], running: Running, tmp_path: Path) -> None:
    expected = analysed([], traces, tmp_path / "here")
    running.add_worker()
    running.add_worker()

    def kill() -> None:
        worker, child = running.stopped_analysis()
        worker.kill()
        child.kill()
        killed.append(worker)

    killed: list[subprocess.Popen[bytes]] = []
    killer = threading.Thread(target=kill)
    killer.start()
    assert analysed(["--engine", f"dask://{running.address}"], traces, tmp_path / "there") == expected
    killer.join()
    assert len(killed) == 1


def test_a_scheduler_that_is_lost(traces: list[str], running: Running, tmp_path: Path) -> None:
    running.add_worker()
    words = ["analyze", "-m", "accesses", "--engine", f"dask://{running.address}", *traces]
    client = subprocess.Popen([sys.executable, "-m", "tracekit", *words], stderr=subprocess.PIPE, text=True)
    _, child = running.stopped_analysis()
    running.scheduler.kill()
    said = client.communicate(timeout=LONG)[1]
    child.resume()
    assert (client.returncode, said) == (1, "tracekit: The connection to the Dask scheduler is lost: run it again.\n")


def test_an_interrupt_ends_what_workers_do(traces: list[str], running: Running, tmp_path: Path) -> None:
    running.add_worker()
    words = ["analyze", "-m", "accesses", "--engine", f"dask://{running.address}", *traces]
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from tracekit.cli import main; sys.exit(main(sys.argv[1:]))"
    client = subprocess.Popen([sys.executable, "-c", program, *words], stderr=subprocess.PIPE, text=True)
    _, child = running.stopped_analysis()
    client.send_signal(signal.SIGINT)
    said = client.communicate(timeout=LONG)[1]
    child.resume()
    assert (client.returncode, said.strip()) == (130, "")
    psutil.wait_procs([child], timeout=LONG)
    assert not child.is_running()


def test_a_worker_of_another_version_is_refused(
    traces: list[str], running: Running, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "older" / "tracekit").mkdir(parents=True)
    (tmp_path / "older" / "tracekit" / "__init__.py").write_text("__version__ = '0.0.1'\n")
    running.add_worker(PYTHONPATH=str(tmp_path / "older"))
    assert main(["analyze", "-m", "accesses", "--engine", f"dask://{running.address}", *traces]) == 1
    assert f"has tracekit 0.0.1, and this is tracekit {tracekit.__version__}." in capfd.readouterr().err


def test_nobody_answers(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 5)
    with pytest.raises(TracekitError, match="has no worker"):
        Cluster(running.address, 1)
    running.close()
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(TracekitError, match=f"No Dask scheduler answers at {running.address}"):
        Cluster(running.address, 1)


@pytest.mark.parametrize(
    "words, why",
    [
        (("--engine", "dusk"), "There is no engine 'dusk'"),
        (("--engine", "dask://"), "There is no engine"),
        (("--engine", "dask://here:1", "-j", "2"), "those of a running one are its own"),
        (("--engine", "dask", "--segments", "2"), "several are analysed beside one another"),
    ],
)
def test_misuse(words: Sequence[str], why: str, traces: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", *words, *traces]) == 2
    assert why in capfd.readouterr().err
    assert address_of("dask://here:1") == "here:1"


def test_without_dask(traces: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["analyze", "-m", "accesses", "--engine", "dask", *traces]) == 2
    assert "pip install 'tracekit[cluster]'" in capfd.readouterr().err


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves the parts of files that are asked for, as servers of large files do."""

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if asked is None or not path.is_file():
            super().do_GET()
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        whole = path.read_bytes()
        part = whole[int(first) : int(last or len(whole)) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(whole)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *said: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(traces: list[str]) -> Iterator[str]:
    handler = functools.partial(Ranges, directory=str(Path(traces[0]).parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_traces_at_urls(traces: list[str], server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    urls = [f"{server}/{Path(trace).name}" for trace in traces]
    assert [size_of(url) for url in urls] == [os.stat(trace).st_size for trace in traces]
    assert analysed([], urls, tmp_path / "urls") == analysed([], traces, tmp_path / "files")
    capfd.readouterr()
    assert main(["info", "--json", traces[0]]) == 0
    facts = capfd.readouterr().out
    assert main(["info", "--json", urls[0]]) == 0
    assert capfd.readouterr().out == facts
    assert main(["analyze", "-m", "camp", f"{server}/gone.zst"]) == 1
    assert capfd.readouterr().err == f"tracekit: Cannot read {server}/gone.zst: there is no such file.\n"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/gone.zst"
        assert main(["info", nobody]) == 1
    assert f"Cannot read {nobody}: Cannot connect to host" in capfd.readouterr().err


def test_no_such_scheme(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "gopher://host/trace.zst"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("tracekit: Cannot read gopher://host/trace.zst: ") and said.count("\n") == 1
