"""The one way to compile a kernel: a typed decorator around Numba, cached on disk and without the GIL.

Numba takes half a second to import, so nothing here imports it before a kernel is called: what the decorators return
only remembers the function. A kernel that calls another finds it through :func:`_teach_numba`.

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
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_COUNTING: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_BORROWING: dict[str, Any] = {**_COUNTING, "_nrt": False}
_INLINED: dict[str, Any] = {**_BORROWING, "forceinline": True}

KEPT_DAYS = 30
"""Compiled kernels of another version that nobody used for so long are removed."""


class Kernel(Generic[P, R]):
    """A function that Numba compiles when it is first called, from Python or from another kernel."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.function = function
        self._options = options
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher for it."""
        return _numba().njit(**self._options)(self.function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run it, compiled for the types of the arguments."""
        result: R = self.dispatcher(*arguments, **named)
        return result


class Instruction:
    """A machine instruction as a function for kernels (numba.extending.intrinsic); `build` gives its code."""

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build = build

    @cached_property
    def intrinsic(self) -> Any:
        """Numba's object for it."""
        from numba.extending import intrinsic

        return intrinsic(self._build)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a global function of arrays and scalars; the compiled code is cached between processes."""
    return Kernel(function, _BORROWING)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a helper that LLVM is asked to inline into the kernels that call it."""
    return Kernel(function, _INLINED)


def allocating_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that makes arrays of its own; not for inner loops."""
    return Kernel(function, _COUNTING)


def uncached(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a helper whose code is kept only as a part of the cached kernel that it is inlined into."""
    return Kernel(function, {**_INLINED, "cache": False})


@cache
def _numba() -> Any:
    """Numba, told where to keep compiled kernels and what the objects of this module are."""
    import numba
    from numba.core import config

    if "NUMBA_CACHE_DIR" not in os.environ:
        vars(config)["CACHE_DIR"] = str(cache_folder())
    _teach_numba()
    return numba


def _teach_numba() -> None:
    """A global Kernel in a kernel's code means its dispatcher, a global Instruction its intrinsic."""
    from numba.core import registry, types
    from numba.extending import typeof_impl

    def type_of_kernel(value: Kernel[Any, Any], context: Any) -> Any:
        return types.Dispatcher(value.dispatcher)

    def type_of_instruction(value: Instruction, context: Any) -> Any:
        typing = registry.cpu_target.typing_context
        intrinsic = value.intrinsic
        typing.refresh()  # it may just have been made
        return typing.resolve_value_type(intrinsic)

    typeof_impl.register(Kernel)(type_of_kernel)
    typeof_impl.register(Instruction)(type_of_instruction)


def kernels_digest(package: Path) -> str:
    """A hash (hex) over the contents of all files below `package` with kernels, or with constants of theirs."""
    digest = hashlib.blake2b(digest_size=8)
    for room in sorted(path for path in package.iterdir() if path.is_dir()):
        for path in sorted(room.glob("**/*.py")):
            text = path.read_bytes()
            shared = path.parent.name in ("kernels", "maps") or path.name in ("events.py", "image.py")
            if shared or b"formats.jit import" in text:
                digest.update(path.relative_to(package).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()


@cache
def cache_folder() -> Path:
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

