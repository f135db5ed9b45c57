"""A command in a prepared process is what it is in one of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import prepared
from tests.programs.running import compile_program

COMMANDS = {
    "output": ["--version"],
    "error": ["check", "missing.zst"],
    "usage": ["record"],
    "program": ["record", "-o", "trace.zst", "./app", "status"],
    "signal": ["record", "-o", "trace.zst", "./app"],
    "compiler": ["cc", "missing.c"],
}
APP = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
    char line[99], *mark = getenv("MARK");
    (void)arguments;
    while (fgets(line, sizeof line, stdin)) printf("%s: %s", mark, line);
    fflush(stdout);
    if (count == 1) abort();
    return count + 40;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "app.c").write_text(APP)
    compile_program([folder / "app.c"], folder / "app", ["-O1"], instrumented=True)
    return folder


def started(command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(command, capture_output=True, **options)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("text", [False, True])
def test_streams_status_folder_and_environment(name: str, text: bool, folder: Path) -> None:
    given = "first\nsecond\n"
    environment = {**os.environ, "PYTHONPATH": str(prepared.ROOT), "MARK": name}
    found = []
    for run in (started, prepared.run):
        (folder / "trace.zst").unlink(missing_ok=True)
        command = [*prepared.PREFIX, *COMMANDS[name]]
        done = run(command, cwd=folder, env=environment, input=given if text else given.encode(), text=text)
        error = done.stderr if text else done.stderr.decode()
        found.append((done.returncode, done.stdout, [line for line in error.splitlines() if "kB ->" not in line]))
    assert found[0] == found[1]


def test_a_command_that_takes_too_long_is_killed(folder: Path) -> None:
    (folder / "slow.c").write_text("#include <unistd.h>\nint main(void) { return sleep(3); }")
    compile_program([folder / "slow.c"], folder / "slow", ["-O1"], instrumented=True)
    with pytest.raises(subprocess.TimeoutExpired):
        prepared.run([*prepared.PREFIX, "record", "-o", "slow.zst", "./slow"], cwd=folder, timeout=0.5)


def test_other_commands_and_what_python_reads_at_its_start_take_a_process_of_their_own() -> None:
    done = prepared.run(["sh", "-c", "echo here; exit 3"], text=True)
    assert (done.returncode, done.stdout) == (3, "here\n")
    environment = {**os.environ, "PYTHONVERBOSE": "1"}
    assert b"import _imp" in prepared.run([*prepared.PREFIX, "--version"], env=environment).stderr
