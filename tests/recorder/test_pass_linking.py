"""Instrumented object files under every kind of link: what a program keeps of them, and that it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import clang_folder, needs, require
from tests.recorder.instrumented import HARNESS, Run, Tables, clang, run, units
from tests.recorder.stream_rules import check_stream
from tracekit.recorder.toolchain import RUNTIME_SOURCES

HEADER = """
template <typename T> struct Counter { static inline int made = 0; T value; Counter(T v) : value(v) { made++; }
    virtual ~Counter() {} virtual T twice() const { return value + value; } };
inline int shared(int n) { static int calls; calls++; return n < 2 ? n : shared(n - 1) + shared(n - 2); }
"""
# `weights` may be one with its equals in other files, as its address does not matter.
MAIN = """
#include <stdio.h>
#include "shared.h"
int other(int); int unused_at_all(int n) { return n * 3; }
static const double weights[4] = {1, 1.5, 2, 2.5};
double weight(int n) { return weights[n & 3]; }
int main() { Counter<int> c(4); const Counter<int> &r = c;
    printf("%d %d %d %d\\n", shared(10), other(10), r.twice(), Counter<int>::made); }
"""
OTHER = """
#include "shared.h"
int other(int n) { Counter<int> *c = new Counter<int>(n); int r = c->twice() + shared(n); delete c; return r; }
int also_unused(int n) { return shared(n); }
"""
OUTPUT = "55 75 8 2\n"


class Sources:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shared.h").write_text(HEADER)
        (folder / "main.cpp").write_text(MAIN)
        (folder / "other.cpp").write_text(OTHER)
        clang(["-O1", "-fPIC", "-I", RUNTIME_SOURCES, "-c", HARNESS, "-o", folder / "harness.o"], instrument=False)

    def compile(self, *flags: str) -> list[Path]:
        objects = []
        for name in ("main", "other"):
            objects.append(self.folder / f"{name}.o")
            clang([*flags, "-g", "-c", self.folder / f"{name}.cpp", "-o", objects[-1]], cxx=True)
        return objects

    def link(self, *arguments: object) -> Run:
        clang([*arguments, self.folder / "harness.o", "-o", self.folder / "program"], instrument=False, cxx=True)
        return run(self.folder / "program")


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path)


def functions_of(result: Run) -> set[str]:
    return {record.function["name"] for record in result.records}


def check(result: Run) -> None:
    assert result.output == OUTPUT
    check_stream(result.records)
    assert {"main", "_Z5otheri", "_Z6sharedi", "_ZNK7CounterIiE5twiceEv"} <= functions_of(result)
    assert "_ZN7CounterIiE4madeE" in result.globals


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("-fno-pie", "-no-pie"),
        ("-fPIC", "-pie"),
        ("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"),
        ("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,-z,start-stop-gc"),
        ("-static",),
        ("-fuse-ld=gold", "-ffunction-sections", "-Wl,--gc-sections", "-Wl,--icf=all"),
        ("-fuse-ld=lld", "-ffunction-sections", "-Wl,--gc-sections", "-Wl,--icf=all"),
    ],
    ids=" ".join,
)
def test_executables(level: str, flags: tuple[str, ...], sources: Sources) -> None:
    for linker in ("gold", "lld"):
        if f"-fuse-ld={linker}" in flags:
            require(linker)
    compile_only = [flag for flag in flags if flag.startswith("-f") and "ld" not in flag]
    check(sources.link(*sources.compile(level, *compile_only, "-fno-inline"), *flags))


def test_unused_functions_are_collected(sources: Sources) -> None:
    objects = sources.compile("-O2", "-ffunction-sections", "-fdata-sections", "-fno-inline")
    check(sources.link(*objects, "-Wl,--gc-sections", "-Wl,-z,start-stop-gc"))
    symbols = subprocess.run(["nm", sources.folder / "program"], capture_output=True, text=True, check=True).stdout
    assert "also_unused" not in symbols


def test_no_array_of_the_program_stands_between_ids(sources: Sources) -> None:
    # Ids in .bss.* were as far apart as the arrays of the files between: more path numbers than a reader believes.
    with (sources.folder / "main.cpp").open("a") as file:
        file.write("char array[1 << 26];\n")
    main, other = sources.compile("-O1", "-fno-inline")
    check(sources.link(other, main))
    done = subprocess.run(["readelf", "-SW", sources.folder / "program"], capture_output=True, text=True, check=True)
    [section] = [line.partition("]")[2].split() for line in done.stdout.splitlines() if " tk_ids " in line]
    assert 0 < int(section[4], 16) < 1 << 12  # columns: name, type, address, offset, size


def test_relocatable_link(sources: Sources) -> None:
    objects = sources.compile("-O1", "-fno-inline")
    clang(["-r", "-nostdlib", *objects, "-o", sources.folder / "both.o"], instrument=False)
    assert len(units(sources.folder / "both.o")) == 2
    check(sources.link(sources.folder / "both.o"))


def test_shared_library(sources: Sources) -> None:
    main, other = sources.compile("-O1", "-fPIC", "-fno-inline")
    folder = sources.folder
    runtime, library = folder / "image_runtime.o", folder / "libother.so"
    clang(["-O1", "-fPIC", "-c", Path(RUNTIME_SOURCES, "image_runtime.c"), "-o", runtime], instrument=False)
    clang(["-shared", other, runtime, "-o", library], instrument=False, cxx=True)
    clang([main, library, runtime, f"-Wl,-rpath,{folder}", "-o", folder / "program"], instrument=False, cxx=True)
    done = subprocess.run([folder / "program"], capture_output=True, text=True, check=True)
    assert done.stdout == OUTPUT
    relocations = subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout
    assert "TPOFF64" in relocations  # initial-exec: one position for all images


@needs("llvm tools")
def test_link_time_optimisation(sources: Sources, tmp_path: Path) -> None:
    linker = clang_folder() / "bin/llvm-link"
    for kind in ("-flto", "-flto=thin"):
        objects = sources.compile("-O2", kind, "-fno-inline")
        merged = tmp_path / "merged.bc"
        subprocess.run([linker, *objects, "-o", merged], check=True)
        # The pass is loaded again for the merged module, and must leave it alone.
        clang(["-O2", "-c", merged, "-o", tmp_path / "merged.o"])
        assert len(units(tmp_path / "merged.o")) == 2
        check(sources.link(tmp_path / "merged.o"))


@needs("lto plugin")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("kind", ["-flto", "-flto=thin"])
@pytest.mark.parametrize("collect", [(), ("-Wl,--gc-sections", "-Wl,-z,start-stop-gc")], ids=["", "gc"])
def test_the_linker_deletes_functions(level: str, kind: str, collect: tuple[str, ...], sources: Sources) -> None:
    check(sources.link(*sources.compile(level, kind, "-fno-inline"), kind, level, *collect))
    symbols = subprocess.run(["nm", sources.folder / "program"], capture_output=True, text=True, check=True).stdout
    assert "also_unused" not in symbols


@pytest.mark.parametrize("at", ["source", "machine"])
def test_the_optimiser_deletes_an_instrumented_function(at: str, tmp_path: Path) -> None:
    # __builtin_constant_p is decided behind the pass, and the only call of slow() with it.
    source = tmp_path / "a.c"
    source.write_text(
        "static __attribute__((noinline)) int slow(int *p) { return p[0] + p[1]; }"
        "int quick(int *p, int n) { return __builtin_constant_p(n) ? slow(p) : p[n]; }"
    )
    clang(["-O2", "-c", source, "-o", tmp_path / "a.o"], options=f"at={at}")
    symbols = subprocess.run(["nm", tmp_path / "a.o"], capture_output=True, text=True, check=True).stdout
    assert "quick" in symbols and "slow" not in symbols


@pytest.mark.parametrize("kind", ["-S", "-c"])
def test_llvm_ir_is_instrumented_once(kind: str, tmp_path: Path) -> None:
    source, once, twice = tmp_path / "a.c", tmp_path / "a.ll", tmp_path / "b.o"
    once = once if kind == "-S" else tmp_path / "a.bc"
    source.write_text("int f(int *p) { return *p; }")
    clang(["-O1", "-emit-llvm", kind, source, "-o", once])
    clang(["-O1", "-c", once, "-o", twice])
    (unit,) = units(twice)
    assert len(unit.tables["ops"]) == 1


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "other.cpp"
    (tmp_path / "shared.h").write_text(HEADER)
    source.write_text(OTHER)
    objects = []
    for name in ("one.o", "two.o"):
        clang(["-O2", "-g", "-c", source, "-o", tmp_path / name], cxx=True)
        objects.append((tmp_path / name).read_bytes())
    assert objects[0] == objects[1]


def test_what_is_skipped(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("""
__attribute__((naked)) void naked(void) { __asm__("ret"); }
__attribute__((disable_sanitizer_instrumentation)) int asked(int *p) { return *p; }
static int chosen(int *p) { return *p; } static void *resolve(void) { return chosen; }
int dispatched(int *p) __attribute__((ifunc("resolve")));
void *memcpy(void *a, const void *b, unsigned long n) { for (char *p = a; n--;) *p++ = 0; return a; }
extern inline __attribute__((gnu_inline)) int elsewhere(int *p) { return *p; }
int use(int *p) { return elsewhere(p); }
""")
    for level in ("-O0", "-O1"):
        clang([level, "-fno-inline", "-fno-builtin", "-c", source, "-o", tmp_path / "a.o"])
        (unit,) = units(tmp_path / "a.o")
        names = {row["name"] for row in Tables(unit)["functions"]}
        assert names == {"chosen", "use"}
