"""Programs that use MPI: which MPI, the library that records its messages, and the rank that a process has.

The wrappers (runtime/mpi) are compiled against the mpi.h of the MPI that the program uses, once for each MPI, into the
user's cache.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.recorder import elf, toolchain
from tracekit.recorder.build_cache import build_once, digest

WRAPPERS = "libtracekit-mpi.so"
_SOURCES = os.path.join(toolchain.RUNTIME_SOURCES, "mpi")

_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
"""Variables by which launchers tell a process its rank, the surest first."""


class Implementation(NamedTuple):
    """An MPI that can be followed."""

    name: str
    library: str
    """How the name of its library begins."""
    launchers: tuple[str, ...]
    """Names that its launcher may have, behind all links."""
    compilers: tuple[str, ...]
    show: str
    """The option by which its compiler says what it calls."""


IMPLEMENTATIONS = (
    Implementation(
        "Open MPI",
        "libmpi.so",
        ("orterun", "prterun", "mpirun.openmpi"),
        ("mpicc.openmpi", "mpicc"),
        "--showme:compile",
    ),
    Implementation(
        "MPICH", "libmpich.so", ("mpiexec.hydra", "mpiexec.gforker"), ("mpicc.mpich", "mpicc"), "-compile_info"
    ),
)


_SYSTEM_LIBRARIES = (
    "libc.so",
    "libm.so",
    "libpthread.so",
    "libdl.so",
    "librt.so",
    "libgcc_s.so",
    "libstdc++.so",
    "ld-",
)
"""What begins so needs nothing else: the C library's and the compilers' own."""


def rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that a launcher of MPI has given this process, None outside of one."""
    for name in _RANK:
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    return None


def is_launcher(program: str) -> bool:
    """Whether it is mpirun or its like, which runs programs and is not instrumented itself."""
    name = os.path.basename(os.path.realpath(program))
    return any(name in each.launchers for each in IMPLEMENTATIONS)


def implementation(program: str) -> Implementation | None:
    """The MPI that the executable is linked to, or that it launches programs of."""
    name = os.path.basename(os.path.realpath(program))
    for each in IMPLEMENTATIONS:
        if name in each.launchers:
            return each
    try:
        libraries = _libraries(program) if elf.is_elf(program) else []
    except OSError:
        return None  # it may only be executed
    for each in IMPLEMENTATIONS:
        if any(library.startswith(each.library) for library in libraries):
            return each
    return None


def _libraries(program: str) -> list[str]:
    """The names of what would be loaded with it, as far as an MPI may be among them: to ask takes a process."""
    needed = elf.needed(program)
    if needed and all(name.startswith(_SYSTEM_LIBRARIES) for name in needed):
        return []
    return [os.path.basename(path) for path in elf.libraries(program)]


def wrappers(program: str) -> str:
    """The path of the library that records the messages of `program`, built if it is new; empty if there is none.

    Without the headers of its MPI a program runs as others do, and a line on stderr says what is missing.
    """
    found = implementation(program)
    if found is None:
        return ""
    try:
        return _built(found)
    except TracekitError as error:
        print(f"tracekit: messages of MPI are not recorded: {error}", file=sys.stderr)
        return ""


def _built(found: Implementation) -> str:
    flags = _flags(found)
    clang = toolchain.find_clang()
    parts = [*toolchain.contents(_SOURCES), *toolchain.contents(toolchain.RUNTIME_SOURCES, (".h",))]
    key = digest([*parts, *(flag.encode() for flag in flags), _versions(flags)])
    folder = build_once(f"mpi-{key}", f"its part for {found.name}", lambda into: _build(clang, flags, into))
    return os.path.join(folder, WRAPPERS)


def _flags(found: Implementation) -> list[str]:
    """Where the compiler finds mpi.h, asked of the MPI's own compiler."""
    for name in found.compilers:
        path = toolchain.which(name)
        words = [word for line in toolchain.answer([path, found.show]) for word in shlex.split(line)] if path else []
        flags = [word for word in words if word.startswith(("-I", "-D"))]
        if flags:
            return flags
    raise TracekitError(
        f"the compiler of {found.name} was not found; install it (`apt-get install libopenmpi-dev` or `libmpich-dev`)"
    )


def _versions(flags: list[str]) -> bytes:
    """What tells one mpi.h from another."""
    for flag in flags:
        header = os.path.join(flag[2:], "mpi.h")
        if flag.startswith("-I") and os.path.exists(header):
            with open(header, "rb") as file:
                return file.read()
    return b""


def _build(clang: toolchain.Clang, flags: list[str], into: str) -> None:
    sources = sorted(name for name in os.listdir(_SOURCES) if name.endswith(".c"))
    common = ["-std=gnu17", "-O2", "-g", "-fPIC", "-Wall", "-Wextra", "-shared", "-fvisibility=hidden"]
    output = os.path.join(into, WRAPPERS)
    toolchain.compile_one(clang, [clang.path, *common, *flags, *sources, "-o", output], _SOURCES)
