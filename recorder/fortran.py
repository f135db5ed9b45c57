"""`tracekit fc`: flang, whose code the pass instruments, taking the Fortran compiler's place in any build.

flang writes intermediate code without LLVM's optimisation. That is then compiled as the driver compiles C (driver.py):
optimised, instrumented, linked. A command that compiles nothing to the end (`-E`, `--version`) is flang's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.formats.fortran_sources import is_fortran
from tracekit.recorder import command_line, driver, toolchain

_WITH_SEPARATE_VALUE = frozenset({"-J", "-module-dir", "-fintrinsic-modules-path", "-mmlir", "-Xflang"})
"""Options that only flang has, whose value is the next word."""

_FLANGS_OWN = _WITH_SEPARATE_VALUE | frozenset(
    "-cpp -nocpp -pedantic -falternative-parameter-statement -fbackslash -fconvert -fdefault-double-8 "
    "-fdefault-integer-8 -fdefault-real-8 -ffixed-form -ffixed-line-length -ffree-form -fhermetic-module-files "
    "-fimplicit-none -finput-charset -flarge-sizes -flogical-abbreviations -fautomatic -fopenacc -frealloc-lhs "
    "-fsave-main-program -fstack-arrays -funderscoring -funsigned -fversion-loops-for-stride -fxor-operator "
    "-std".split()
)
"""Those and others that clang does not know or takes for something else, without `no-` and `=value`."""

_LINKERS_OWN = frozenset(
    "-l -L -T -u -z -e -s -r -Xlinker -rpath -shared -static -static-pie -pie -no-pie -rdynamic -nostdlib "
    "-nodefaultlibs -nostartfiles -fuse-ld -static-libgcc -static-libgfortran -static-flang-libs".split()
)
"""Options that flang has no use for where it links nothing, of which it tells."""

# LLVM's optimisation in flang unrolls loops, and keeps in registers what an iteration leaves to the next. -O3 of flang
# doubles loops over arrays that may not be contiguous.
_UNOPTIMISED = ("-mllvm", "-opt-bisect-limit=0", "-fno-version-loops-for-stride")
# flang spells the target in another way than clang, and options of the source are none of intermediate code.
_QUIET = ("-Wno-override-module", "-Wno-unused-command-line-argument")

_NOTE_OF_BISECTION = b"BISECT: "
"""What each line begins with by which LLVM tells of a pass that it leaves out."""

_HELP = """\
Usage: tracekit fc [options below] <flang's options and files>

Compiles and links Fortran with flang, instrumented for `tracekit record`. Takes the
compiler's place in a build:  FC="tracekit fc" make
(where only one word will do, as in CMake: tracekit-fc)

{options}
Everything else goes to {flang}; see `{flang} --help`.
TRACEKIT_FLANG names another flang to use, TRACEKIT_CLANG the clang of its version.
"""


class Piece(NamedTuple):
    """An option with its value, or an input, as it stands on a command line."""

    option: str  # empty of an input
    value: str
    words: list[str]
    language: str  # what the -x before it says

    @property
    def is_source(self) -> bool:
        """Whether it is Fortran to compile."""
        if self.option:
            return False
        if self.language != "none":
            return self.language.startswith(("f77", "f95"))
        return is_fortran(self.value)

    @property
    def is_flangs(self) -> bool:
        """Whether it says something about Fortran alone."""
        name = self.option.partition("=")[0].replace("-fno-", "-f", 1)
        joined_folder = self.option.startswith("-J")
        return joined_folder or name in _FLANGS_OWN or (self.option == "-x" and self.value.startswith("f"))

    @property
    def is_for_compiling(self) -> bool:
        """Whether it is an option for the step from a source to intermediate code."""
        if self.option in ("", "-o", "-c", "-S", "-x"):
            return False
        name = self.option.partition("=")[0]
        return not (name in _LINKERS_OWN or name.startswith(("-L", "-Wl,")))


def main(words: Sequence[str]) -> int:
    """Run ``tracekit fc WORDS``: become flang, or return an exit status."""
    return driver.answer(words, _run, _help)


def main_fc() -> int:
    """The executable tracekit-fc."""
    return main(sys.argv[1:])


def _run(words: Sequence[str]) -> int:
    settings, given = driver.own_options(words)
    if any(word.startswith("-ffile-prefix-map=") for word in given):
        raise TracekitError("--path-prefix-map is for C and C++: flang has nothing like it")
    pieces = list(_pieces(given))
    options = {piece.option for piece in pieces}
    flang = toolchain.find_flang(toolchain.find_clang())
    is_compiled = any(not piece.option for piece in pieces)
    if not is_compiled or options & {*command_line.STOPS_BEFORE_BACKEND, "-###"}:
        driver.become(flang, [flang, *given])
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tracekit-fc-") as folder:
        status, clangs = _translated([flang, *_compiling(pieces, settings)], pieces, folder)
        if status != 0:
            return status
        if not options & command_line.STOPS_BEFORE_LINK:
            clangs += _libraries(flang)
        clang, arguments, pass_settings = driver.instrumenting("cc", settings, [*_QUIET, *clangs])
        return _status(
            subprocess.run([clang, *arguments[1:]], env={**os.environ, "TRACEKIT_PASS": pass_settings}).returncode
        )


def _pieces(words: Sequence[str]) -> Iterator[Piece]:
    language = "none"
    for option, value, spelled in command_line.each_piece(command_line.expand(words), _WITH_SEPARATE_VALUE):
        if option == "-x":
            language = value
        yield Piece(option, value, spelled, language)


def _compiling(pieces: Sequence[Piece], settings: dict[str, str]) -> list[str]:
    """What flang is told for each source."""
    words = [word for piece in pieces if piece.is_for_compiling for word in piece.words]
    if not command_line.asks_for_debug(piece.option for piece in pieces):
        words.append("-g" if "intercept" in settings else "-gline-tables-only")  # types of arguments; lines
    if sys.stderr.isatty():
        words.append("-fcolor-diagnostics")
    return [*words, "-c", "-emit-llvm", *_UNOPTIMISED]


def _translated(flang: Sequence[str], pieces: Sequence[Piece], folder: str) -> tuple[int, list[str]]:
    """The command line for clang, with intermediate code in place of Fortran; and the exit status of `flang`."""
    words: list[str] = []
    for number, piece in enumerate(pieces):
        if piece.is_source:
            stem = os.path.splitext(os.path.basename(piece.value))[0]  # by which -c names the object
            code = os.path.join(folder, str(number), f"{stem}.bc")
            os.mkdir(os.path.dirname(code))
            language = [] if piece.language == "none" else ["-x", piece.language]
            status = _without_notes([*flang, *language, piece.value, "-o", code])
            if status != 0:
                return status, []
            words.append(code)
        elif not piece.is_flangs:
            words += piece.words
    return 0, words


def _without_notes(command: Sequence[str]) -> int:
    """Run a command; its exit status. What it writes to stderr is passed on but for the notes of bisection."""
    try:
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if not line.startswith(_NOTE_OF_BISECTION):
                    sys.stderr.buffer.write(line)
                    sys.stderr.buffer.flush()
    except OSError as error:
        raise TracekitError(f"{command[0]} could not be started: {error.strerror}") from None
    return _status(process.returncode)


def _status(returned: int) -> int:
    """What a shell calls the exit status of a process that may have ended by a signal."""
    return returned if returned >= 0 else 128 - returned


def _libraries(flang: str) -> list[str]:
    """What flang would link: its names differ from version to version, so it is asked."""
    anything = os.devnull
    for line in subprocess.run([flang, "-###", anything], capture_output=True, text=True).stderr.splitlines():
        words = [word.strip('"') for word in line.split(' "')]
        if anything in words:
            behind = words[words.index(anything) + 1 :]
            return behind[: behind.index("-lm") + 1] if "-lm" in behind else []
    return []


def _help(failed: bool) -> int:
    try:
        flang = os.path.basename(toolchain.find_flang(toolchain.find_clang()))
    except TracekitError:
        flang = "flang"
    print(_HELP.format(flang=flang, options=driver.OPTIONS), end="", file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0
