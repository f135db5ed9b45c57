"""Compiles kernels in other processes, so that two kernels that are needed at once use two processors.

Numba compiles one function at a time in a process. One worker process is kept for the next kernel, because it knows the
callees of the last one. Another is started while that one is busy, and ends when there is nothing left to compile.

Workers compile only tracekit's own kernels. To find another author's kernel a worker would have to import its file
again, and would execute whatever else the file does.
"""

from __future__ import annotations

import atexit
import importlib
import os
import pickle
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tracekit.jit import worker
from tracekit.jit.compilations import compiling
from tracekit.jit.worker import Worker

if TYPE_CHECKING:
    from tracekit.jit.kernel import Kernel

_idle: list[Worker] = []
_all: list[Worker] = []


def code_of(kernel: Kernel[..., Any], kinds: Sequence[Hashable]) -> bytes | None:
    """The code of a kernel (native_code.code_of) for arguments of these kinds (values.kind_and_words).

    None if another process cannot make it: of a kernel that is not tracekit's own, or that does not compile. Raises
    EndedError if this process ends.
    """
    recipe = recipe_of(kernel)
    if recipe is None or worker.is_here:
        return None
    at_work = _idle.pop() if _idle else _another()
    try:
        with compiling():
            made: bytes = at_work.call(_made, *recipe, kinds)
    except (RuntimeError, ImportError, pickle.PicklingError, AttributeError):
        return None
    finally:
        _give_back(at_work)
    return made


def recipe_of(kernel: Kernel[..., Any]) -> tuple[Callable[..., Kernel[..., Any]], tuple[Any, ...]] | None:
    """How another process finds a kernel: a global function and its arguments. None for one that is not tracekit's."""
    if kernel.recipe is not None:
        return kernel.recipe
    module, name = kernel.function.__module__, kernel.function.__qualname__
    is_global = module.startswith("tracekit.") and getattr(importlib.import_module(module), name, None) is kernel
    return (_named, (module, name)) if is_global else None


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _another() -> Worker:
    _all.append(Worker())
    return _all[-1]


def _give_back(worker: Worker) -> None:
    """Keep it for the next kernel, unless one waits for that already: each takes as much memory as Numba does."""
    if worker.may_work and not _idle:
        _idle.append(worker)
    elif worker in _all:
        _all.remove(worker)
        worker.end()


def _made(find: Callable[..., Any], what: tuple[Any, ...], kinds: Sequence[Hashable]) -> bytes:
    """What the other process does."""
    from tracekit.jit import native_code, values

    return native_code.code_of(find(*what), [values.example(kind) for kind in kinds])


@atexit.register
def _end() -> None:
    while _all:
        _all.pop().end()


def _forget() -> None:
    """In a process that was forked: the workers are those of the one before."""
    _idle.clear()
    _all.clear()


os.register_at_fork(after_in_child=_forget)
