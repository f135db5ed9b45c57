"""Programs of MPI, of both implementations: their messages, what MPI reads and writes for them, names of traces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.needs import require
from tests.recorder.instrumented import toolchain
from tests.recorder.recording import ENVIRONMENT, ROOT, TIMEOUT, TRACEKIT
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.recorder import elf, mpi, session


class Mpi(NamedTuple):
    """One of the implementations."""

    name: str
    environment: dict[str, str]
    options: tuple[str, ...]


MPIS = (
    Mpi(
        "openmpi",
        {
            "OMPI_CC": "tracekit-cc",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl_base_warn_component_unused": "0",
        },
        ("--oversubscribe",),
    ),
    Mpi("mpich", {"MPICH_CC": "tracekit-cc"}, ()),
)

ALL_KINDS = r"""
#include <mpi.h>
#include <stdio.h>
enum { N = 8 };
static double sent[N], got[N], all[4 * N];
static int rank, size, right, left;
static void blocking(void)
{
    if (rank % 2) {
        MPI_Recv(got, N, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ssend(sent, N, MPI_DOUBLE, right, 1, MPI_COMM_WORLD);
    } else {
        MPI_Send(sent, N, MPI_DOUBLE, right, 1, MPI_COMM_WORLD);
        MPI_Recv(got, 2 * N, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}
static void at_once(void)
{
    MPI_Request requests[4];
    int done, place;
    MPI_Irecv(got, N, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(all, N, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(sent, N, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(sent, N / 2, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    do
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    while (!done);
    MPI_Waitany(2, requests + 2, &place, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE);
}
static void of_nobody(void)
{
    MPI_Request requests[2];
    MPI_Recv(got, N, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(got, N, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(got, N, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[1]);
}
static void persistent(MPI_Comm other)
{
    MPI_Request requests[2];
    MPI_Recv_init(got, N, MPI_DOUBLE, left, 3, other, &requests[0]);
    MPI_Send_init(sent, N, MPI_DOUBLE, right, 3, other, &requests[1]);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}
int main(int argc, char **argv)
{
    MPI_Comm other, half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int i = 0; i < N; i++)
        sent[i] = rank;
    blocking();
    at_once();
    of_nobody();
    persistent(other);
    MPI_Sendrecv(sent, 1, MPI_DOUBLE, right, 4, got, N, MPI_DOUBLE, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(all, N, MPI_DOUBLE, 0, half);
    MPI_Allgather(sent, N, MPI_DOUBLE, all, N, MPI_DOUBLE, other);
    MPI_Allreduce(MPI_IN_PLACE, got, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("%d %g\n", rank, got[0] + all[N]);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module", params=MPIS, ids=lambda each: each.name)
def chosen(request: pytest.FixtureRequest) -> Mpi:
    require(request.param.name)
    toolchain()
    return request.param


def environment(chosen: Mpi, folder: Path) -> dict[str, str]:
    """With a `tracekit-cc` and a `tracekit` on PATH, as they are once tracekit is installed."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, words in (("tracekit", TRACEKIT), ("tracekit-cc", [*TRACEKIT, "cc"])):
        (programs / name).write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
        (programs / name).chmod(0o755)
    return {**ENVIRONMENT, **chosen.environment, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def run(chosen: Mpi, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=folder, env=environment(chosen, folder), capture_output=True, text=True, timeout=4 * TIMEOUT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(chosen: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, and a trace of each of two ranks."""
    made = tmp_path_factory.mktemp(chosen.name)
    (made / "app.c").write_text(ALL_KINDS)
    run(chosen, made, f"mpicc.{chosen.name}", "-g", "-O1", "app.c", "-o", "app")
    done = run(chosen, made, f"mpirun.{chosen.name}", *chosen.options, "-n", "2", "tracekit", "record", "./app")
    assert sorted(done.stdout.split("\n")[:2]) == ["0 2", "1 2"]
    return made


def profile(chosen: Mpi, folder: Path, module: str, *traces: str) -> dict[str, Any]:
    done = run(chosen, folder, "tracekit", "analyze", "-m", module, "--json", *traces)
    found: dict[str, Any] = json.loads(done.stdout)
    return found.get("result", found)


def test_each_rank_has_a_trace_and_all_messages_meet(chosen: Mpi, folder: Path) -> None:
    traces = ["trace.0.zst", "trace.1.zst"]
    for rank, name in enumerate(traces):
        run(chosen, folder, "tracekit", "check", name)
        with TraceReader(folder / name) as trace:
            assert trace.meta["rank"] == rank
    found = profile(chosen, folder, "messages", *traces)
    assert found["unmatched"] == [] == found["mismatches"]
    # 1 blocking, 2 at once, 3 persistent, 1 of both kinds, of each rank
    assert found["summary"] == {
        "ranks": [0, 1],
        "size": 2,
        "messages": 14,
        "bytes": 2 * (64 + 96 + 192 + 8),
        "unfinished": 0,
    }
    operations = {(row["operation"], row["communicator"]): row["bytes"] for row in found["collectives"]}
    assert operations == {
        ("broadcast", "of 0"): 64,
        ("broadcast", "of 1"): 64,
        ("allgather", "of 0, 1"): 128,
        ("allreduce", "world"): 128,
        ("barrier", "world"): 0,
    }
    alone = profile(chosen, folder, "messages", traces[1])
    assert alone["summary"]["ranks"] == [1] and alone["unmatched"] == []


def test_a_load_depends_on_the_receive_that_stored(chosen: Mpi, folder: Path) -> None:
    last = ALL_KINDS[: ALL_KINDS.index('printf("%d %g')].count("\n") + 1
    sources = set()
    for row in profile(chosen, folder, "dependence", "trace.0.zst")["dependences"]:
        source, destination = row["source"], row["destination"]
        if destination["line"] == last:
            sources.add(ALL_KINDS.split("\n")[source["line"] - 1].split("(")[0].strip())
    assert {"MPI_Allreduce", "MPI_Allgather"} <= sources


def test_a_launcher_can_be_followed(chosen: Mpi, folder: Path) -> None:
    launcher = shutil.which(f"mpirun.{chosen.name}")
    assert launcher
    command = ("tracekit", "record", "--follow-fork", "-o", "all.zst", launcher, *chosen.options, "-n", "2", "./app")
    run(chosen, folder, *command)
    traces = sorted(path.name for path in folder.glob("all*.zst"))
    assert len(traces) == 2
    assert profile(chosen, folder, "messages", *traces)["summary"]["messages"] == 14


def test_programs_of_system_libraries_alone_are_not_asked_what_they_load(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(elf, "libraries", lambda path: asked.append(path) or ["/usr/lib/libmpi.so.40"])
    monkeypatch.setattr(elf, "needed", lambda path: ["libc.so.6", "libm.so.6"])
    assert mpi.implementation("/bin/true") is None and not asked
    monkeypatch.setattr(elf, "needed", lambda path: ["libc.so.6", "libhdf5.so.103"])
    assert mpi.implementation("/bin/true") == mpi.IMPLEMENTATIONS[0]
    monkeypatch.setattr(elf, "needed", lambda path: [])  # it has no section headers
    assert mpi.implementation("/bin/true") == mpi.IMPLEMENTATIONS[0]


def test_an_executable_says_what_it_needs() -> None:
    needed = elf.needed(sys.executable)
    names = [os.path.basename(path) for path in elf.libraries(sys.executable)]
    assert "libc.so.6" in needed and set(needed) <= set(names)
    assert elf.needed(__file__) == []


def test_names_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert mpi.rank() is None
    assert session.output_path("a.zst", 7) == "a.zst" and session.output_path("a.%r.zst", 7) == "a.0.zst"
    monkeypatch.setenv("PMI_RANK", "3")
    assert mpi.rank() == 3
    names = {
        "a.zst": "a.3.zst",
        "b/a": "b/a.3",
        "x.y/a": "x.y/a.3",
        "r%r.zst": "r3.zst",
        "%p": "7",
        "%%p.zst": "%p.3.zst",
    }
    assert {pattern: session.output_path(pattern, 7) for pattern in names} == names
    with pytest.raises(TracekitError, match="%r the rank"):
        session.output_path("%q", 7)
