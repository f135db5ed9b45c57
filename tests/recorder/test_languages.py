"""Rust and Fortran, as docs/building-programs.md shows; skipped where the compiler is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import tracekit
from tests import needs, prepared
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, read, record

SOURCES = ROOT / "fixtures/languages"
SECONDS = 300


def _run(*command: object) -> str:
    run = prepared.run(
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


def rust_program(source: Path, folder: Path, options: Sequence[str] = ()) -> Path:
    """A program of Rust; its library left as it is, which takes a while to compile."""
    program = folder / source.stem
    own = {**ENVIRONMENT, "TRACEKIT_RUSTC": needs.rustc()}
    command = [*TRACEKIT, "rustc", "--plain-std", "-O", "-g", *options, source, "-o", program]
    run = prepared.run(
        [str(word) for word in command], env=own, cwd=folder, capture_output=True, text=True, timeout=SECONDS
    )
    assert run.returncode == 0, run.stderr
    return program


@needs.needs("rustc")
@pytest.mark.parametrize("mangling", [(), ("-C", "symbol-mangling-version=v0")])  # the compiler's own, and the newer
def test_rust(mangling: Sequence[str], tmp_path: Path) -> None:
    program = rust_program(SOURCES / "primes.rs", tmp_path, mangling)
    assert recorded(tmp_path, program) == ["669 primes, 126 twins", "true"]
    records = read(tmp_path / "trace.zst")
    assert any("sieve" in found.name for found in records) and any("gaps" in found.name for found in records)
    with tracekit.open(tmp_path / "trace.zst") as trace:
        names = {trace.program.function_name(row) for row in range(len(trace.program.functions))}
    assert {"primes::sieve", "primes::gaps", "primes::main"} <= names
    assert "core::ptr::drop_in_place<alloc::vec::Vec<bool>>" in {name.replace("::<", "<") for name in names}
    allocated = {found.words[2] for found in records if found.name == "heap_alloc"}
    assert 5001 in allocated  # vec![false; 5001]


@needs.needs("rustc")
def test_fields_of_structures_in_rust(tmp_path: Path) -> None:
    """By the types of variables: of a vector's elements, of boxed nodes, of the variants of an enumeration."""
    program = rust_program(ROOT / "fixtures/layout/particles.rs", tmp_path)
    assert recorded(tmp_path, program) == ["79.5 12 5 44962522500"]
    rows = tracekit.analyze(tmp_path / "trace.zst", "layout", min_share=0).result["structures"]
    fields = {
        row["type"]: {field["field"]: (field["type"], field["loads"], field["stores"]) for field in row["fields"]}
        for row in rows
    }
    particle, node, shape = fields["Particle"], fields["Node"], fields["Shape"]
    assert list(particle) == ["x", "v", "id", "born", "name"]  # as the compiler orders them
    assert particle["v"][:2] == ("f64", 200_000) and particle["x"][1] >= 200_000 and particle["id"][1] == 1
    assert node["key"][0] == "u64" and node["left"][0] == node["right"][0] == "Option<Box<Node>>"
    assert node["key"][1] > node["right"][1] > 100_000 and node["payload"] == ("u64[6]", 0, 0)
    assert shape["(variant)"][1:] == (15_000, 3000) and shape["Box.height"][1:] == (10_000, 3000)
    (advice,) = [row["advice"] for row in rows if row["type"] == "Particle"]
    assert advice[0]["keep"] == ["x", "v"]


ROADS = """
use std::marker::PhantomData;
pub enum Road { Paved { metres: u32, lanes: u8 }, Dirt(u32) }
pub struct Edge<T> { weight: Road, to: u64, of: PhantomData<T> }

#[inline(never)]
fn cost(edges: &[Edge<u8>]) -> u64 {
    let mut sum = 0;
    for edge in edges {
        sum += edge.to + match &edge.weight {
            Road::Paved { metres, lanes } => metres * *lanes as u32,
            Road::Dirt(metres) => *metres,
        } as u64;
    }
    sum
}

#[inline(never)]
fn large(n: usize) -> usize { let mut a = [n; 4000]; a[n] = std::env::args().count(); a.iter().sum() }

fn main() {
    let edges: Vec<Edge<u8>> = (0..1000)
        .map(|i| if i % 4 == 0 { Road::Dirt(i) } else { Road::Paved { metres: i, lanes: 2 } })
        .map(|weight| Edge { weight, to: 1, of: PhantomData })
        .collect();
    println!("{} {}", cost(&edges), large(3));
}
"""


@needs.needs("rustc")
def test_a_small_enumeration_of_rust_has_fields_and_a_marker_has_none(tmp_path: Path) -> None:
    """Eight bytes without a pointer; and a frame of 32,000 bytes, for which rustc calls __rust_probestack."""
    (tmp_path / "roads.rs").write_text(ROADS)
    assert recorded(tmp_path, rust_program(tmp_path / "roads.rs", tmp_path)) == ["875500 11998"]
    rows = tracekit.analyze(tmp_path / "trace.zst", "layout", min_share=0).result["structures"]
    (edge,) = [row for row in rows if row["type"].startswith("Edge<")]
    loads = {field["field"]: field["loads"] for field in edge["fields"]}
    assert set(loads) == {"weight.(variant)", "weight.Paved.lanes", "weight.Paved.metres, weight.Dirt.__0", "to"}
    assert (loads["weight.(variant)"], loads["weight.Paved.lanes"], loads["to"]) == (1000, 750, 1000)


def fortran_program(source: Path, folder: Path, level: str) -> Path:
    """A program of Fortran."""
    program = folder / source.stem
    _run(*TRACEKIT, "fc", level, "-g", "-J", folder, source, "-o", program)
    return program


LEVELS = pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])


@needs.needs("flang")
@LEVELS
def test_components_of_derived_types_in_fortran(level: str, tmp_path: Path) -> None:
    """By the tables that flang writes for its runtime."""
    program = fortran_program(ROOT / "fixtures/layout/bodies.f90", tmp_path, level)
    assert recorded(tmp_path, program) == ["      78.250    10010000      28.000"]
    rows = tracekit.analyze(tmp_path / "trace.zst", "layout", min_share=0).result["structures"]
    (body,) = (row for row in rows if row["type"] == "body" and row["group"]["kind"] == "heap")
    assert [(field["field"], field["type"], field["offset"], field["size"]) for field in body["fields"]] == [
        ("x", "real(8)", 0, 8),
        ("v", "real(8)", 8, 8),
        ("name", "character(32)", 16, 32),
        ("id", "integer(8)", 48, 8),
        ("born", "integer(8)", 56, 8),
    ]
    assert body["array"] and body["unseen"] == ["born"] and body["advice"][0]["keep"] == ["x", "v"]
    cells = {field["field"]: field["type"] for row in rows if row["type"] == "cell" for field in row["fields"]}
    whole = {"value": "integer(4)", "weight": "real(8)[6]", "next": "type(cell), pointer"}
    assert cells == whole


@needs.needs("flang")
def test_fortran(tmp_path: Path) -> None:
    program = fortran_program(SOURCES / "heat.f90", tmp_path, "-O2")
    assert recorded(tmp_path, program) == ["12428.919811"]
    records = read(tmp_path / "trace.zst")
    allocated = [found.words[2] for found in records if found.name == "heap_alloc"]
    assert allocated.count(40 * 40 * 8) == 2


ROWS = """
module rows
contains
  real(8) function smooth(row)
    real(8), intent(inout) :: row(:)
    integer :: i
    do i = 1, size(row)
      row(i) = mod(row(i), 7.5d0) + exponent(row(i))
    end do
    smooth = weight(row)
  end function
  real(8) function weight(packed)
    real(8), intent(in), contiguous :: packed(:)
    weight = packed(1) * size(packed)
  end function
end module
program main
  use rows
  real(8) :: grid(8, 40), of(40)
  real(8), pointer :: all(:, :)
  integer :: j
  allocate(all(8, 40))
  all = 9.25d0
  do j = 1, 40
    of(j) = smooth(all(:, j))
  end do
  print '(F0.2)', sum(of)
end program
"""


CALLS_OF_ROWS = 1 + ROWS.split("\n").index("  do j = 1, 40")


@needs.needs("flang")
@LEVELS
def test_arithmetic_and_inquiries_of_fortran_are_in_nobodys_way(level: str, tmp_path: Path) -> None:
    (tmp_path / "rows.f90").write_text(ROWS)
    recorded(tmp_path, fortran_program(tmp_path / "rows.f90", tmp_path, level))
    loops = tracekit.analyze(tmp_path / "trace.zst", "advise", min_share=0, top=0).result["loops"]
    (over_rows,) = [loop for loop in loops if loop["loop"]["line"] == CALLS_OF_ROWS]
    assert over_rows["verdict"] in ("doall", "doall-with"), over_rows


SUMS = """
subroutine add_up(counts)
  integer, intent(inout) :: counts(:)
  integer :: i
  do i = 2, size(counts)
    counts(i) = counts(i) + counts(i - 1)
  end do
end subroutine
program main
  interface
    subroutine add_up(counts)
      integer, intent(inout) :: counts(:)
    end subroutine
  end interface
  integer :: counts(16), i
  do i = 1, 16
    counts(i) = i
  end do
  call add_up(counts)
  print '(I0)', counts(16)
end program
"""


@needs.needs("flang")
@LEVELS
def test_loops_of_fortran_are_those_of_the_source(level: str, tmp_path: Path) -> None:
    """flang -O1 alone unrolls this one and keeps the last sum in a register: 3 iterations, and no dependence."""
    (tmp_path / "sums.f90").write_text(SUMS)
    assert recorded(tmp_path, fortran_program(tmp_path / "sums.f90", tmp_path, level)) == ["136"]
    result = tracekit.analyze(tmp_path / "trace.zst", "camp").result
    (loop,) = [loop for loop in result["loops"] if loop["loop"]["line"] == 5]
    assert loop["iterations"] == 15
    carried = [
        (row["kind"], row["count"])
        for row in result["dependences"]
        if any(level["inter"] and level["loop"]["line"] == 5 for level in row["levels"])
    ]
    assert carried == [("RAW", 14)]
