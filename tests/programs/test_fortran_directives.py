"""Directives for DO constructs: those that a fixture's comments say, and runs of the patched program."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.programs.running import FIXTURES, SECONDS, TRACEKIT, record, run, tracekit
from tests.recorder.recording import ENVIRONMENT
from tracekit.api import analyze

LOOPS = FIXTURES / "advise/do_loops.f90"
LEVELS = ("-O0", "-O2")
THREADS = (1, 2, 5)
WHOLE = "!$omp parallel do"

FIXED = """\
      program fixed
      integer n, i, j
      parameter (n = 40)
      real*8 a(n, n), first_of_all, second_of_all, third_of_all
      real*8 total
      total = 0
      do 20 j = 1, n
        do 10 i = 1, n
          first_of_all = i * 0.5d0
          second_of_all = first_of_all + j
          third_of_all = second_of_all * 2
          a(i, j) = third_of_all - first_of_all
          total = total + a(i, j)
   10   continue
   20 continue
      print '(2F14.2)', total, a(3, 4)
      end
"""
FREE = """\
program free
     integer, parameter :: n = 40
     integer :: i, j
     real(8) :: a(n, n), current, second_of_all, third_of_all, total
     total = 0
     !$omp flush
current = 0
     do j = 1, n
     do i = 1, n
current = i * 0.5d0
       second_of_all = &
         current + j
       third_of_all = second_of_all * 2
       a(i, j) = third_of_all - current
       total = total + a(i, j)
     end do
     end do
     print '(2F14.2)', total, a(3, 4)
end program
"""
"""Named as fixed form is, `free.F`: an option says that it is not."""


def compiled(source: Path, program: Path, *words: str) -> Path:
    """Compiled by `tracekit fc`."""
    outcome = run([*TRACEKIT, "fc", "-g", *words, "-J", program.parent, source, "-o", program])
    assert outcome.status == 0, outcome.stderr.decode()
    return program


def expectations() -> dict[int, list[str]]:
    """By line: the clauses of its loop (``-``: none), or parts of reasons why there is no directive."""
    lines = enumerate(LOOPS.read_text().splitlines(), 1)
    return {number: line.split(" ! ")[1].split(" | ") for number, line in lines if " ! " in line and line[0] == " "}


@needs.needs("flang")
@pytest.mark.parametrize("level", LEVELS)
def test_directives_are_those_that_the_comments_say(level: str, tmp_path: Path) -> None:
    made = record(compiled(LOOPS, tmp_path / "loops", level))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row["loop"]["line"], []).append(row)
    assert not [row["loop"] for row in rows if "for statement" in ((row["openmp"] or {}).get("missing") or "")]
    for line, expected in expectations().items():
        for row in found[line]:
            openmp = row["openmp"] or {"pragma": None, "missing": row["verdict"]}
            answer = openmp["pragma"].removeprefix(WHOLE).strip() or "-" if openmp["pragma"] else openmp["missing"]
            if openmp["pragma"]:
                assert answer in expected, f"{line} {level}: {answer}"
            else:
                assert any(part in answer for part in expected), f"{line} {level}: {answer}"


ELSEWHERE = """
subroutine step(j, k, row)
  integer, intent(in) :: j, k
  real(8), intent(inout) :: row(20)
  row(j) = row(j) + k
end subroutine
"""
CALLING = """
program main
  external step
  real(8) :: rows(20, 30)
  integer :: j, k
  rows = 1
  do k = 1, 30
    do j = 1, 20
      call step(j, k, rows(:, k))
    end do
  end do
  print '(F0.1)', sum(rows)
end program
"""


@needs.needs("flang")
@pytest.mark.parametrize("level", LEVELS)
def test_counters_that_a_procedure_of_another_file_is_given(level: str, tmp_path: Path) -> None:
    for name, text in (("step", ELSEWHERE), ("main", CALLING)):
        (tmp_path / f"{name}.f90").write_text(text)
        compiled(tmp_path / f"{name}.f90", tmp_path / f"{name}.o", level, "-c")
    made = record(compiled(tmp_path / "main.o", tmp_path / "loops", str(tmp_path / "step.o")))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found = {row["loop"]["line"]: row["openmp"] for row in rows}
    outer = 1 + CALLING.split("\n").index("  do k = 1, 30")
    assert found[outer]["pragma"] in (f"{WHOLE} private(j)", f"{WHOLE} firstprivate(j)"), found[outer]
    assert found[outer + 1]["pragma"] == WHOLE, found[outer + 1]


SUMS = """\
program sums
  integer, allocatable :: hits(:)
  integer :: i, digit(3000)
  real(8) :: total(3)
  allocate(hits(16))
  hits = 0
  do i = 1, 3000
    digit(i) = 1 + mod(i * 7919, 16)
  end do
  do i = 1, 3000 ! put `!$omp atomic` before the statement that updates it
    hits(digit(i)) = hits(digit(i)) + 1
  end do
  call add(digit, total)
  print *, hits(7), total(2)
contains
  subroutine add(digit, total)
    integer, intent(in) :: digit(3000)
    real(8), intent(out) :: total(3)
    integer :: i
    total = 0
    do i = 1, 3000 ! accumulate in a local variable, which a `reduction` clause can name
      total(2) = total(2) + digit(i)
    end do
  end subroutine
end program
"""


@needs.needs("flang")
@pytest.mark.parametrize("level", LEVELS)
def test_sums_that_no_clause_names(level: str, tmp_path: Path) -> None:
    source = tmp_path / "sums.f90"
    source.write_text(SUMS)
    made = record(compiled(source, tmp_path / "sums", level))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found = {row["loop"]["line"]: (row["openmp"] or {}).get("missing") or "" for row in rows}
    expected = {number: line.split(" ! ")[1] for number, line in enumerate(SUMS.split("\n"), 1) if " ! " in line}
    assert len(expected) == 2
    for line, reason in expected.items():
        assert reason in found[line], f"{line} {level}: {found[line]}"
    assert "argument" in found[max(expected)], found


@needs.needs("flang")
@needs.needs("libomp")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["do_loops.f90", "fixed.f", "free.F"])
def test_patched_programs_print_the_same(name: str, level: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text({LOOPS.name: LOOPS.read_text(), "fixed.f": FIXED, "free.F": FREE}[name])
    form = ["-ffree-form"] if name == "free.F" else []
    made = record(compiled(source, tmp_path / "loops", level, *form))
    patch = tracekit("advise", "--patch", "--source", tmp_path, "--top", "0", "--min-share", "0", made.trace)
    done = subprocess.run(["patch", "-p1"], cwd=tmp_path, input=patch, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    text = source.read_text()
    assert text.count(WHOLE) == (11 if name == LOOPS.name else 1)
    assert name == LOOPS.name or re.search(r"private\([^)]*\bi\b", text)  # that of the outer loop
    assert all(len(line) <= (72 if name == "fixed.f" else 132) for line in text.splitlines() if "$omp" in line)
    flang = needs.flang()
    command = [flang, "-O1", "-fopenmp", *form, source.name, "-o", "patched"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    library = str(Path(flang).parents[1] / "lib")
    for threads in THREADS:
        environment = {**ENVIRONMENT, "OMP_NUM_THREADS": str(threads), "LD_LIBRARY_PATH": library}
        out = subprocess.run(["./patched"], cwd=tmp_path, env=environment, capture_output=True, timeout=SECONDS)
        assert out.stdout == made.outcome.stdout, (threads, out.stderr)
