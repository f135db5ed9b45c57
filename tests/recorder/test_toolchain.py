"""Finding clang and building once into the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.needs import OTHER_CLANGS, other_clang, require
from tracekit.formats.errors import TracekitError
from tracekit.recorder import build_cache, toolchain
from tracekit.recorder.toolchain import Clang


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty cache and nothing on its PATH but the folder returned."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_CLANG", raising=False)
    monkeypatch.setattr(toolchain, "PREFERRED_PATHS", ("clang-19",))
    return folder


def provide(folder: Path, name: str, *lines: str) -> Path:
    """An executable that prints these lines and counts its runs beside itself."""
    path = folder / name
    text = "\n".join(lines)
    path.write_text(f"#!/bin/sh\necho run >> '{path}.runs'\necho '{text}'\n")
    path.chmod(0o755)
    return path


def clang(folder: Path, name: str, version: str) -> Path:
    return provide(folder, name, f"Debian clang version {version} (1)", "Target: x86_64-pc-linux-gnu")


def test_without_clang_the_error_says_what_to_run(machine: Path) -> None:
    with pytest.raises(TracekitError, match="apt-get install clang-19 llvm-19-dev"):
        toolchain.find_clang()


def test_the_preferred_version_comes_first(machine: Path) -> None:
    clang(machine, "clang", "18.1.8")
    preferred = clang(machine, "clang-19", "19.1.7")
    assert toolchain.find_clang() == Clang(str(preferred), "19.1.7")


def test_plain_clang_of_a_fitting_version_is_taken(machine: Path) -> None:
    plain = clang(machine, "clang", "18.1.8")
    assert toolchain.find_clang() == Clang(str(plain), "18.1.8")
    assert toolchain.find_clang().major == 18


def test_a_clang_too_old_is_passed_over(machine: Path) -> None:
    clang(machine, "clang", "14.0.6")
    newer = clang(machine, "clang-16", "16.0.6")
    assert toolchain.find_clang().path == str(newer)


def test_the_environment_decides(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang(machine, "clang-19", "19.1.7")
    chosen = clang(machine, "my-clang", "17.0.1")
    monkeypatch.setenv("TRACEKIT_CLANG", "my-clang")
    assert toolchain.find_clang().path == str(chosen)
    clang(machine, "old-clang", "11.0.1")
    for name, complaint in (("old-clang", "clang 11.0.1"), ("no-clang", "no-clang")):
        monkeypatch.setenv("TRACEKIT_CLANG", name)
        with pytest.raises(TracekitError, match=f"TRACEKIT_CLANG names {complaint}"):
            toolchain.find_clang()


def test_the_version_is_asked_for_once_until_the_file_changes(machine: Path) -> None:
    path = clang(machine, "clang-19", "19.1.7")
    runs = Path(f"{path}.runs")
    for _ in range(3):
        toolchain.find_clang()
    assert runs.read_text() == "run\n"
    clang(machine, "clang-19", "19.1.70")
    assert toolchain.find_clang().version == "19.1.70"


def test_llvm_config_must_be_of_the_same_version_and_have_headers(machine: Path, tmp_path: Path) -> None:
    found = Clang(str(clang(machine, "clang-55", "55.1.0")), "55.1.0")
    headers = tmp_path / "include"
    (headers / "llvm/Config").mkdir(parents=True)
    provide(machine, "llvm-config", "54.0.0", str(headers))
    (headers / "llvm/Config/llvm-config.h").touch()
    with pytest.raises(TracekitError, match="llvm-55-dev"):
        toolchain.llvm_config(found)
    right = provide(machine, "llvm-config-55", "55.1.0", str(headers))
    assert toolchain.llvm_config(found) == str(right)


# -- building ---------------------------------------------------------------------------------------


def test_a_folder_is_built_once_by_many_processes(tmp_path: Path) -> None:
    """Each build leaves a line and takes long enough for all to be waiting for it."""
    program = f"""
        import sys, time
        from tracekit.recorder.build_cache import build_once
        def build(into):
            with open("{tmp_path}/builds", "a") as file:
                file.write("built\\n")
            with open(into + "/part", "w") as file:
                file.write("half")
                file.flush()
                time.sleep(0.3)
                file.write(" whole")
        folder = build_once("thing", "the thing", build)
        print(open(folder + "/part").read())
    """
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(6)
    ]  # fmt: skip
    outcomes = [process.communicate() for process in processes]
    assert [output for output, _ in outcomes] == ["half whole\n"] * 6
    assert (tmp_path / "builds").read_text() == "built\n"
    words = [complaint for _, complaint in outcomes if complaint]
    assert words == [f"tracekit: building the thing (once, into {tmp_path}/cache/tracekit)\n"]


def test_a_build_that_fails_leaves_nothing_and_is_tried_again(machine: Path) -> None:
    def fail(into: str) -> None:
        Path(into, "part").touch()
        raise TracekitError("no")

    with pytest.raises(TracekitError, match="no"):
        build_cache.build_once("thing", "the thing", fail)
    assert not toolchain.is_built("thing")
    folder = build_cache.build_once("thing", "the thing", lambda into: Path(into, "other").touch())
    assert os.listdir(folder) == ["other"]


def test_a_cache_that_cannot_be_written_is_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(TracekitError, match="XDG_CACHE_HOME"):
        build_cache.build_once("thing", "the thing", lambda into: None)


def test_a_relative_cache_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert build_cache.cache_folder() == "/home/someone/.cache/tracekit"


def test_a_compiler_that_fails_is_one_sentence(machine: Path) -> None:
    compiler = machine / "clang-19"
    compiler.write_text("#!/bin/sh\necho 'image_runtime.c:1:1: error: what is this' >&2\necho more >&2\nexit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(TracekitError) as raised:
        toolchain.runtime_file("image_runtime.o", Clang(str(compiler), "19.1.7"))
    assert (
        str(raised.value)
        == "clang 19.1.7 could not build its part of tracekit: image_runtime.c:1:1: error: what is this"
    )


def test_what_is_built_needs_no_compiler(machine: Path) -> None:
    folder = Path(build_cache.cache_folder()) / toolchain.runtime_folder_name()
    folder.mkdir(parents=True)
    assert toolchain.runtime_file(toolchain.ENCODER) == str(folder / toolchain.ENCODER)


def test_the_runtime_has_every_file_that_others_ask_for() -> None:
    for name in ("image_runtime.o", toolchain.PRELOAD, toolchain.ENCODER):
        assert Path(toolchain.runtime_file(name)).stat().st_size > 0


def test_what_goes_into_programs_does_not_say_where_tracekit_is() -> None:
    linked = Path(toolchain.runtime_file("image_runtime.o")).read_bytes()
    assert b"image_runtime.c" in linked and os.fsencode(toolchain.RUNTIME_SOURCES) not in linked
    assert os.fsencode(os.getcwd()) not in linked


def test_any_files_of_the_pass_may_share_a_unit(tmp_path: Path) -> None:
    """Which do depends on how many cores the machine has: names that are local to a file differ from all others."""
    flags = [f"-I{toolchain.RUNTIME_SOURCES}", "-fno-rtti", "-fsyntax-only", "-x", "c++", "-"]
    files = sorted(Path(toolchain.PASS_SOURCES).glob("*.cpp"))
    unit = "".join(f'#include "{path}"\n' for path in files)
    clang = toolchain.find_clang()
    llvm = subprocess.run([toolchain.llvm_config(clang), "--cxxflags"], capture_output=True, text=True, check=True)
    command = [clang.path, "--driver-mode=g++", *llvm.stdout.split(), *flags]
    done = subprocess.run(command, input=unit, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_header_that_a_file_forgets_is_there_with_any_number_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three cores or more there was no pass for a while: a file was compiled without the one before it."""
    sources, into = tmp_path / "pass", tmp_path / "into"
    sources.mkdir()
    into.mkdir()
    (sources / "Twice.h").write_text("#pragma once\nint twice(int);\n")
    (sources / "B.cpp").write_text("int four(int x) { return twice(twice(x)); }\n")
    (sources / "A.cpp").write_text('#include "Twice.h"\nint twice(int x) { return 2 * x; }\n')
    monkeypatch.setattr(toolchain, "PASS_SOURCES", str(sources))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    toolchain._build_pass(toolchain.find_clang(), str(into))
    assert os.listdir(into) == [toolchain.PASS]


@pytest.mark.parametrize("major", OTHER_CLANGS)
def test_the_pass_builds_and_loads_for_other_versions(
    major: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(f"clang-{major}")
    monkeypatch.setenv("TRACEKIT_CLANG", other_clang(major))
    source, made = tmp_path / "sum.c", tmp_path / "sum.o"
    # From LLVM 21 on nobody can ask who uses null.
    source.write_text("""
        struct node { int key; struct node *next; } *get(int);
        int sum(const int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }
        int fault(int n) { int s = 0; for (int i = 0; i < n; i++) { s += *(int *)0; *(int *)0 = s; } return s; }
        void count(int n) { for (int i = 0; i < n; i++) (*(int *)0)++; }
        int key(int n) { return (n ? (struct node *)0 : get(n))->key; }
    """)
    for level in ("-O0", "-O2"):
        ours = [sys.executable, "-m", "tracekit", "cc", level, "-g", "-w", "-c", source, "-o", made]
        done = subprocess.run(ours, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
        assert "tk_functions" in subprocess.run(["readelf", "-SW", made], capture_output=True, text=True).stdout
