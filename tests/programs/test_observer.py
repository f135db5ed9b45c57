"""The recorded accesses against an independent observer: clang's own instrumentation of loads and stores.

Both sides get the same LLVM IR, optimised without vectorisers and unrolling, and compile it without further
optimisation, so that the counts of each source line, kind and size must be equal. The observer sees loads and stores
of 1, 2, 4, 8 and 16 bytes; bulk copies, read-modify-writes, library calls and other sizes are left out on our side.
It counts before the access: a load that faults, as in siglongjmp.c, is one that it sees and that never happened.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.programs.running import FIXTURES, build_flags, compile_program, opened, record, run
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import OpFlag, OpKind

Counts = Counter[tuple[int, str, int]]
"""(line, "L" or "S", size) -> executions. Line 0: the compiler gives no line, in whatever file."""

PROGRAMS = (
    "camp_fig1.c",
    "camp_fig7.c",
    "recursion.c",
    "function_pointers.c",
    "virtual_calls.cpp",
    "exceptions.cpp",
    "longjmp.c",
    "vla.c",
    "bit_fields.c",
    "unions_packed.c",
    "vectors.c",
    "atomics.c",
    "bulk.c",
    "qsort.c",
    "heap.cpp",
    "control_flow.c",
    "tail_calls.c",
    "varargs.c",
    "known_dependences.c",
    "known_unwinding.cpp",
)
SIZES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_by_line_are_those_of_the_observer(name: str, tmp_path: Path) -> None:
    level = 1 + PROGRAMS.index(name) % 3
    bitcode = _optimised(name, level, tmp_path)
    ours = _recorded(name, bitcode, tmp_path)
    theirs = _observed(name, bitcode, tmp_path)
    assert sum(theirs.values()) > 10
    differing = {key: (ours[key], theirs[key]) for key in ours.keys() | theirs.keys() if ours[key] != theirs[key]}
    assert not differing, "(line, kind, size): (recorded, observed)"


def _clang(name: str) -> list[str]:
    from tracekit.recorder.toolchain import find_clang

    return [find_clang().path, *(["--driver-mode=g++", "-std=c++17"] if name.endswith(".cpp") else [])]


def _optimised(name: str, level: int, folder: Path) -> Path:
    """The program as optimised LLVM IR with debug information."""
    bitcode = folder / f"{Path(name).stem}.bc"
    flags = [f"-O{level}", "-g", "-w", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops"]
    libraries = [flag for flag in build_flags(FIXTURES / name) if not flag.startswith("-l")]
    outcome = run([*_clang(name), *flags, *libraries, "-emit-llvm", "-c", FIXTURES / name, "-o", bitcode])
    assert outcome.status == 0, outcome.stderr.decode()
    return bitcode


def _link_flags(name: str) -> list[str]:
    return ["-O0", "-no-pie", *build_flags(FIXTURES / name), *(["-lstdc++"] if name.endswith(".cpp") else [])]


def _recorded(name: str, bitcode: Path, folder: Path) -> Counts:
    program = compile_program([bitcode], folder / "recorded", _link_flags(name), instrumented=True)
    recording = record(program)
    assert recording.outcome.status < 128, "a signal ended the program"
    counts: Counter[tuple[int, int, int]] = Counter()
    with opened(recording.trace) as (made, replay):
        for batch in replay.batches():
            counts.update(zip(batch.kind.tolist(), batch.subject.tolist(), batch.size.tolist()))
        found: Counts = Counter()
        for (kind, subject, size), count in counts.items():
            if kind not in (CODE["load"], CODE["store"]) or subject == NONE or size not in SIZES:
                continue
            op = made.ops[subject]
            if op["kind"] not in (OpKind.LOAD, OpKind.STORE) or op["flags"] & OpFlag.LIBRARY:
                continue
            place = made.instruction(subject)
            line = 0 if place.get("nearby") else place["line"]  # the observer knows no line nearby
            if line == 0 or Path(place["file"]).name == name:
                found[line, "L" if kind == CODE["load"] else "S", size] += count
    return found


def _observed(name: str, bitcode: Path, folder: Path) -> Counts:
    """What the instrumentation of clang counts; addresses become lines by llvm-symbolizer or addr2line."""
    program, helper, report = folder / "observed", folder / "observer.o", folder / "report"
    subject = folder / "subject.o"
    coverage = "-fsanitize-coverage=func,trace-loads,trace-stores"
    for command in (
        [*_clang("observer.c"), "-O2", "-c", Path(__file__).with_name("observer.c"), "-o", helper],
        [*_clang(name), "-w", coverage, *_link_flags(name), "-c", bitcode, "-o", subject],
        [*_clang(name), "-w", subject, helper, *_link_flags(name), "-o", program],  # without clang's own runtime
    ):
        outcome = run(command)
        assert outcome.status == 0, outcome.stderr.decode()
    subprocess.run(
        [program],
        env={**os.environ, "TRACEKIT_OBSERVER": str(report)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    rows = [line.split() for line in report.read_text().splitlines()]
    places = _places(program, [int(row[0], 16) - 1 for row in rows])
    found: Counts = Counter()
    for (_, kind, size, count), (file, line) in zip(rows, places):
        if line == 0 or file == name:
            found[line, kind, int(size)] += int(count)
    return found


def _places(program: Path, addresses: list[int]) -> list[tuple[str, int]]:
    """File name and line of each address, of the innermost inlined function."""
    addr2line = shutil.which("addr2line")
    assert addr2line is not None, "addr2line is missing: apt-get install binutils"
    words = "\n".join(f"{address:x}" for address in addresses)
    answer = run([addr2line, "-e", program], words.encode()).stdout.decode().splitlines()
    assert len(answer) == len(addresses)
    places = []
    for text in answer:
        path, _, line = text.split(" (discriminator")[0].rpartition(":")
        places.append((Path(path).name, int(line) if line.isdecimal() else 0))
    return places
