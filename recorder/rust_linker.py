"""Compiles and links what rustc leaves to the linker, bitcode, alone or in archives: with the pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.formats.file_names import escape_undecodable
from tracekit.recorder import build_cache, command_line, driver, toolchain
from tracekit.recorder.toolchain import Clang

_BITCODE = b"BC\xc0\xde"
"""How a file of LLVM's intermediate code begins."""

_COMPILING = ("-g", "-fPIC", "-Wno-override-module", "-Wno-unused-command-line-argument")
"""-g: rustc has written what there is of lines."""

_LIBRARY = ("libcore-", "liballoc-", "libstd-")
"""Rust's standard library, each object of which has its bitcode beside the machine code."""
_LIBRARY_LEVEL = "-O3"
_EMBEDDED = ".llvmbc"


class Compiler(NamedTuple):
    """How bitcode is compiled."""

    clang: Clang
    settings: Mapping[str, str]  # what the pass is told
    level: str  # how far to optimise: -O2

    def run(self, words: Sequence[str]) -> None:
        """Run clang with the pass. Raises TracekitError if it fails; what it says has gone to stderr."""
        options = [self.level, *_COMPILING, *words]
        clang, arguments, pass_settings = driver.instrumenting("cc", self.settings, options, self.clang)
        _run([clang, *arguments[1:]], env={**os.environ, "TRACEKIT_PASS": pass_settings})


def main(words: Sequence[str]) -> int:
    """Link as rustc asks: a compiler (path and version of the clang, what the pass is told, the level), whether the
    standard library is to be instrumented, and rustc's words.
    """
    escape_undecodable(sys.stdout, sys.stderr)
    path, version, settings, level, with_library, *given = words
    compiler = Compiler(Clang(path, version), dict(setting.split("=", 1) for setting in settings.split(",")), level)
    try:
        compiler.run(list(_linking(given, compiler, bool(with_library))))
    except TracekitError as error:
        print(f"tracekit: {error}", file=sys.stderr)
        return 1
    return 0


def _linking(words: Sequence[str], compiler: Compiler, with_library: bool) -> Iterator[str]:
    """The words for clang: bitcode is to be compiled, and the linker has nothing to optimise."""
    for word in command_line.expand(words):
        if word.endswith(".o") and is_bitcode(word):
            yield from ("-x", "ir", word, "-x", "none")
        elif with_library and word.endswith(".rlib") and os.path.basename(word).startswith(_LIBRARY):
            yield instrumented_library(word, compiler)
        elif not word.startswith("-Wl,-plugin-opt="):
            yield word


def is_bitcode(path: str) -> bool:
    """Whether a file is LLVM's intermediate code."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_BITCODE)) == _BITCODE
    except OSError:
        return False


def compile_archive(path: str, compiler: Compiler, folder: str, embedded: bool = False) -> None:
    """Compile the bitcode in an archive, in its place; ``folder``, an empty one, is for what lies between.

    That is what stands there instead of machine code, or, if ``embedded``, beside it.
    """
    archive = os.path.abspath(path)
    _run([_tool(compiler.clang, "ar"), "x", archive], folder)
    compiled: list[str] = []
    for name in sorted(os.listdir(folder)):
        member = os.path.join(folder, name)
        bitcode = _embedded(member, compiler.clang) if embedded else member
        if is_bitcode(bitcode):
            compiler.run(["-c", "-x", "ir", bitcode, "-o", f"{member}.compiled"])
            os.replace(f"{member}.compiled", member)
            compiled.append(name)
    if compiled:
        _run([_tool(compiler.clang, "ar"), "rs", archive, *compiled], folder)


def _embedded(member: str, clang: Clang) -> str:
    """The path of the bitcode in an object; there is no such file if it has none."""
    path = f"{member}.bc"
    subprocess.run([_tool(clang, "objcopy"), f"--dump-section={_EMBEDDED}={path}", member], capture_output=True)
    return path


def instrumented_library(path: str, compiler: Compiler) -> str:
    """The path of a part of Rust's standard library that was compiled with the pass, once, into the cache."""
    name = os.path.basename(path)
    settings = [f"{key}={value}" for key, value in compiler.settings.items()]
    parts = [toolchain.stamp(path), toolchain.pass_folder_name(compiler.clang), *settings]
    key = f"rust-{name.partition('.')[0]}-{build_cache.digest(os.fsencode(part) for part in parts)}"

    def build(into: str) -> None:
        archive, between = os.path.join(into, name), os.path.join(into, "between")
        shutil.copyfile(path, archive)
        os.mkdir(between)
        compile_archive(archive, compiler._replace(level=_LIBRARY_LEVEL), between, embedded=True)
        shutil.rmtree(between)

    return os.path.join(build_cache.build_once(key, f"Rust's {name} with the pass", build), name)


def _tool(clang: Clang, name: str) -> str:
    """LLVM's own, if it is there: others may not know what a newer compiler writes."""
    return toolchain.which(os.path.join(os.path.dirname(os.path.realpath(clang.path)), f"llvm-{name}")) or name


def _run(command: Sequence[str], folder: str | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a program, what it says going to stderr. Raises TracekitError if it fails."""
    try:
        status = subprocess.run(command, cwd=folder, env=env, stdout=sys.stderr.fileno()).returncode
    except OSError as error:
        raise TracekitError(f"{command[0]} could not be started: {error.strerror}") from None
    if status != 0:
        raise TracekitError(f"{command[0]} ended with status {status}")
