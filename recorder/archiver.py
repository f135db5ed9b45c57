"""`tracekit-llvm-ar` and `tracekit-llvm-ranlib`: LLVM's, of the version of the clang that compiles.

CMake takes ``tracekit-`` of tracekit-cc for the prefix of a toolchain. Below that name it looks for what puts bitcode
into libraries, which it does with INTERPROCEDURAL_OPTIMIZATION.
"""

from __future__ import annotations

import os
import sys

from tracekit.formats.errors import TracekitError
from tracekit.recorder import toolchain


def main_ar() -> int:
    """The executable tracekit-llvm-ar."""
    return _main("llvm-ar")


def main_ranlib() -> int:
    """The executable tracekit-llvm-ranlib."""
    return _main("llvm-ranlib")


def _main(name: str) -> int:
    """Become LLVM's tool, or return an exit status."""
    try:
        path = find(name, toolchain.find_clang())
        os.execv(path, [path, *sys.argv[1:]])
    except TracekitError as error:
        print(f"tracekit: {error}", file=sys.stderr)
        return 1


def find(name: str, clang: toolchain.Clang) -> str:
    """The absolute path of LLVM's tool `name`, as llvm-ar: beside the clang, or on PATH, where it may have a version.

    Raises TracekitError, with the command that installs it, if there is none.
    """
    beside = os.path.dirname(os.path.realpath(clang.path))
    for candidate in (os.path.join(beside, name), f"{name}-{clang.major}", name):
        if path := toolchain.which(candidate):
            return path
    raise TracekitError(f"no {name} of clang {clang.version} was found; `apt-get install llvm-{clang.major}` has it")
