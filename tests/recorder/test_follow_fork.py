"""``tracekit record --follow-fork``: which processes leave a trace, what it holds, and that nothing else changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import tracekit
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, build, events, read, record
from tracekit.formats.reader import TraceReader

FOLLOW = ("--follow-fork", "-o", "app.zst")


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("families"), (ROOT / "fixtures/families.c").read_text(), "-pthread")


def described(folder: Path) -> list[dict[str, Any]]:
    """META and DONE of all traces in a folder, the first process's first; each has been checked."""
    found = []
    for path in folder.glob("app*.zst"):
        tracekit("check", path)
        with TraceReader(path) as reader:
            assert reader.complete and reader.done is not None
            found.append({**reader.meta, **reader.done, "path": path})
    assert len({row["session"] for row in found}) == 1
    assert not list(folder.glob("*.partial*"))
    return sorted(found, key=lambda row: (row["path"].name != "app.zst", row["path"].name))


def stores(row: dict[str, Any]) -> int:
    """Stores of the process itself, beside what it inherited."""
    inherited = row.get("inherited", {"stores": 0})
    return int(row["totals"]["stores"]) - int(inherited["stores"])


def natively(folder: Path, families: Path, way: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([families, way], capture_output=True, text=True, env=ENVIRONMENT, cwd=folder)


EXECUTED = ["vfork", "spawn", "system", "popen"]
FORKED_AND_EXECUTED = ["execv", "execl", "execve"]


@pytest.mark.parametrize("way", ["fork", "thread", "failing", *EXECUTED, *FORKED_AND_EXECUTED, "environment", "exec"])
@pytest.mark.parametrize("options", [(), FOLLOW], ids=["alone", "followed"])
def test_what_the_program_does_stays_the_same(tmp_path: Path, families: Path, way: str, options: tuple[str]) -> None:
    native = natively(tmp_path, families, way)
    run = record(tmp_path, families, way, options=options)
    assert (run.stdout, run.returncode) == (native.stdout, native.returncode), run.stderr
    if not options:
        assert [path.name for path in tmp_path.iterdir()] == ["trace.zst"]


@pytest.mark.parametrize("way", ["fork", "thread", "execv", "vfork"])
@pytest.mark.parametrize("options", [(), FOLLOW], ids=["alone", "followed"])
def test_children_that_are_not_recorded_are_counted(
    tmp_path: Path, families: Path, way: str, options: tuple[str]
) -> None:
    said = "1 forked process ran unrecorded; --follow-fork records it in a trace of its own\n"
    assert (said in record(tmp_path, families, way, options=options).stderr) is (not options and way != "vfork")


@pytest.mark.parametrize("way, count, status", [("fork", 300, 5), ("thread", 401, 131)])
def test_a_forked_child_has_a_trace(tmp_path: Path, families: Path, way: str, count: int, status: int) -> None:
    record(tmp_path, families, way, options=FOLLOW)
    parent, child = described(tmp_path)
    assert child["path"].name == f"app.{child['process']}.zst"
    assert (child["parent"], child["start"], parent.get("parent")) == (parent["process"], "fork", None)
    assert count <= stores(child) <= count + 40
    assert child["inherited"]["stores"] >= 100 and stores(parent) >= 110
    assert child["status"] == status
    assert [found.words[1] for found in events(parent["path"], "fork")] == [child["process"]]
    assert [found.words[1] for found in events(child["path"], "program_start")] == [parent["process"], child["process"]]


MANY = """
#include <sys/wait.h>
#include <unistd.h>
static volatile int cells[1000];
int main(void)
{
    for (int child = 1; child <= 6; child++) {
        for (int i = 0; i < 10; i++) cells[i] = child;
        if (fork() == 0) {
            for (int i = 0; i < 100 * child; i++) cells[i] = i;
            return child;
        }
        wait(0);
    }
    return 0;
}
"""
COUNTING = """
import sys
from tracekit.cli import main
from tracekit.formats.image_frame import Image
parse, parsed = Image.parse, []
Image.parse = lambda payload: parsed.append(payload) or parse(payload)
try:
    main(sys.argv[1:])
finally:
    print(len(parsed))
"""


def test_what_children_of_one_parent_inherit_is_read_once(tmp_path: Path) -> None:
    program = build(tmp_path, MANY)
    command = [sys.executable, "-c", COUNTING, "record", *FOLLOW, "--", program]
    run = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert run.stdout == "1\n", run.stderr
    parent, *children = described(tmp_path)
    children.sort(key=lambda row: row["status"])
    assert [row["status"] for row in children] == [1, 2, 3, 4, 5, 6]
    for number, row in enumerate(children, 1):
        assert 100 * number <= stores(row) <= 100 * number + 10
        assert 10 * number <= row["inherited"]["stores"] <= 13 * number
    assert 60 <= stores(parent) <= 80


@pytest.mark.parametrize("way", EXECUTED)
def test_an_executed_program_has_a_trace(tmp_path: Path, families: Path, way: str) -> None:
    record(tmp_path, families, way, options=FOLLOW)
    _, child = described(tmp_path)
    assert child["start"] == "program" and "inherited" not in child
    assert child["command"] == [str(families), "leaf", "500"] and child["status"] == 11
    assert 500 <= stores(child) <= 540


@pytest.mark.parametrize("way", FORKED_AND_EXECUTED)
def test_a_child_that_executes_a_program_has_two(tmp_path: Path, families: Path, way: str) -> None:
    record(tmp_path, families, way, options=FOLLOW)
    parent, second, first = described(tmp_path)
    assert first["path"].name == f"app.{first['process']}.zst" and first["start"] == "fork"
    assert second["path"].name == f"app.{first['process']}.2.zst" and second["start"] == "program"
    assert first["process"] == second["process"] != parent["process"]
    assert second["status"] == 11 and 500 <= stores(second) <= 540
    assert [found.name for found in read(first["path"])][-1] == "exec"


def test_a_program_that_executes_another_goes_on_in_a_second_trace(tmp_path: Path, families: Path) -> None:
    run = record(tmp_path, families, "exec", options=FOLLOW)
    first, second = described(tmp_path)
    assert run.returncode == 11 and (first["process"], second["status"]) == (second["process"], 11)


def test_a_daemon_is_recorded_to_its_end(tmp_path: Path, families: Path) -> None:
    run = record(tmp_path, families, "daemon", options=FOLLOW)
    assert run.stdout == "daemon exited 0\n" and run.returncode == 0
    _, *others = described(tmp_path)
    daemon = max(others, key=stores)
    assert 700 <= stores(daemon) <= 740 and daemon["status"] == 0
    assert {row["process"] for row in others} >= {daemon["parent"]}


def test_a_child_that_fails_to_execute_goes_on(tmp_path: Path, families: Path) -> None:
    record(tmp_path, families, "failing", options=FOLLOW)
    _, child = described(tmp_path)
    assert 40 <= stores(child) <= 80 and child["status"] is None


def test_a_script_may_run_several_programs(tmp_path: Path, families: Path) -> None:
    script = tmp_path / "script"
    script.write_text(
        f"#!/bin/sh\n'{families}' leaf 30\n'{families}' leaf 60 | cat\nenv | grep -c TRACEKIT_POOL\nexit 3\n"
    )
    script.chmod(0o755)
    run = record(tmp_path, script, options=FOLLOW)
    assert run.stdout == "leaf 29\nleaf 59\n0\n".replace("29", "1").replace("59", "1") and run.returncode == 3
    one, two = described(tmp_path)
    assert 30 <= stores(one) <= 50 and 60 <= stores(two) <= 90


ENDLESS = r"""
    #include <signal.h>
    #include <stdio.h>
    #include <unistd.h>
    volatile int stop, table[256];
    void handle(int number) { stop = number; }
    int main(int argc, char **argv)
    {
        int ends[2];
        char byte;
        if (pipe(ends)) return 1;
        if (fork()) return read(ends[0], &byte, 1) != 1;
        signal(SIGUSR1, handle);
        if (write(ends[1], "!", 1) != 1) return 1;
        for (unsigned i = 0; !stop; i = i * 1103515245 + 12345) table[i >> 24]++;
        FILE *file = fopen(argv[1], "w");
        fprintf(file, "%d\n", stop);
        return fclose(file) + (argc > 9);
    }"""


@pytest.mark.parametrize("what", ["interrupted", "collector killed"])
def test_a_child_outlives_the_recording_undisturbed(tmp_path: Path, what: str) -> None:
    app, said = build(tmp_path, ENDLESS), tmp_path / "said"
    with open(tmp_path / "errors", "w") as errors:  # a pipe would stay open as long as the child lives
        run = subprocess.Popen(
            [*TRACEKIT, "record", *FOLLOW, str(app), str(said)],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    while not list(tmp_path.glob("app.*.zst.partial")) or _children(app):
        time.sleep(0.01)
    (child,) = _processes(app)
    time.sleep(1.5)
    if what == "interrupted":
        run.send_signal(signal.SIGINT)
    else:
        (partial,) = tmp_path.glob("app.*.zst.partial")
        (collector,) = [process for process in _children_of(run.pid) if _opens(process, partial)]
        os.kill(collector, signal.SIGKILL)
        time.sleep(0.5)
        os.kill(child, signal.SIGUSR1)
    assert run.wait(timeout=60) == 0
    if what == "interrupted":
        assert "it was still running when recording was stopped" in (tmp_path / "errors").read_text()
        time.sleep(0.3)
        os.kill(child, signal.SIGUSR1)
    for _ in range(100):
        if said.exists() and said.read_text():
            break
        time.sleep(0.05)
    assert said.read_text() == f"{signal.SIGUSR1.value}\n"
    (trace,) = tmp_path.glob("app.[0-9]*.zst")
    assert TraceReader(trace).complete == (what == "interrupted")
    assert len(TraceReader(trace).chunk_frames()) > 0


def _processes(program: Path) -> list[int]:
    """Processes of this user whose first word is the program."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0") if entry.isdigit() else [b""]
        except OSError:
            continue
        if words[0].decode().endswith(str(program)):
            found.append(int(entry))
    return found


def _children(app: Path) -> bool:
    return len(_processes(app)) != 1


def _children_of(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _opens(process: int, file: Path) -> bool:
    return any(os.path.realpath(link) == str(file) for link in Path(f"/proc/{process}/fd").iterdir())
