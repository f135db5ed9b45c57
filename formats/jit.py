"""The one way to compile a kernel: a typed decorator around Numba, cached on disk and without the GIL.

Importing this module imports Numba (about half a second), so only modules that hold kernels do.

Kernels borrow their arrays: they run without Numba's reference counting. With it, a tuple of arrays costs an atomic
operation per array at each call, a quarter of a microsecond for the state of a replay; without it, nothing. The price:
a kernel cannot make an array (Numba then says that NRT is required). The few that must are ``allocating_kernel``.

Numba finds a cached kernel by the age of its own file and does not see that a kernel it calls, from another file, has
changed. So compiled code is kept in a folder named after the contents of all files with kernels. Nor does it see a
decorator's options: a function takes one decorator of these, always the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import config

P = ParamSpec("P")
R = TypeVar("R")

_COUNTING: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_BORROWING: dict[str, Any] = {**_COUNTING, "_nrt": False}
_INLINED: dict[str, Any] = {**_BORROWING, "forceinline": True}

KEPT_DAYS = 30
"""Compiled kernels of another version that nobody used for so long are removed."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a global function of arrays and scalars; the compiled code is cached between processes."""
    compiled: Callable[P, R] = numba.njit(**_BORROWING)(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a helper that LLVM is asked to inline into the kernels that call it."""
    compiled: Callable[P, R] = numba.njit(**_INLINED)(function)
    return compiled


def allocating_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that makes arrays of its own; not for inner loops."""
    compiled: Callable[P, R] = numba.njit(**_COUNTING)(function)
    return compiled


def kernels_digest(package: Path) -> str:
    """A hash (hex) over the contents of all files below `package` with kernels, or with constants of theirs."""
    digest = hashlib.blake2b(digest_size=8)
    for room in sorted(path for path in package.iterdir() if path.is_dir()):
        for path in sorted(room.glob("**/*.py")):
            text = path.read_bytes()
            if b"formats.jit import" in text or path.parent.name == "kernels" or path.name in ("events.py", "image.py"):
                digest.update(path.relative_to(package).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()


def _cache_folder() -> Path:
    """Where this version's compiled kernels are kept; those of versions long unused are removed."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracekit" / "kernels"
    folder = home / kernels_digest(Path(str(sys.modules[__name__.partition(".")[0]].__file__)).parent)
    try:
        if not folder.exists():
            oldest = time.time() - KEPT_DAYS * 86_400
            for other in home.glob("*"):
                if other.stat().st_mtime < oldest:
                    shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        pass  # Numba looks for another place, or compiles anew
    return folder


if "NUMBA_CACHE_DIR" not in os.environ:
    vars(config)["CACHE_DIR"] = str(_cache_folder())
