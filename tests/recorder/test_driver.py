"""What `tracekit cc` adds to a command line, and that real builds come out instrumented and work."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.needs import needs, require
from tracekit.formats.errors import TracekitError
from tracekit.recorder import archiver, driver, toolchain

ROOT = str(Path(driver.__file__).resolve().parents[1])

PROGRAM = """
#include <stdio.h>
int table[16];
int main(int argc, char **argv) {
    for (int i = 0; i < 16; i++) table[i] = i * argc;
    printf("%d\\n", table[5]);
    return table[3];
}
"""


# -- the command line -------------------------------------------------------------------------------


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolchain that is found and built."""
    monkeypatch.setattr(toolchain, "find_clang", lambda: toolchain.Clang("/bin/clang-19", "19.1.7"))
    monkeypatch.setattr(toolchain, "pass_plugin", lambda clang: "/cache/pass.so")
    monkeypatch.setattr(toolchain, "runtime_file", lambda name, clang=None, libc=None: f"/cache/{name}")


def added(words: str, name: str = "cc") -> list[str]:
    """The words of clang's command line that the user did not give."""
    given = words.split()
    _, arguments, _ = driver.command(name, given)
    return [word for word in arguments[1:] if word not in given]


pytestmark_built = pytest.mark.usefixtures("built")


@pytestmark_built
@pytest.mark.parametrize("words", ["", "--version", "-v", "-E a.c", "-M a.c", "-c a.s", "-r a.o b.o -o c.o"])
def test_passed_through_untouched(words: str) -> None:
    assert driver.command("cc", words.split())[1] == ["/bin/clang-19", *words.split()]


@pytestmark_built
def test_compiling_adds_the_pass_and_keeps_the_source_shape() -> None:
    assert added("-O2 -c a.c") == [
        "--start-no-unused-arguments",
        "-fpass-plugin=/cache/pass.so",
        "-idirafter",
        toolchain.INCLUDE,
        "-gline-tables-only",
        "-cxx-isystem",
        toolchain.INCLUDE_PLUS_PLUS,
        "-fno-unroll-loops",
        "-fno-optimize-sibling-calls",
        "-mllvm",
        "-experimental-debug-variable-locations=false",
        "-mllvm",
        "-disable-loop-idiom-all",
        "-mllvm",
        "-unswitch-threshold=0",
        "-mllvm",
        "-enable-load-in-loop-pre=false",
        "--end-no-unused-arguments",
    ]


@pytestmark_built
def test_at_machine_the_optimiser_is_left_alone() -> None:
    words = ["-O2", "--at=machine", "-g", "-c", "a.c"]
    _, arguments, settings = driver.command("cc", words)
    assert arguments[1:] == [
        *("-O2", "-g", "-c", "a.c", "--start-no-unused-arguments", "-fpass-plugin=/cache/pass.so"),
        *("-idirafter", toolchain.INCLUDE),
        "--end-no-unused-arguments",
    ]
    assert settings == "at=machine,record=paths"


@pytestmark_built
def test_linking_a_program_adds_the_stub_first_and_exports_the_state() -> None:
    assert driver.command("cc", ["a.o", "-x", "c", "-o", "app"])[1] == [
        *(
            "/bin/clang-19",
            "/cache/image_runtime.o",
            "-Wl,--export-dynamic-symbol=__tk_state",
            "-Wl,--export-dynamic-symbol=__tk_activations",
            "a.o",
            "-x",
            "c",
            "-o",
            "app",
        )
    ]


@pytestmark_built
def test_a_library_gets_the_stub_only() -> None:
    assert added("-shared a.o -o liba.so") == ["/cache/image_runtime.o"]


@pytestmark_built
def test_a_static_program_gets_the_whole_runtime() -> None:
    first = ["/cache/static_program.o", "/cache/image_runtime.o", "-Wl,@/cache/static_wrap.txt"]
    last = ["-Xlinker", "/cache/static_end.o"]
    assert added("-static a.o -o app") == [*first, *last]
    library = [*(f"-Wl,--wrap={name},-u,{name}" for name in driver.CXX_WRAPPED), "-Wl,-lstdc++", "-Wl,-lm"]
    assert added("-static a.o -o app", "c++")[1:] == [*first, *library, *last]
    assert added("-static a.o -nostdlib -o app", "c++")[1:] == [*first, *last]


@pytestmark_built
def test_cxx_is_clang_in_its_cxx_mode() -> None:
    assert driver.command("c++", ["--version"])[1] == ["/bin/clang-19", "--driver-mode=g++", "--version"]


@pytestmark_built
def test_options_of_llvm_are_not_given_twice() -> None:
    assert "-unswitch-threshold=0" not in added("-mllvm -unswitch-threshold=7 -c a.c")


@pytestmark_built
def test_ours_stand_before_the_dashes() -> None:
    arguments = driver.command("cc", ["-c", "--", "a.c"])[1]
    assert arguments[-2:] == ["--", "a.c"]


@pytestmark_built
def test_recursion_may_become_a_loop_where_that_is_asked_for() -> None:
    assert "-fno-optimize-sibling-calls" in added("-c a.c")
    assert "-fno-optimize-sibling-calls" not in added("-foptimize-sibling-calls -c a.c")


@pytestmark_built
@pytest.mark.parametrize("word", ["--at=nowhere", "--at", "--record=regions", "--values=bytes"])
def test_wrong_values_of_our_options(word: str) -> None:
    with pytest.raises(TracekitError, match="takes one of"):
        driver.command("cc", [word, "-c", "a.c"])


@pytestmark_built
def test_a_prefix_map_is_given_to_clang_where_it_stands() -> None:
    mapped = driver.command("cc", ["-O2", "--path-prefix-map", "/home/me=/src", "--path-prefix-map=/b=", "x.c"])[1]
    quiet, loud = "--start-no-unused-arguments", "--end-no-unused-arguments"
    first, second = ([quiet, f"-ffile-prefix-map={pair}", loud] for pair in ("/home/me=/src", "/b="))
    at = mapped.index("-O2") + 1
    assert mapped[at : at + 7] == [*first, *second, "x.c"]
    for wrong in (["--path-prefix-map"], ["--path-prefix-map", "/home/me"], ["--path-prefix-map==/src"]):
        with pytest.raises(TracekitError, match="takes OLD=NEW"):
            driver.command("cc", [*wrong])


# -- for real ---------------------------------------------------------------------------------------


def run(*words: str | Path, cwd: Path, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def instrumented(path: Path) -> bool:
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    return "tk_functions" in sections


@pytest.fixture(scope="session")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Executables tracekit-cc and tracekit-c++, as an installation below a path with a space has them."""
    folder = tmp_path_factory.mktemp("bin")
    entries = tomllib.loads((Path(ROOT) / "pyproject.toml").read_text())["project"]["scripts"]
    for name in ("tracekit-cc", "tracekit-c++", "tracekit-llvm-ar", "tracekit-llvm-ranlib"):
        module, entry = entries[name].split(":")
        path = folder / name
        path.write_text(
            f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\nimport sys\nsys.path.insert(0, {ROOT!r})\n"
            f"from {module} import {entry}\nsys.exit({entry}())\n"
        )
        path.chmod(0o755)
    return str(folder / "tracekit-cc"), str(folder / "tracekit-c++")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "lib.c").write_text("int twice(int x) { static int calls; calls++; return 2 * x; }\n")
    (tmp_path / "use.c").write_text("int twice(int); int main(void) { return twice(21); }\n")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        ["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-g"], ["-g0"], ["-O2", "--at=machine"],
        ["-O2", "-static"], ["-O2", "-flto"], ["-O2", "-fno-pie", "-no-pie"], ["-O2", "-Werror", "-Weverything", "-w"],
        ["-O3", "-funroll-loops"], ["-O2", "-mllvm", "-unswitch-threshold=3"], ["-pthread"], ["-std=c99", "-m64"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_one_step(compilers: tuple[str, str], project: Path, options: Sequence[str]) -> None:
    if "-flto" in options:
        require("lto plugin")
    run(compilers[0], *options, "main.c", "-o", "app", cwd=project)
    assert run("./app", cwd=project, status=3).stdout == "5\n"
    assert instrumented(project / "app")


def test_separate_compilation_and_archives(compilers: tuple[str, str], project: Path) -> None:
    run(compilers[0], "-O2", "-c", "lib.c", "use.c", cwd=project)
    run("ar", "rcs", "libx.a", "lib.o", cwd=project)
    run(compilers[0], "use.o", "-L.", "-lx", "-o", "app", cwd=project)
    run("./app", cwd=project, status=42)


def test_partial_link(compilers: tuple[str, str], project: Path) -> None:
    run(compilers[0], "-O2", "-c", "lib.c", "use.c", cwd=project)
    run(compilers[0], "-r", "lib.o", "use.o", "-o", "both.o", cwd=project)
    run(compilers[0], "both.o", "-o", "app", cwd=project)
    run("./app", cwd=project, status=42)


def test_shared_library(compilers: tuple[str, str], project: Path) -> None:
    run(compilers[0], "-O2", "-fPIC", "-shared", "lib.c", "-o", "libx.so", cwd=project)
    run(compilers[0], "-O2", "use.c", "-L.", "-lx", "-Wl,-rpath,$ORIGIN", "-o", "app", cwd=project)
    assert instrumented(project / "libx.so")
    run("./app", cwd=project, status=42)
    # in a program that is not instrumented, too
    run("cc", "use.c", "-L.", "-lx", "-Wl,-rpath,$ORIGIN", "-o", "plain", cwd=project)
    run("./plain", cwd=project, status=42)


@pytest.mark.parametrize("stage", [["-emit-llvm", "-S", "-o", "main.ll"], ["-emit-llvm", "-c", "-o", "main.bc"]])
def test_llvm_ir_is_compiled(compilers: tuple[str, str], project: Path, stage: list[str]) -> None:
    run("clang-19", "-O1", "main.c", *stage, cwd=project)
    run(compilers[0], "-O2", stage[-1], "-o", "app", cwd=project)
    assert run("./app", cwd=project, status=3).stdout == "5\n"
    assert instrumented(project / "app")


def test_ir_that_is_instrumented_already_stays_as_it_is(compilers: tuple[str, str], project: Path) -> None:
    run(compilers[0], "-O2", "-emit-llvm", "-S", "main.c", "-o", "main.ll", cwd=project)
    run(compilers[0], "-O2", "main.ll", "-o", "app", cwd=project)
    assert run("./app", cwd=project, status=3).stdout == "5\n"
    flips = subprocess.run(["objdump", "-d", "app"], cwd=project, capture_output=True, text=True).stdout
    once = run(compilers[0], "-O2", "main.c", "-o", "once", cwd=project)
    assert once.returncode == 0
    expected = subprocess.run(["objdump", "-d", "once"], cwd=project, capture_output=True, text=True).stdout
    assert flips.count("<__tk_flip>\n") == expected.count("<__tk_flip>\n") > 0


def test_stages_that_stop_early(compilers: tuple[str, str], project: Path) -> None:
    assert "table[5]" in run(compilers[0], "-E", "main.c", cwd=project).stdout
    assert run(compilers[0], "-M", "main.c", cwd=project).stdout.startswith("main.o: main.c")
    run(compilers[0], "-O2", "-S", "main.c", "-o", "main.s", cwd=project)
    assert "tk_functions" in (project / "main.s").read_text()
    run(compilers[0], "main.s", "-o", "app", cwd=project)
    assert run("./app", cwd=project, status=3).stdout == "5\n"
    run(compilers[0], "-MD", "-MF", "main.d", "-fsyntax-only", "-Werror", "main.c", cwd=project)
    assert (project / "main.d").exists()


def test_questions_get_the_compilers_answers(compilers: tuple[str, str], project: Path) -> None:
    for question in ("--version", "-dumpversion", "-print-search-dirs", "-print-file-name=libc.so", "-v"):
        ours, clangs = (run(compiler, question, cwd=project) for compiler in (compilers[0], "clang-19"))
        assert (ours.stdout, ours.stderr) == (clangs.stdout, clangs.stderr)


def test_what_it_would_run_is_shown(compilers: tuple[str, str], project: Path) -> None:
    shown = run(compilers[0], "-###", "-O2", "main.c", cwd=project).stderr
    assert "-fpass-plugin=" in shown
    assert "image_runtime.o" in shown
    assert not (project / "a.out").exists()


def test_exit_status_and_messages_are_the_compilers(compilers: tuple[str, str], project: Path) -> None:
    (project / "bad.c").write_text("int main(void) { return nothing; }\n")
    ours, clangs = (
        run(compiler, "-c", "bad.c", cwd=project, status=1).stderr for compiler in (compilers[0], "clang-19")
    )
    assert ours == clangs
    assert "no such file" in run(compilers[0], "-c", "none.c", cwd=project, status=1).stderr


def test_response_file(compilers: tuple[str, str], project: Path) -> None:
    (project / "words").write_text("-O2 'main.c'\n-o app\n")
    run(compilers[0], "@words", cwd=project)
    assert instrumented(project / "app")
    run("./app", cwd=project, status=3)


def test_standard_input_with_a_language(compilers: tuple[str, str], project: Path) -> None:
    done = subprocess.run([compilers[0], "-O2", "-x", "c", "-", "-o", "app"], cwd=project, input=PROGRAM, text=True)
    assert done.returncode == 0
    run("./app", cwd=project, status=3)


def test_cxx(compilers: tuple[str, str], project: Path) -> None:
    (project / "main.cpp").write_text(
        "#include <iostream>\n#include <vector>\n#include <stdexcept>\n"
        "int main() { std::vector<int> v(9, 4); try { return v.at(9); }\n"
        'catch (std::out_of_range &) { std::cout << "caught\\n"; } }\n'
    )
    for level in ("-O0", "-O2"):
        run(compilers[1], level, "main.cpp", "-o", "app", cwd=project)
        assert run("./app", cwd=project).stdout == "caught\n"


def test_without_words_and_help(compilers: tuple[str, str], project: Path) -> None:
    assert "Usage: tracekit cc" in run(compilers[0], cwd=project, status=1).stderr
    assert "--at=source" in run(compilers[0], "--help", cwd=project).stdout


def test_make_side_by_side(compilers: tuple[str, str], project: Path) -> None:
    names = [f"part{number}" for number in range(6)]
    for name in names:
        (project / f"{name}.c").write_text(f"int {name}(int x) {{ return x + 1; }}\n")
    calls = " + ".join(f"{name}(0)" for name in names)
    declarations = "".join(f"int {name}(int);" for name in names)
    (project / "all.c").write_text(f"{declarations} int main(void) {{ return {calls}; }}\n")
    objects = " ".join(f"{name}.o" for name in ("all", *names))
    (project / "Makefile").write_text(f"app: {objects}\n\t$(CC) $(LDFLAGS) $^ -o $@\n")
    run("make", "-j4", f"CC={shlex.join([sys.executable, compilers[0]])}", "CFLAGS=-O2", cwd=project)
    run("./app", cwd=project, status=6)
    assert instrumented(project / "app")


@needs("cmake")
def test_cmake(compilers: tuple[str, str], project: Path) -> None:
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(sample C CXX)\n"
        "add_library(x SHARED lib.c)\nadd_executable(app use.c)\ntarget_link_libraries(app x)\n"
        "include(CheckFunctionExists)\ncheck_function_exists(printf HAVE_PRINTF)\n"
        'if(NOT HAVE_PRINTF)\n  message(FATAL_ERROR "no printf")\nendif()\n'
    )
    compiler, cxx = compilers
    options = [f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-S", ".", "-B", "out", *options, cwd=project)
    run("cmake", "--build", "out", cwd=project)
    run("out/app", cwd=project, status=42)
    assert instrumented(project / "out/app")
    assert instrumented(project / "out/libx.so")


@needs("cmake")
@needs("lto plugin")
def test_cmake_with_optimisation_at_the_link(compilers: tuple[str, str], project: Path) -> None:
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(sample C CXX)\nset(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)\n"
        "add_library(x STATIC lib.c)\nadd_executable(app use.c)\ntarget_link_libraries(app x)\n"
    )
    options = [f"-DCMAKE_C_COMPILER={compilers[0]}", f"-DCMAKE_CXX_COMPILER={compilers[1]}"]
    run("cmake", "-S", ".", "-B", "out", *options, cwd=project)
    run("cmake", "--build", "out", cwd=project)
    run("out/app", cwd=project, status=42)
    assert instrumented(project / "out/app")


def test_llvm_tools_are_those_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, names in {"llvm/bin": ["clang", "llvm-ar"], "usr/bin": ["llvm-ar", "llvm-ranlib-18"]}.items():
        (tmp_path / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / folder / name).touch(0o755)
    (tmp_path / "usr/bin/clang-18").symlink_to(tmp_path / "llvm/bin/clang")
    monkeypatch.setenv("PATH", str(tmp_path / "usr/bin"))
    clang = toolchain.Clang(str(tmp_path / "usr/bin/clang-18"), "18.1.8")
    assert archiver.find("llvm-ar", clang) == str(tmp_path / "llvm/bin/llvm-ar")
    assert archiver.find("llvm-ranlib", clang) == str(tmp_path / "usr/bin/llvm-ranlib-18")
    with pytest.raises(TracekitError, match=r"no llvm-nm of clang 18\.1\.8 was found; `apt-get install llvm-18`"):
        archiver.find("llvm-nm", clang)


def test_shared_library_whose_version_script_hides_the_rest(compilers: tuple[str, str], project: Path) -> None:
    (project / "lib.map").write_text("X_1 { global: twice; local: *; };\n")
    library = ["-O2", "-fPIC", "-shared", "-Wl,--version-script,lib.map", "lib.c", "-o", "libx.so"]
    run(compilers[0], *library, cwd=project)
    run(compilers[0], "-O2", "use.c", "-L.", "-lx", "-Wl,-rpath,$ORIGIN", "-o", "app", cwd=project)
    record = [sys.executable, "-m", "tracekit", "record", "./app"]
    run(*record, cwd=project, status=42, PYTHONPATH=ROOT)
    shown = run(sys.executable, "-m", "tracekit", "dump", "trace.zst", cwd=project, PYTHONPATH=ROOT)
    assert "twice" in shown.stdout
