"""The one way to compile a kernel: a typed decorator around Numba, cached on disk and without the GIL.

Numba takes half a second to import, so nothing here imports it before a kernel is called: what the decorators return
only remembers the function. A kernel that calls another finds it through :func:`_teach_numba`, and compiles it as a
part of itself (callee.py).

Kernels borrow their arrays: they run without Numba's reference counting. With it, a tuple of arrays costs an atomic
operation per array at each call, a quarter of a microsecond for the state of a replay; without it, nothing. The price:
a kernel cannot make an array (Numba then says that NRT is required). The few that must are ``allocating_kernel``.

Where compiled code is kept is told in cache.py. Numba does not see that a decorator's options have changed: a
function takes one decorator of these, always the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, Generic, ParamSpec, TypeVar

from tracekit.jit.cache import CHECKS_ALL_BOUNDS, CHECKS_BOUNDS

P = ParamSpec("P")
R = TypeVar("R")

# What is not given here a callee takes over from the first caller that it is compiled for: forceinline, too.
_COUNTING: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "forceinline": False,
    "boundscheck": CHECKS_ALL_BOUNDS,
}
_BORROWING: dict[str, Any] = {**_COUNTING, "_nrt": False}
_INLINED: dict[str, Any] = {**_BORROWING, "forceinline": True}


class Kernel(Generic[P, R]):
    """A function that Numba compiles when it is first called, from Python or from another kernel."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.function = function
        self._options = options
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher for calls from Python."""
        from tracekit.jit.callee import KernelCompiler
        from tracekit.jit.readonly_cache import KernelCache

        made = _numba().njit(**{**self._options, "cache": False}, pipeline_class=KernelCompiler)(self.function)
        if self._options["cache"]:
            try:
                made._cache = KernelCache(self.function)  # type: ignore[no-untyped-call]  # as enable_caching does
            except RuntimeError as error:
                if "cannot cache" not in str(error):
                    raise
                # A function without a file: it is compiled for this process alone.
            else:
                made.compile = self._compiled_once(made.compile, made._cache.cache_path)
        return made

    def _compiled_once(self, compiled: Callable[[Any], Any], folder: str) -> Callable[[Any], Any]:
        """Numba's method that loads or compiles the code for a signature: one process at a time."""
        from tracekit.jit.lock import one_process

        def compile_once(signature: Any) -> Any:
            with one_process(folder, self.function.__qualname__, str(signature)):
                return compiled(signature)

        return compile_once

    @cached_property
    def callee(self) -> Any:
        """Numba's dispatcher for calls from other kernels, whose code it becomes a part of."""
        from tracekit.jit.callee import CalleeCompiler, CalleeLibrary, compile_callee
        from tracekit.jit.callee_cache import CalleeCache

        options = {**self._options, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        made = _numba().njit(**options, pipeline_class=CalleeCompiler)(self.function)
        if self._options["cache"] and os.path.isfile(self.function.__code__.co_filename):
            made._cache = CalleeCache(self.function, CalleeLibrary)
        made.compile = partial(compile_callee, made)
        return made

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
    """Compile a global function of arrays and scalars; the compiled code is cached between processes.

    Where another kernel calls it, it stays a function of its own, so that what is seldom done costs the rest nothing.
    """
    return Kernel(function, _BORROWING)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a helper that becomes a part of the kernels that call it."""
    return Kernel(function, _INLINED)


def allocating_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that makes arrays of its own; not for inner loops."""
    return Kernel(function, _COUNTING)


def uncached(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a helper whose code is kept only as a part of the cached kernel that it is inlined into.

    What modules' authors write is compiled so, and nothing else: it is what TRACEKIT_CHECK_BOUNDS=1 is for.
    """
    return Kernel(function, {**_INLINED, "cache": False, "boundscheck": CHECKS_BOUNDS})


@cache
def _numba() -> Any:
    """Numba, told what the objects of this module are."""
    import numba

    from tracekit.jit.compilations import announce

    _teach_numba()
    announce()
    return numba


def _teach_numba() -> None:
    """A global Kernel in a kernel's code means its `callee`, a global Instruction its intrinsic."""
    from numba.core import registry
    from numba.extending import typeof_impl

    from tracekit.jit.callee import CalleeType

    def type_of_kernel(value: Kernel[Any, Any], context: Any) -> Any:
        return CalleeType(value.callee)

    def type_of_instruction(value: Instruction, context: Any) -> Any:
        typing = registry.cpu_target.typing_context
        intrinsic = value.intrinsic
        typing.refresh()  # it may just have been made
        return typing.resolve_value_type(intrinsic)

    typeof_impl.register(Kernel)(type_of_kernel)
    typeof_impl.register(Instruction)(type_of_instruction)
