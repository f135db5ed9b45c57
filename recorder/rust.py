"""`tracekit rustc`: rustc, whose code the pass instruments, taking its place in cargo or any other build.

rustc leaves LLVM's work to the linker, as for an optimisation at link time: what it writes is bitcode that nothing has
optimised. A library's is then compiled as the driver compiles C (driver.py), before the command ends; a program's when
it is linked (rust_linker.py). A command that links nothing (`--emit=metadata`, `--version`) is rustc's own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.recorder import driver, rust_linker, rustc_options, toolchain
from tracekit.recorder.rust_linker import Compiler
from tracekit.recorder.rustc_options import RustcOptions
from tracekit.recorder.toolchain import Clang

_HELP = """\
Usage: tracekit rustc [options below] <rustc's options and files>

Compiles and links Rust with rustc, instrumented for `tracekit record`. Takes the
compiler's place in a build:  RUSTC=tracekit-rustc cargo build --release
(options below: RUSTFLAGS="--values" RUSTC=tracekit-rustc cargo build --release)

{options}  --plain-std      leave Rust's standard library as it is, without instrumentation

Everything else goes to rustc; see `rustc --help`.
TRACEKIT_RUSTC names another rustc to use, TRACEKIT_CLANG a clang that reads its code.
"""

_PLAIN_STD = "--plain-std"

_FOR_THE_LINKER = (
    "-Clinker-plugin-lto", "-Cno-prepopulate-passes", "-Ccodegen-units=1", "-Clto=off", "-Cembed-bitcode=yes",
    "-Cstrip=none", "-Clinker-flavor=gcc",
)  # fmt: skip
"""Bitcode of the whole crate in one piece, as rustc makes it; names and lines stay in the program."""


class Rustc(NamedTuple):
    """A rustc to run, and what it tells of itself."""

    path: str
    release: str
    llvm: int
    """The major version of the LLVM whose code it writes."""


def main(words: Sequence[str]) -> int:
    """Run ``tracekit rustc WORDS``: become rustc, or return an exit status."""
    return driver.answer(words, _run, _help)


def main_rustc() -> int:
    """The executable tracekit-rustc."""
    return main(sys.argv[1:])


def _run(words: Sequence[str]) -> int:
    named = rustc_options.is_rustc(words[0])
    rustc = find_rustc(words[0] if named else "")
    settings, given = driver.own_options(words[1:] if named else words)
    with_library = _PLAIN_STD not in given
    given = [word for word in given if word != _PLAIN_STD]
    wanted = rustc_options.read(given)
    if wanted.tells_version:
        return _tell_version(rustc)
    if not wanted.links:
        driver.become(rustc.path, [rustc.path, *given])
    clang = clang_for(rustc)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tracekit-rustc-") as folder:
        compiler = Compiler(clang, settings, wanted.level)
        linker = _linker(folder, compiler, with_library)
        command = [rustc.path, *given, *_FOR_THE_LINKER, f"-Clinker={linker}"]
        if not wanted.debug:
            command.append("-Cdebuginfo=" + ("2" if "intercept" in settings else "1"))  # types of arguments; lines
        status = subprocess.run(command, close_fds=False).returncode  # cargo's tokens come by file descriptors
        if status != 0:
            return status if status >= 0 else 128 - status
        for archive in _archives([rustc.path, *given], wanted):
            between = tempfile.mkdtemp(dir=folder)
            rust_linker.compile_archive(archive, compiler, between)
    return 0


def _help(failed: bool) -> int:
    print(_HELP.format(options=driver.OPTIONS), end="", file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0


def find_rustc(named: str = "") -> Rustc:
    """The rustc to use: the one that cargo names, else ``$TRACEKIT_RUSTC``, else that on PATH.

    Raises TracekitError, with the way to get one, if there is none that runs.
    """
    chosen = named or os.environ.get("TRACEKIT_RUSTC", "")
    path = toolchain.which(chosen or "rustc")
    fields = dict(line.split(": ", 1) for line in toolchain.answer([path, "-vV"]) if ": " in line) if path else {}
    release, llvm = fields.get("release", ""), fields.get("LLVM version", "").split(".")[0]
    if release and llvm.isdigit():
        return Rustc(path, release, int(llvm))
    if chosen:
        where = "cargo names" if named else "TRACEKIT_RUSTC names"
        raise TracekitError(f"{where} {chosen}, which is not a rustc that runs and uses LLVM; name another")
    raise TracekitError("no rustc was found; install one with `apt-get install rustc` or rustup (https://rustup.rs)")


def clang_for(rustc: Rustc) -> Clang:
    """The clang that reads what ``rustc`` writes. Raises TracekitError, with the way to get one, if there is none."""
    writes = f"rustc {rustc.release} writes code of LLVM {rustc.llvm}"
    newest = toolchain.VERSIONS[-1]
    if rustc.llvm > newest:
        raise TracekitError(f"{writes}, and tracekit knows LLVM up to {newest}; use an older rustc")
    try:
        return toolchain.find_clang(max(rustc.llvm, toolchain.VERSIONS[0]))
    except TracekitError as error:
        raise TracekitError(f"{writes}: {error}") from None


def _tell_version(rustc: Rustc) -> int:
    """What cargo makes its key of: programs that rustc alone compiled, or another tracekit, are no longer fresh."""
    from tracekit.version import __version__

    run = subprocess.run([rustc.path, "-vV"], stdout=subprocess.PIPE, text=True)
    print(f"{run.stdout}tracekit: {__version__}, {toolchain.pass_folder_name(clang_for(rustc))}")
    return run.returncode


def _linker(folder: str, compiler: Compiler, with_library: bool) -> str:
    """A script that rustc takes for a linker: it has no other way to give one options of its own."""
    path = os.path.join(folder, "link")
    program = "import sys; sys.path[:] = sys.argv[1].split('\\n'); from tracekit.recorder import rust_linker; "
    program += "sys.exit(rust_linker.main(sys.argv[2:]))"
    settings = ",".join(f"{key}={value}" for key, value in compiler.settings.items())
    how = [*compiler.clang, settings, compiler.level, "1" if with_library else ""]
    words = [sys.executable, "-c", program, "\n".join(sys.path), *how]
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    os.chmod(path, 0o700)
    return path


def _archives(rustc: Sequence[str], wanted: RustcOptions) -> list[str]:
    """The paths of the static libraries that a command of rustc has made."""
    paths = [wanted.output]
    if not wanted.output:
        run = subprocess.run([*rustc, "--print=file-names"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        paths = [os.path.join(wanted.folder, name) for name in run.stdout.splitlines()]
    return [path for path in paths if path.endswith((".rlib", ".a")) and os.path.exists(path)]
