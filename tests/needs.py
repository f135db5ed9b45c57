"""What some tests need beside the Python packages: programs and libraries that come as packages of the system.

A test says so with ``@needs("cmake")``, or with ``require("cmake")`` where only its body knows. Where that is not
there, the test is skipped and tests/conftest.py lists it with the command that brings it. ``make test`` asks first for
what is missing, by ``python -m tests.needs``, and installs it where it may.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.recorder.rust import clang_for, find_rustc
from tracekit.recorder.toolchain import PREFERRED, VERSIONS, Clang, find_clang, find_flang, llvm_config, which

REASON = "without the package "
"""How the reason of a skipped test begins, if a package would help."""


class Need(NamedTuple):
    """Something that a test needs."""

    packages: str
    """The names that it has in Debian, with spaces between."""
    is_there: Callable[[], object]

    def __str__(self) -> str:
        return self.packages


# -- what is there ---------------------------------------------------------------------------------


@cache
def clang_folder() -> Path:
    """The folder of the LLVM that clang belongs to, as /usr/lib/llvm-19; where it would be if there is no clang."""
    try:
        return Path(os.path.realpath(find_clang().path)).parents[1]
    except TracekitError:
        return Path(f"/usr/lib/llvm-{PREFERRED}")


@cache
def clang_major() -> int:
    """The version of the clang to test with; the preferred one if there is none."""
    try:
        return find_clang().major
    except TracekitError:
        return PREFERRED


def _program(*names: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(name) for name in names)


def _beside_clang(*paths: str) -> Callable[[], bool]:
    """Any of these files of clang's LLVM."""
    return lambda: any((clang_folder() / path).exists() for path in paths)


@cache
def rustc() -> str:
    """A rustc whose bitcode a clang here can read, Debian's if it is there; empty if there is none."""
    for name in filter(None, (os.environ.get("RUSTC"), "/usr/bin/rustc", "rustc")):
        try:
            found = find_rustc(name)
            clang_for(found)
        except TracekitError:
            continue
        return found.path
    return ""


def cargo() -> str:
    """The cargo that belongs to that rustc, empty if there is none."""
    beside = os.path.join(os.path.dirname(rustc()), "cargo")
    return beside if rustc() and os.path.exists(beside) else ""


@cache
def flang() -> str:
    """The flang that belongs to our clang, empty if there is none."""
    try:
        return find_flang(find_clang())
    except TracekitError:
        return ""


def other_clang(major: int) -> str:
    """A clang of that version with the headers that the pass needs, empty if there is none."""
    path = which(f"clang-{major}")
    try:
        return path if path and llvm_config(Clang(path, f"{major}.0.0")) else ""
    except TracekitError:
        return ""


def _profile_runtime() -> bool:
    """What programs link that clang counts in."""
    return any(clang_folder().glob("lib/clang/*/lib/*/libclang_rt.profile*.a"))


# -- the needs -------------------------------------------------------------------------------------

PPROF_PACKAGE = "golang-github-google-pprof-dev"
PPROF_SCHEMA = Path("/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto")
"""What pprof's own authors say that its files hold."""

OTHER_CLANGS = tuple(major for major in VERSIONS if major != PREFERRED)

NEEDS = {
    "c++filt": Need("binutils", _program("c++filt")),
    "cargo": Need("cargo", cargo),
    "chromium": Need("chromium chromium-driver", _program("chromium", "chromedriver")),
    "cmake": Need("cmake", _program("cmake")),
    "flang": Need(f"flang-{clang_major()}", flang),
    "gcc": Need("g++", _program("gcc", "g++")),
    "go": Need("golang-go", _program("go")),
    "gold": Need("binutils", _program("ld.gold")),
    "graphviz": Need("graphviz", _program("dot")),
    "headers": Need("libc6-dev", Path("/usr/include/stdio.h").is_file),
    "libomp": Need(f"libomp-{clang_major()}-dev", _beside_clang("lib/libomp.so")),
    "lld": Need(f"lld-{clang_major()}", _beside_clang("bin/ld.lld")),
    "lcov": Need("lcov", _program("genhtml")),
    "llvm tools": Need(f"llvm-{clang_major()}", _beside_clang("bin/llvm-link")),
    "lto plugin": Need(f"llvm-{clang_major()}-linker-tools", _beside_clang("lib/LLVMgold.so")),
    "profile runtime": Need(f"libclang-rt-{clang_major()}-dev", _profile_runtime),
    "mpich": Need("mpich libmpich-dev", _program("mpicc.mpich", "mpirun.mpich")),
    "musl": Need("musl-tools", _program("musl-gcc")),
    "openmpi": Need("openmpi-bin libopenmpi-dev", _program("mpicc.openmpi", "mpirun.openmpi")),
    "patch": Need("patch", _program("patch")),
    "protoc": Need(f"protobuf-compiler {PPROF_PACKAGE}", lambda: shutil.which("protoc") and PPROF_SCHEMA.is_file()),
    "rustc": Need("rustc libstd-rust-dev", rustc),
    "valgrind": Need("valgrind", _program("valgrind")),
    "zstd": Need("zstd", _program("zstd")),
    **{
        f"clang-{major}": Need(f"clang-{major} llvm-{major}-dev", partial(other_clang, major)) for major in OTHER_CLANGS
    },
}


@cache
def _is_there(name: str) -> bool:
    return bool(NEEDS[name].is_there())


def needs(name: str) -> pytest.MarkDecorator:
    """Skip what is decorated where `name`, one of NEEDS, is not there."""
    return pytest.mark.skipif(not _is_there(name), reason=f"{REASON}{NEEDS[name]}")


def require(name: str) -> None:
    """Skip the test that runs, likewise."""
    if not _is_there(name):
        pytest.skip(f"{REASON}{NEEDS[name]}")


def packages(chosen: Iterable[Need]) -> str:
    """Their packages, each once."""
    return " ".join(dict.fromkeys(" ".join(need.packages for need in chosen).split()))


if __name__ == "__main__":
    print(packages(need for name, need in NEEDS.items() if not _is_there(name)))
