"""`tracekit fc` in builds of Fortran; what it records is looked at in test_languages.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT
from tracekit.formats.errors import TracekitError
from tracekit.recorder import toolchain
from tracekit.recorder.toolchain import Clang

FC = [*TRACEKIT, "fc"]

SOURCES = {
    "rows.f90": """
        module rows
        contains
          subroutine fill(a, n)
            integer, intent(in) :: n
            real(8), intent(out) :: a(n)
            integer :: i
            do i = 1, n
              a(i) = i * 0.5d0
            end do
          end subroutine
        end module
    """,
    "main.F90": """
        program main
          use rows
          use iso_c_binding
          interface
            real(c_double) function total(a, n) bind(c)
              import
              real(c_double) :: a(*)
              integer(c_int), value :: n
            end function
          end interface
          real(8) :: a(LENGTH)
          call fill(a, LENGTH)
          print '(F0.1)', total(a, LENGTH)
        end program
    """,
    "part.c": "double total(double *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }\n",
    "old.f": "      program old\n      print '(F0.1)', 2525.0\n      end\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*words: object, cwd: Path, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**ENVIRONMENT, **environment}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done


def instrumented(path: Path) -> bool:
    return "tk_functions" in run("readelf", "-SW", path, cwd=path.parent).stdout


@needs("flang")
@pytest.mark.parametrize(
    "options", [["-O0"], ["-O2", "-g"], ["-O3", "-J", "modules"], ["-O1", "-static"]], ids=" ".join
)
def test_one_step_in_three_languages(project: Path, options: list[str]) -> None:
    (project / "modules").mkdir()
    run(*FC, *options, "-cpp", "-DLENGTH=100", "rows.f90", "main.F90", "part.c", "-lm", "-o", "app", cwd=project)
    assert run("./app", cwd=project).stdout == "2525.0\n"
    assert instrumented(project / "app")
    assert (project / ("modules/rows.mod" if "-J" in options else "rows.mod")).exists()
    assert not list(project.glob("*.o")) and not list(project.glob("*.bc"))


@needs("flang")
def test_separate_compilation_archives_and_libraries(project: Path) -> None:
    unused = ["-L.", "-lm", "-Wl,--as-needed", "-rdynamic", "-I."]
    made = run(*FC, "-O2", "-c", "rows.f90", "main.F90", "part.c", "-DLENGTH=100", "-fPIC", *unused, cwd=project)
    assert made.stderr == ""
    assert {path.name for path in project.glob("*.o")} == {"rows.o", "main.o", "part.o"}
    assert all(instrumented(path) for path in project.glob("*.o"))
    run("ar", "rcs", "librows.a", "rows.o", cwd=project)
    run(*FC, "main.o", "part.o", "-L.", "-lrows", "-o", "app", cwd=project)
    assert run("./app", cwd=project).stdout == "2525.0\n"
    run(*FC, "-c", "rows.f90", "-o", "other.o", cwd=project)
    run(*FC, "-S", "rows.f90", cwd=project)
    assert instrumented(project / "other.o") and "tk_functions" in (project / "rows.s").read_text()
    run(*FC, "-shared", "-fPIC", "rows.f90", "-o", "librows.so", cwd=project)
    assert instrumented(project / "librows.so")


@needs("flang")
def test_fixed_form_and_a_language_that_is_said(project: Path) -> None:
    (project / "source").write_text(SOURCES["old.f"])
    run(*FC, "old.f", "-o", "app", cwd=project)
    assert run("./app", cwd=project).stdout == "2525.0\n"
    run(*FC, "-ffixed-form", "-x", "f95", "source", "-x", "none", "-o", "app", cwd=project)
    assert run("./app", cwd=project).stdout == "2525.0\n"


@needs("flang")
def test_what_compiles_nothing_is_flangs_own(project: Path) -> None:
    assert "flang" in run(*FC, "--version", cwd=project).stdout
    assert "fill(a, 100" in run(*FC, "-E", "-DLENGTH=100", "main.F90", cwd=project).stdout
    run(*FC, "-fsyntax-only", "rows.f90", cwd=project)
    assert not list(project.glob("*.o"))


@needs("flang")
def test_messages_and_statuses(project: Path) -> None:
    (project / "bad.f90").write_text("program p\n  x =\nend\n")
    assert "bad.f90:2:" in run(*FC, "bad.f90", cwd=project, status=1).stderr
    assert "no such file" in run(*FC, "-c", "none.f90", cwd=project, status=1).stderr
    assert "none/a.o" in run(*FC, "-c", "rows.f90", "-o", "none/a.o", cwd=project, status=1).stderr
    assert "--at takes one of" in run(*FC, "--at=home", "rows.f90", cwd=project, status=1).stderr
    refused = run(*FC, "--path-prefix-map", "/a=/b", "-c", "rows.f90", cwd=project, status=1).stderr
    assert refused == "tracekit: --path-prefix-map is for C and C++: flang has nothing like it\n"
    assert "Usage: tracekit fc" in run(*FC, cwd=project, status=1).stderr
    assert "--at=source" in run(*FC, "--help", cwd=project).stdout


@needs("flang")
def test_types_are_there_for_functions_that_are_intercepted(project: Path) -> None:
    for option, there in (["--at=source", False], ["--intercept=fill_", True]):
        run(*FC, option, "-c", "rows.f90", cwd=project)
        shown = run("readelf", "--debug-dump=info", "rows.o", cwd=project).stdout
        assert ("DW_TAG_formal_parameter" in shown) == there


@needs("flang")
@needs("cmake")
def test_cmake(project: Path) -> None:
    folder = project / "bin"
    folder.mkdir()
    for name, module, entry in (("fc", "fortran", "main_fc"), ("cc", "driver", "main_cc")):
        path = folder / f"tracekit-{name}"
        path.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            f"from tracekit.recorder.{module} import {entry}\nsys.exit({entry}())\n"
        )
        path.chmod(0o755)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(app Fortran C)\nadd_definitions(-DLENGTH=100)\n"
        "add_library(rows STATIC rows.f90)\nadd_executable(app main.F90 part.c)\ntarget_link_libraries(app rows)\n"
    )
    compilers = [f"-DCMAKE_Fortran_COMPILER={folder}/tracekit-fc", f"-DCMAKE_C_COMPILER={folder}/tracekit-cc"]
    run("cmake", "-B", "build", *compilers, cwd=project)
    run("cmake", "--build", "build", cwd=project)
    assert run("build/app", cwd=project).stdout == "2525.0\n"
    assert instrumented(project / "build/app") and instrumented(project / "build/librows.a")


# -- which flang ------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of its own, and a cache."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH'].split(':')[-1]}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_FLANG", raising=False)
    return tmp_path


def flang(folder: Path, name: str, says: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


def test_the_flang_of_clangs_version_is_taken(machine: Path) -> None:
    clang = Clang(str(machine / "clang-77"), "77.1.0")
    flang(machine, "flang-new-77", "Debian flang-new version 76.1.7 (3)")
    with pytest.raises(TracekitError, match="apt-get install flang-77"):
        toolchain.find_flang(clang)
    right = flang(machine, "flang-77", "Debian flang version 77.1.7 (3)")
    assert toolchain.find_flang(clang) == right
    beside = flang(machine, "flang", "flang-new version 77.1.0")
    assert toolchain.find_flang(clang) == beside


def test_a_chosen_flang_must_write_what_clang_can_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = Clang(str(machine / "clang-77"), "77.1.0")
    older, newer = (flang(machine, f"flang-{n}", f"flang version {n}.1.0") for n in (76, 78))
    monkeypatch.setenv("TRACEKIT_FLANG", older)
    assert toolchain.find_flang(clang) == older
    monkeypatch.setenv("TRACEKIT_FLANG", newer)
    with pytest.raises(TracekitError, match=r"flang 78\.1\.0, whose code clang 77\.1\.0 cannot read"):
        toolchain.find_flang(clang)
    monkeypatch.setenv("TRACEKIT_FLANG", "no-flang")
    with pytest.raises(TracekitError, match="TRACEKIT_FLANG names no-flang"):
        toolchain.find_flang(clang)
