"""Finds clang, and builds the pass and the runtime for it, once, into the user's cache.

* ``pass-<LLVM version>-<hash>/``: the compiler pass, a plugin that fits one clang
* ``runtime-<hash>/``: what is linked into programs, preloaded into them, and loaded by the recorder

The hash is over the sources, so that an upgrade of tracekit or of clang never meets a stale build.
Imported for every file that ``tracekit cc`` compiles: what is not needed then (subprocess, re) is
imported where it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.recorder.build_cache import build_once, cache_folder, digest, recall, remember

if TYPE_CHECKING:
    from tracekit.recorder.runtime import RuntimeTarget

PREFERRED = 19
PREFERRED_PATHS = (f"clang-{PREFERRED}", f"/usr/lib/llvm-{PREFERRED}/bin/clang")
VERSIONS = range(16, 23)
"""Major versions of LLVM: the one that the pass is tested with most, and all that it is written for."""

INSTALL = "apt-get install clang-19 llvm-19-dev"

PASS = "libtracekit-pass.so"
PRELOAD = "libtracekit-preload.so"
ENCODER = "libtracekit-encoder.so"
STATIC_WRAP = "static_wrap.txt"
"""Options for the linker of a static program."""
_HERE = os.path.dirname(os.path.abspath(__file__))
PASS_SOURCES = os.path.join(_HERE, "pass")
RUNTIME_SOURCES = os.path.join(_HERE, "runtime")
INCLUDE = os.path.join(_HERE, "include")
"""Where tracekit.h is."""
INCLUDE_PLUS_PLUS = os.path.join(INCLUDE, "c++")
"""What stands before the C++ library's own headers."""


class Clang(NamedTuple):
    """A clang that can compile for tracekit: an absolute path, and its version, as in 19.1.7."""

    path: str
    version: str

    @property
    def major(self) -> int:
        """The major version: plugins fit no other."""
        return int(self.version.split(".")[0])


class Libc(NamedTuple):
    """A C library that programs are linked with: glibc or musl."""

    name: str
    options: tuple[str, ...] = ()
    """What makes clang compile for it."""
    archive: str = ""
    """The path of its libc.a; glibc needs none."""


GLIBC = Libc("glibc")


# -- finding --------------------------------------------------------------------------------------


def find_clang(oldest: int = VERSIONS[0]) -> Clang:
    """The clang to use: ``$TRACEKIT_CLANG``, else clang-19, else another of version ``oldest`` or newer.

    Raises TracekitError, with the command that installs one, if there is none.
    """
    chosen = os.environ.get("TRACEKIT_CLANG")
    if chosen:
        return _chosen_clang(chosen, oldest)
    others = (f"clang-{major}" for major in reversed(VERSIONS) if major != PREFERRED)
    for name in (*PREFERRED_PATHS, "clang", *others):
        clang = Clang(which(name), _version(which(name)))
        if clang.version and clang.major in VERSIONS[oldest - VERSIONS[0] :]:
            return clang
    raise TracekitError(
        f"no clang of version {_from(oldest)} was found; install one with `{_install(oldest)}`, "
        "or name one in TRACEKIT_CLANG"
    )


def _from(oldest: int) -> str:
    return f"{oldest} to {VERSIONS[-1]}" if oldest < VERSIONS[-1] else f"{oldest}"


def _install(oldest: int) -> str:
    return INSTALL if oldest <= PREFERRED else f"apt-get install clang-{oldest} llvm-{oldest}-dev"


def _chosen_clang(name: str, oldest: int) -> Clang:
    clang = Clang(which(name), _version(which(name)))
    if not clang.version:
        raise TracekitError(f"TRACEKIT_CLANG names {name}, which is not a clang that runs; name another or unset it")
    if clang.major not in VERSIONS[oldest - VERSIONS[0] :]:
        raise TracekitError(
            f"TRACEKIT_CLANG names clang {clang.version}, but tracekit needs {_from(oldest)}; "
            f"install one with `{_install(oldest)}`"
        )
    return clang


def find_flang(clang: Clang) -> str:
    """The flang to use: ``$TRACEKIT_FLANG``, else the one of ``clang``'s version. An absolute path.

    Raises TracekitError, with the command that installs one, if there is none whose code this clang reads.
    """
    chosen = os.environ.get("TRACEKIT_FLANG")
    if chosen:
        version = _version(which(chosen))
        if not version:
            raise TracekitError(
                f"TRACEKIT_FLANG names {chosen}, which is not a flang that runs; name another or unset it"
            )
        if int(version.split(".")[0]) > clang.major:
            raise TracekitError(
                f"TRACEKIT_FLANG names flang {version}, whose code clang {clang.version} cannot read; name a clang of "
                "that version in TRACEKIT_CLANG"
            )
        return which(chosen)
    beside = os.path.dirname(os.path.realpath(clang.path))
    for name in ("flang", "flang-new"):
        for path in (which(f"{beside}/{name}"), which(f"{name}-{clang.major}"), which(name)):
            if path and _version(path).split(".")[0] == str(clang.major):
                return path
    raise TracekitError(
        f"no flang of version {clang.major}, as clang is, was found; install one with `apt-get install "
        f"flang-{clang.major}`, or name one in TRACEKIT_FLANG"
    )


def llvm_config(clang: Clang) -> str:
    """The path of the llvm-config that belongs to ``clang`` and knows its headers.

    Raises TracekitError, with the command that installs them, if there is none.
    """
    beside = os.path.join(os.path.dirname(os.path.realpath(clang.path)), "llvm-config")
    for name in (beside, f"llvm-config-{clang.major}", f"/usr/lib/llvm-{clang.major}/bin/llvm-config", "llvm-config"):
        path = which(name)
        version, include = answer([path, "--version", "--includedir"])[:2] if path else ("", "")
        if version.split(".")[0] == str(clang.major) and os.path.exists(f"{include}/llvm/Config/llvm-config.h"):
            return path
    raise TracekitError(
        f"the LLVM headers for {clang.path} (version {clang.version}) were not found; "
        f"install them with `apt-get install llvm-{clang.major}-dev`"
    )


def which(name: str) -> str:
    """The absolute path of an executable, looked for on PATH as a shell does; empty if there is none."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return ""


def _version(path: str) -> str:
    """The version of the clang or flang at ``path``, empty if it is none; remembered while the file stays the same."""
    if not path:
        return ""
    note = "compiler-" + digest([os.fsencode(stamp(path))])
    version = recall(note)
    if not version:
        import re

        match = re.search(
            r"\b(?:clang|flang|flang-new) version (\d+\.\d+\.\d+)", "\n".join(answer([path, "--version"]))
        )
        version = match[1] if match else ""
        if version:
            remember(note, version)
    return version


def answer(command: list[str]) -> list[str]:
    """The lines that a command prints, two empty ones if it does not run or fails."""
    import subprocess

    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines() + ["", ""]
    except (OSError, subprocess.CalledProcessError):
        return ["", ""]


# -- what is built --------------------------------------------------------------------------------


def contents(folder: str, suffixes: tuple[str, ...] = (".c", ".cpp", ".h")) -> list[bytes]:
    """Names and contents of a folder's sources, in a fixed order."""
    parts: list[bytes] = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(suffixes):
            with open(os.path.join(folder, name), "rb") as file:
                parts += [name.encode(), file.read()]
    return parts


_RECIPE = contents(_HERE, ("toolchain.py",))
"""How things are built counts in their keys as well."""


def pass_plugin(clang: Clang) -> str:
    """The path of the compiler pass for ``clang``, built now if the cache does not have it.

    Raises TracekitError if it cannot be built: no headers, no place, or it does not compile.
    """
    name = pass_folder_name(clang)
    folder = build_once(name, f"the compiler pass for clang {clang.version}", lambda into: _build_pass(clang, into))
    return os.path.join(folder, PASS)


def runtime_file(name: str, clang: Clang | None = None, libc: Libc = GLIBC) -> str:
    """The path of a file that recorder/runtime's table names, built now (with ``clang``) if the cache does not have it.

    Once built it is found without any compiler. Raises TracekitError if it cannot be built.
    """
    what = "the runtime" if libc == GLIBC else f"the runtime for {libc.name}"
    key = runtime_folder_name(libc)
    folder = build_once(key, what, lambda into: _build_runtime(clang or find_clang(), into, libc))
    return os.path.join(folder, name)


def pass_folder_name(clang: Clang) -> str:
    """The folder of the cache that holds the pass for ``clang``, once it is built."""
    # The pass shares format.h with the runtime, and how it is built (compiler options) stands in this file.
    with open(__file__, "rb") as file:
        recipe = file.read()
    parts = [*contents(PASS_SOURCES), *contents(RUNTIME_SOURCES, (".h",)), recipe]
    return f"pass-{clang.version}-{digest(parts)}"


@cache
def runtime_folder_name(libc: Libc = GLIBC) -> str:
    """The folder of the cache that holds the runtime, once it is built."""
    parts = contents(RUNTIME_SOURCES, (".c", ".h", ".py")) + _RECIPE  # .py: the table of targets
    if libc == GLIBC:
        return f"runtime-{digest(parts)}"
    parts += contents(os.path.join(RUNTIME_SOURCES, libc.name))
    parts += [os.fsencode(text) for text in (*libc.options, stamp(libc.archive))]
    return f"runtime-{libc.name}-{digest(parts)}"


def stamp(path: str) -> str:
    """What changes when the file is another one."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"


def is_built(folder_name: str) -> bool:
    """Whether the cache has that folder."""
    return os.path.isdir(os.path.join(cache_folder(), folder_name))


# -- building -------------------------------------------------------------------------------------


def _headers() -> str:
    """What includes each header that any file of the pass includes.

    Nine tenths of the time to compile the pass go into headers: they are read once. And files share units as the number
    of cores has it, so that a header which a file forgets to include could be there on one machine and missing on
    another.
    """
    import re

    text = b"\n".join(contents(PASS_SOURCES)).decode()
    lines = []
    for header in sorted(set(re.findall(r'^#include (["<].+[">])$', text, re.MULTILINE))):
        own = os.path.join(PASS_SOURCES, header.strip('"'))
        known = f'"{own}"' if os.path.exists(own) else header
        lines.append(f"#if __has_include({known})\n#include {known}\n#endif\n")  # some are those of newer versions
    return "".join(lines)


def _build_pass(clang: Clang, into: str) -> None:
    config = llvm_config(clang)
    flags = answer([config, "--cxxflags"])[0].split()
    if answer([config, "--has-rtti"])[0] == "NO":
        flags.append("-fno-rtti")
    cxx = [clang.path, "--driver-mode=g++", "-O2", "-fPIC", f"-I{RUNTIME_SOURCES}"]
    prefix = os.path.join(into, "prefix.h")
    with open(prefix, "w") as file:
        file.write(_headers())
    compile_one(clang, [*cxx, *flags, "-fpch-instantiate-templates", "-x", "c++-header", prefix, "-o", f"{prefix}.pch"])
    units = list(_units(into))
    objects = [unit + ".o" for unit in units]
    cxx_one = [*cxx, *flags, "-include-pch", f"{prefix}.pch", "-c"]
    _compile_all(clang, [[*cxx_one, unit, "-o", out] for unit, out in zip(units, objects)])
    compile_one(clang, [*cxx, "-shared", *objects, "-o", os.path.join(into, PASS)])
    for path in (prefix, f"{prefix}.pch", *units, *objects):
        os.remove(path)


def _units(into: str) -> Iterator[str]:
    """A file for each core, which includes its share of the pass: LLVM's templates are compiled once for each file."""
    names = sorted(name for name in os.listdir(PASS_SOURCES) if name.endswith(".cpp"))
    count = min(os.cpu_count() or 1, len(names))
    for number in range(count):
        path = os.path.join(into, f"unit{number}.cpp")
        with open(path, "w") as file:
            file.writelines(f'#include "{os.path.join(PASS_SOURCES, name)}"\n' for name in names[number::count])
        yield path


def _build_runtime(clang: Clang, into: str, libc: Libc) -> None:
    from tracekit.recorder.runtime import RUNTIME_TARGETS, STATIC_TARGETS

    # image_runtime.o becomes a part of programs, which travel: it does not say where tracekit is installed.
    here = "-ffile-compilation-dir=tracekit/recorder/runtime"
    defines = _definitions(libc)
    common = ["--start-no-unused-arguments", *libc.options, "--end-no-unused-arguments", here]
    _compile_all(clang, _commands(clang, RUNTIME_TARGETS[libc.name], common, into), RUNTIME_SOURCES)
    header = os.path.join(into, "static_names.h")
    _name_static(into, header, libc, defines)
    common += ["-include", header]
    _compile_all(clang, _commands(clang, STATIC_TARGETS[libc.name], common, into), RUNTIME_SOURCES)
    os.remove(header)


def _commands(
    clang: Clang, targets: Mapping[str, RuntimeTarget], common: Sequence[str], into: str
) -> Iterator[list[str]]:
    for name, target in targets.items():
        yield [clang.path, *common, *target.flags, *target.sources, "-o", os.path.join(into, name)]


def _name_static(into: str, header: str, libc: Libc, defines: Callable[[str], bool]) -> None:
    """Name the preloaded library's functions as the linker's --wrap does: in a header, and in its options."""
    from tracekit.recorder.elf import exported_functions
    from tracekit.recorder.runtime import STATIC_ONLY

    names = [name for name in exported_functions(os.path.join(into, PRELOAD)) if not name.startswith("__tk_")]
    wrapped = [name for name in names if defines(name)]
    with open(header, "w") as file:
        file.writelines(f"#pragma redefine_extname {name} __wrap_{name}\n" for name in names)
        file.write('#pragma clang section text="tk_runtime"\n')
        # Those of other libraries, which a program need not have.
        file.writelines(f"#pragma weak __real_{name}\n" for name in names if name not in wrapped)
    with open(os.path.join(into, STATIC_WRAP), "w") as file:
        file.writelines(f"--wrap={name}\n" for name in (*wrapped, *STATIC_ONLY[libc.name]))


def _definitions(libc: Libc) -> Callable[[str], bool]:
    """Whether the C library defines a name."""
    if libc == GLIBC:
        import ctypes

        library = ctypes.CDLL("libc.so.6")
        return lambda name: hasattr(library, name)
    from tracekit.recorder.elf import archived_symbols

    names = archived_symbols(libc.archive)
    if not names:
        raise TracekitError(f"{libc.name} has no libc.a where {' '.join(libc.options)} says that it is")
    return names.__contains__


def _compile_all(clang: Clang, commands: Iterable[list[str]], folder: str | None = None) -> None:
    """Run compilers in `folder` side by side, one for each core; raises TracekitError for the first that fails."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for _ in pool.map(lambda command: compile_one(clang, command, folder), commands):
            pass


def compile_one(clang: Clang, command: list[str], folder: str | None = None) -> None:
    """Run a compiler in `folder`; raises TracekitError, with its first error, if it fails."""
    import subprocess

    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if run.returncode == 0:
        return
    errors = [line for line in run.stderr.splitlines() if "error" in line] or run.stderr.splitlines() or ["no message"]
    advice = (
        "; the C or C++ headers seem to be missing: `apt-get install libc6-dev libstdc++-12-dev`"
        if "file not found" in errors[0] or "cannot find" in run.stderr
        else ""
    )
    raise TracekitError(f"clang {clang.version} could not build its part of tracekit: {errors[0].strip()}{advice}")
