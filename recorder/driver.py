"""`tracekit cc` and `tracekit c++`: clang with the pass, taking the compiler's place in any build.

The command line goes to clang untouched, with what instrumenting needs added; then this process
becomes clang, so that output, exit status and signals are the compiler's own. It is started once
for each file of a build: keep the imports light.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from tracekit.formats.errors import TracekitError
from tracekit.formats.file_names import escape_undecodable
from tracekit.formats.library_functions import NODES, STREAMS
from tracekit.recorder import allocator_names, command_line, musl, toolchain, version_script
from tracekit.recorder.command_line import CommandLine

AT = ("source", "machine")
RECORD = ("paths", "blocks", "both")
VALUES = ("all", "loads", "stores")
_CHOICES = {"--at": AT, "--record": RECORD, "--values": VALUES}

# The pass runs where loops and calls are still those of the source (design: "Where the pass runs").
# What the optimiser does to them before that point is switched off: unrolling and peeling, loops
# turned into memset and memcpy, recursion turned into loops, loops doubled by unswitching (-O3), and
# loads left out because the iteration before made them (a stencil would hand on values in registers).
_SOURCE_OPTIONS = ("-fno-unroll-loops",)
_SOURCE_LLVM_OPTIONS = ("-disable-loop-idiom-all", "-unswitch-threshold=0", "-enable-load-in-loop-pre=false")

# Tables of lines have no variables: following them through registers and the stack takes the back end up to 10 % of the
# time, for nothing.
_WITHOUT_VARIABLES = ("-experimental-debug-variable-locations=false",)

_GUARDS = ("__cxa_guard_acquire", "__cxa_guard_release", "__cxa_guard_abort")
CXX_WRAPPED = (*_GUARDS, "_ZSt11_Hash_bytesPKvmm", *NODES, *STREAMS)
"""Functions of the C++ library that static programs wrap."""
_WITHOUT_LIBRARY = frozenset({"-nostdlib", "-nodefaultlibs", "-nostdlib++", "-stdlib=libc++"})
"""With one of these, clang does not link libstdc++."""

OPTIONS = """\
  --at=source      record loops and calls as the source has them (default)
  --at=machine     record what is left after all optimisation
  --record=paths   one record for each path, addresses where they cannot be derived (default)
  --record=blocks  one record for each basic block, every address in place
  --record=both    as paths, and beside it what blocks would record: `tracekit check` compares
  --values         record the values that loads and stores move, too
  --values=loads   only those of loads
  --values=stores  only those of stores
  --pointers       record where pointers come from: memory, calls, numbers
  --threads        record the order of atomic operations and fences, for `races`
  --windows        let `record --paused` open windows in the middle of the run
  --intercept=NAME record calls of this function of yours with arguments and results
                   (several: NAME,NAME, or the option again); types come from -g
  --allocator=NAME blocks of this allocator of yours are objects, as malloc's are: NAME like
                   je_malloc, all of them by 'je_*', or 'palloc(_, size)' with block, size,
                   count, out or _ for each parameter; may be given several times
"""
"""Those of tracekit's compilers for all languages."""

_HELP = """\
Usage: tracekit cc  [options below] <clang's options and files>
       tracekit c++ [options below] <clang's options and files>

Compiles and links with clang, instrumented for `tracekit record`. Takes the compiler's
place in a build:  CC="tracekit cc" CXX="tracekit c++" make
(where only one word will do, as in CMake: tracekit-cc, tracekit-c++)

{options}  --path-prefix-map OLD=NEW
                   write NEW for the folder OLD in the names of files, as clang's
                   -ffile-prefix-map; may be given several times

Everything else goes to {clang}; see `{clang} --help`.
TRACEKIT_CLANG names another clang to use.
"""


def main(name: str, words: Sequence[str]) -> int:
    """Run ``tracekit NAME WORDS`` (NAME is cc or c++): become clang, or return an exit status."""
    return answer(words, lambda given: become(*command(name, given)), _help)


def answer(words: Sequence[str], run: Callable[[Sequence[str]], int], show_help: Callable[[bool], int]) -> int:
    """What every compiler command does: `run` the words, or `show_help` (whether there were none); the exit status."""
    escape_undecodable(sys.stdout, sys.stderr)
    try:
        if not words or words[0] == "--help":
            return show_help(not words)
        return run(words)
    except TracekitError as error:
        print(f"tracekit: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # the compiler that was waited for has had it, too
        return 130


def become(compiler: str, arguments: list[str], settings: str = "") -> NoReturn:
    """Replace this process with a compiler, as `command` returns it. Raises TracekitError if it cannot be started."""
    sys.stdout.flush()
    try:
        os.execve(compiler, arguments, {**os.environ, "TRACEKIT_PASS": settings})
    except OSError as error:
        raise TracekitError(f"{compiler} could not be started: {error.strerror}") from None


def main_cc() -> int:
    """The executable tracekit-cc."""
    return main("cc", sys.argv[1:])


def main_cxx() -> int:
    """The executable tracekit-c++."""
    return main("c++", sys.argv[1:])


def command(name: str, words: Sequence[str]) -> tuple[str, list[str], str]:
    """The clang to run, its whole command line, and the value of TRACEKIT_PASS.

    Builds the pass and the runtime if they are needed and not there. Raises TracekitError if that
    fails, or for a wrong value of an option of ours.
    """
    return instrumenting(name, *own_options(words))


def instrumenting(
    name: str, settings: Mapping[str, str], words: Sequence[str], clang: toolchain.Clang | None = None
) -> tuple[str, list[str], str]:
    """As `command`, for what `own_options` returns; ``clang``: another than `find_clang` finds."""
    last: list[str] = []
    libc, words, choosing = musl.read(words)
    wanted = command_line.read(words)
    clang = clang or toolchain.find_clang()
    arguments = [clang.path] if name == "cc" else [clang.path, "--driver-mode=g++"]
    arguments += _unless_unused(choosing)
    if wanted.links and not wanted.relocatable:
        if libc != toolchain.GLIBC and (not wanted.static or wanted.shared):
            raise TracekitError("programs of musl can be recorded only with -static: link with -static, or with glibc")
        arguments += _link_options(wanted, clang, libc)
        words = version_script.export_state(words)
        last = _last_link_options(wanted, name, words, clang, libc)
    before, after = _split_at_dashes(words)
    arguments += [*before, *last]
    if wanted.compiles:
        # Some of them are for one stage of a command that may have no such stage (-c x.s y.c).
        options = _compile_options(wanted, settings["at"], clang)
        if "intercept" in settings and not wanted.debug:
            options.append("-g")  # for the types of arguments
        arguments += _unless_unused(options)
    return clang.path, arguments + after, ",".join(f"{key}={value}" for key, value in settings.items())


def own_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What the pass is told (the last of several options of one name counts), and all other words.

    Raises TracekitError for a wrong value of an option of ours.
    """
    settings = {"at": AT[0], "record": RECORD[0]}
    rest: list[str] = []
    intercepted: list[str] = []
    allocators: list[str] = []
    remaining = iter(words)
    for word in remaining:
        option, _, value = word.partition("=")
        if word == "--":
            rest += [word, *remaining]
        elif option == "--path-prefix-map":
            rest += _prefix_map(value if word != option else next(remaining, ""))
        elif word == "--values":
            settings["values"] = VALUES[0]
        elif option == "--intercept":
            names = (value if word != option else next(remaining, "")).split(",")
            intercepted += [name for name in names if name]
        elif option == "--allocator":
            allocators += allocator_names.read(value if word != option else next(remaining, ""))
        elif word in ("--pointers", "--threads", "--windows"):
            settings[word.removeprefix("--")] = "1"
        elif option in _CHOICES:
            known = _CHOICES[option]
            if value not in known:
                raise TracekitError(f"{option} takes one of: {', '.join(f'{option}={choice}' for choice in known)}")
            settings[option.removeprefix("--")] = value
        else:
            rest.append(word)
    if intercepted:
        settings["intercept"] = ";".join(dict.fromkeys(intercepted))
    if allocators:
        settings["allocators"] = ";".join(dict.fromkeys(allocators))
    return settings, rest


def _prefix_map(pair: str) -> list[str]:
    """What clang is told; a command that compiles nothing has no use for it."""
    if not pair.partition("=")[0] or "=" not in pair:
        raise TracekitError(f"--path-prefix-map takes OLD=NEW, a folder and what to write for it, not {pair!r}.")
    return _unless_unused([f"-ffile-prefix-map={pair}"])


def _unless_unused(options: Sequence[str]) -> list[str]:
    """The options, about which clang says nothing where it has no use for them."""
    return ["--start-no-unused-arguments", *options, "--end-no-unused-arguments"] if options else []


def _split_at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before a `--`, after which there are only file names, and the rest."""
    position = words.index("--") if "--" in words else len(words)
    return words[:position], words[position:]


def _compile_options(wanted: CommandLine, at: str, clang: toolchain.Clang) -> list[str]:
    options = [f"-fpass-plugin={toolchain.pass_plugin(clang)}", "-idirafter", toolchain.INCLUDE]
    for_llvm: tuple[str, ...] = ()
    if not wanted.debug:
        options.append("-gline-tables-only")
        for_llvm += _WITHOUT_VARIABLES
    if at == "source":
        options += ["-cxx-isystem", toolchain.INCLUDE_PLUS_PLUS, *_SOURCE_OPTIONS]
        if not wanted.tail_recursion:
            options.append("-fno-optimize-sibling-calls")
        for_llvm += _SOURCE_LLVM_OPTIONS
    for option in for_llvm:
        if option.lstrip("-").split("=")[0] not in wanted.llvm_options:
            options += ["-mllvm", option]
    return options


def _link_options(wanted: CommandLine, clang: toolchain.Clang, libc: toolchain.Libc) -> list[str]:
    """They stand before the user's words: after an `-x c` the image runtime would be taken for C."""
    options = [toolchain.runtime_file("image_runtime.o", clang, libc)]
    if wanted.static:
        # Before the other, so that the end of the program is recorded after the images' end.
        wrap = toolchain.runtime_file(toolchain.STATIC_WRAP, clang, libc)
        return [toolchain.runtime_file("static_program.o", clang, libc), *options, f"-Wl,@{wrap}"]
    if not wanted.shared and not wanted.static:
        options += [f"-Wl,--export-dynamic-symbol={symbol}" for symbol in version_script.SHARED]
    return options


def _last_link_options(
    wanted: CommandLine, name: str, words: Sequence[str], clang: toolchain.Clang, libc: toolchain.Libc
) -> list[str]:
    """They stand behind the user's words: the code of a static program ends here, that of the C library begins."""
    if not wanted.static or wanted.shared:
        return []
    options: list[str] = []
    if name == "c++" and not _WITHOUT_LIBRARY & set(words):
        options += [f"-Wl,--wrap={name},-u,{name}" for name in CXX_WRAPPED]
        options += ["-Wl,-lstdc++", "-Wl,-lm"]
    return [*options, "-Xlinker", toolchain.runtime_file("static_end.o", clang, libc)]


def _help(failed: bool) -> int:
    try:
        clang = os.path.basename(toolchain.find_clang().path)
    except TracekitError:
        clang = "clang"
    print(_HELP.format(clang=clang, options=OPTIONS), end="", file=sys.stderr if failed else sys.stdout)
    return 1 if failed else 0
