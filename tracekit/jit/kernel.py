"""The one way to compile a kernel: a typed decorator around Numba, cached on disk and without the GIL.

Numba takes half a second to import, so nothing here imports it before a kernel has to be compiled: what the decorators
return only remembers the function, and what an earlier process has compiled is called as it is (native.py). A kernel
that calls another finds it through :func:`_teach_numba`, and compiles it as a part of itself (callee.py).

Kernels borrow their arrays: they run without Numba's reference counting. With it, a tuple of arrays costs an atomic
operation per array at each call, a quarter of a microsecond for the state of a replay; without it, nothing. The price:
a kernel cannot make an array (Numba then says that NRT is required): its caller hands it what it fills.

Where compiled code is kept is told in cache.py. Numba does not see that a decorator's options have changed: a
function takes one decorator of these, always the same.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from tracekit.jit.cache import CHECKS_ALL_BOUNDS, CHECKS_BOUNDS

if TYPE_CHECKING:
    from tracekit.jit.native import NativeKernel

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

# What is not given here a callee takes over from the first caller that it is compiled for: forceinline, too.
_BORROWING: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "forceinline": False,
    "boundscheck": CHECKS_ALL_BOUNDS,
    "_nrt": False,
}
_INLINED: dict[str, Any] = {**_BORROWING, "forceinline": True}


class Kernel(Generic[P, R]):
    """A function that Numba compiles when it is first called, from Python or from another kernel."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.function = function
        self._options = options
        self.recipe: tuple[Callable[..., Kernel[..., Any]], tuple[Any, ...]] | None = None
        """How another process gets it, if not by its name (background.py): a global function and its arguments."""
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, for what :attr:`native` cannot call; it compiles for this process alone."""
        from tracekit.jit.callee import KernelCompiler

        return _numba().njit(**{**self._options, "cache": False}, pipeline_class=KernelCompiler)(self.function)

    @cached_property
    def callee(self) -> Any:
        """Numba's dispatcher for calls from other kernels, whose code it becomes a part of."""
        from tracekit.jit.callee import CalleeCompiler, CalleeLibrary, compile_callee
        from tracekit.jit.callee_cache import CalleeCache

        options = {**self._options, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        made = _numba().njit(**options, pipeline_class=CalleeCompiler)(self.function)
        if self._options["cache"] and _stands_in_file(self.function):
            made._cache = CalleeCache(self.function, CalleeLibrary)
        made.compile = partial(compile_callee, made)
        return made

    @cached_property
    def native(self) -> NativeKernel:
        """Its code, called without Numba."""
        from tracekit.jit.native import NativeKernel  # which needs numpy

        return NativeKernel(self)

    @cached_property
    def is_native(self) -> bool:
        """Whether it may be called without Numba: what is kept on disk."""
        return self._options["cache"] and _stands_in_file(self.function) and not self.function.__closure__

    @property
    def was_compiled(self) -> bool:
        """Whether this process had to compile what has run."""
        return "dispatcher" in self.__dict__ or self.native.compiled > 0

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run it, compiled for the types of the arguments."""
        given: Sequence[Any] = arguments
        if named or self.function.__defaults__:
            bound = inspect.signature(self.function).bind(*arguments, **named)
            bound.apply_defaults()
            given = bound.args
        result: R = self.native.call(given) if self.is_native else self.dispatcher(*given)
        return result


def _stands_in_file(function: Callable[..., Any]) -> bool:
    return os.path.isfile(function.__code__.co_filename)


class Instruction:
    """A machine instruction as a function for kernels (numba.extending.intrinsic); `build` gives its code."""

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build = build

    @cached_property
    def intrinsic(self) -> Any:
        """Numba's object for it."""
        from numba.extending import intrinsic

        return intrinsic(self._build)


class Foreign:
    """A function of the C library, for kernels; types by their names in Numba."""

    def __init__(self, name: str, result: str, *arguments: str) -> None:
        self._name = name
        self._types = (result, *arguments)

    @cached_property
    def type(self) -> Any:
        """Numba's object for it."""
        from numba.core import types

        result, *arguments = (getattr(types, name) for name in self._types)
        return types.ExternalFunction(self._name, result(*arguments))


class Late:
    """A module of Numba's or llvmlite's that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def specialised(function: Any) -> Callable[[F], F]:
    """Decorates what chooses an implementation of `function` by Numba's types; compiled as :func:`inlined`."""

    def register(choose: F) -> F:
        _overloads.append((function, choose))
        if _numba.cache_info().currsize:
            _register_overloads()
        return choose

    return register


_overloads: list[tuple[Any, Any]] = []
"""Those that Numba has not been told of."""


def _register_overloads() -> None:
    from numba.core import registry
    from numba.extending import overload

    options: Any = {"forceinline": True, "_nrt": False, "error_model": "numpy"}
    while _overloads:
        function, choose = _overloads.pop(0)
        overload(function, jit_options=options)(choose)
    registry.cpu_target.typing_context.refresh()  # which may be at a function that imports what it calls


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a global function of arrays and scalars; the compiled code is cached between processes.

    Where another kernel calls it, it stays a function of its own, so that what is seldom done costs the rest nothing.
    """
    return Kernel(function, _BORROWING)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a helper that becomes a part of the kernels that call it."""
    return Kernel(function, _INLINED)


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
    """A global Kernel in a kernel's code means its `callee`, a global Instruction its intrinsic, and so on."""
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

    def type_of_foreign(value: Foreign, context: Any) -> Any:
        return value.type

    _register_overloads()
    typeof_impl.register(Foreign)(type_of_foreign)
    typeof_impl.register(Kernel)(type_of_kernel)
    typeof_impl.register(Instruction)(type_of_instruction)
