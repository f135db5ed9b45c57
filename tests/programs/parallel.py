"""Run a program with one of its loops made parallel by an OpenMP directive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.programs.running import SECONDS

SCHEDULES = ("dynamic,1", "static", "static,1", "guided")
THREADS = "4"


def with_directive(source: Path, copy: Path, line: int, pragma: str) -> Path:
    """Write a copy of `source` with `pragma` before its line `line`; iterations go to threads as the run says."""
    lines = source.read_text().splitlines()
    schedule = "" if "schedule(" in pragma else " schedule(runtime)"
    lines.insert(line - 1, pragma + schedule)
    copy.write_text("\n".join(lines) + "\n")
    return copy


def compile_parallel(source: Path, program: Path, flags: Sequence[str] = ()) -> str:
    """Compile natively with OpenMP; what the compiler says against it, "" if nothing."""
    from tracekit.recorder.toolchain import find_clang

    language = ["--driver-mode=g++"] if source.suffix == ".cpp" else []
    command = [find_clang().path, *language, "-fopenmp", "-w", *flags, source, "-o", program, "-lm"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS)
    return done.stderr if done.returncode else ""


def outputs(program: Path, repeats: int, arguments: Sequence[str] = ()) -> list[bytes]:
    """What several runs print, with several threads and each way of dealing iterations out."""
    found = []
    for number in range(repeats):
        schedule = SCHEDULES[number % len(SCHEDULES)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": THREADS,
            "OMP_SCHEDULE": schedule,
            "OMP_DYNAMIC": "false",
            "OMP_WAIT_POLICY": "passive",
        }
        done = subprocess.run([program, *arguments], capture_output=True, env=environment, timeout=SECONDS)
        found.append(done.stdout + str(done.returncode).encode())
    return found


def parallel_outputs(
    source: Path, folder: Path, line: int, pragma: str, repeats: int, arguments: Sequence[str] = ()
) -> list[bytes]:
    """Insert, compile, run. Fails if it does not compile."""
    folder.mkdir(exist_ok=True)
    copy = with_directive(source, folder / f"line{line}{source.suffix}", line, pragma)
    errors = compile_parallel(copy, copy.with_suffix(""))
    assert not errors, f"{source.name}:{line}: {pragma}\n{errors}"
    return outputs(copy.with_suffix(""), repeats, arguments)
