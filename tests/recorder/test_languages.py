"""Rust and Fortran through LLVM bitcode, as docs/building-programs.md shows; skipped where the compiler is missing."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import tracekit
from tests import needs
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, read, record

SOURCES = ROOT / "fixtures/languages"
SECONDS = 300


def _run(*command: object) -> str:
    run = subprocess.run(
        [str(word) for word in command], env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def recorded(folder: Path, program: Path) -> list[str]:
    """Record a program, which must print what it prints natively; check the trace; its output's lines."""
    native = _run(program)
    run = record(folder, program)
    assert (run.stdout, run.returncode) == (native, 0), run.stderr
    _run(*TRACEKIT, "check", folder / "trace.zst")
    return native.splitlines()


@needs.needs("rustc")
@pytest.mark.parametrize("mangling", [(), ("-C", "symbol-mangling-version=v0")])  # the compiler's own, and the newer
def test_rust(mangling: Sequence[str], tmp_path: Path) -> None:
    rustc = needs.rustc()
    bitcode, program = tmp_path / "primes.bc", tmp_path / "primes"
    _run(
        rustc,
        "-C",
        "prefer-dynamic",
        "-C",
        "opt-level=1",
        "-C",
        "no-prepopulate-passes",
        "-C",
        "codegen-units=1",
        *mangling,
        "-g",
        "--emit=llvm-bc",
        SOURCES / "primes.rs",
        "-o",
        bitcode,
    )
    folder = Path(_run(rustc, "--print", "target-libdir").strip())
    (library,) = folder.glob("libstd-*.so")
    _run(*TRACEKIT, "cc", "-w", "-O2", bitcode, library, f"-Wl,-rpath,{folder}", "-o", program)
    assert recorded(tmp_path, program) == ["669 primes, 126 twins", "true"]
    records = read(tmp_path / "trace.zst")
    assert any("sieve" in found.name for found in records) and any("gaps" in found.name for found in records)
    with tracekit.open(tmp_path / "trace.zst") as trace:
        names = {trace.program.function_name(row) for row in range(len(trace.program.functions))}
    assert {"primes::sieve", "primes::gaps", "primes::main"} <= names
    assert "core::ptr::drop_in_place<alloc::vec::Vec<bool>>" in {name.replace("::<", "<") for name in names}
    allocated = {found.words[2] for found in records if found.name == "heap_alloc"}
    assert 5001 in allocated  # vec![false; 5001]


@needs.needs("flang")
def test_fortran(tmp_path: Path) -> None:
    flang = needs.flang()
    bitcode, program = tmp_path / "heat.bc", tmp_path / "heat"
    _run(flang, "-O1", "-g", "-c", "-emit-llvm", SOURCES / "heat.f90", "-o", bitcode)
    libraries = Path(flang).parents[1] / "lib"
    _run(
        *TRACEKIT,
        "cc",
        "-w",
        "-O2",
        bitcode,
        f"-L{libraries}",
        "-lFortranRuntime",
        "-lFortranDecimal",
        "-lm",
        "-o",
        program,
    )
    assert recorded(tmp_path, program) == ["12428.919811"]
    records = read(tmp_path / "trace.zst")
    allocated = [found.words[2] for found in records if found.name == "heap_alloc"]
    assert allocated.count(40 * 40 * 8) == 2
