"""Kernels called as the machine code that they are, without Numba, which takes most of a second to import.

For each combination of argument types a kernel's code is kept on disk with all that it calls (object_cache.py), and
called by a function ``i64 run(words, results)``: `words` are the kernel's arguments (values.py). Numba makes the code
(native_code.py), in another process if possible (background.py). This process imports Numba only for kernels that its
dispatcher alone can call: those with arguments or results that are neither numbers, nor arrays among the arguments, nor
tuples of these.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tracekit.jit import object_cache
from tracekit.jit.cache import CHECKS_ALL_BOUNDS, CHECKS_BOUNDS, digest, name_of, stamp, versions
from tracekit.jit.values import UnknownTypeError, kind_and_words

if TYPE_CHECKING:
    from tracekit.jit.kernel import Kernel

RUN = "run"
"""The function that is called."""


class Code(NamedTuple):
    """The code of a kernel for some types of arguments."""

    run: Callable[[bytes, Any], int]
    results: Sequence[str]
    """What the words of the result are: ``i``, ``u``, ``b``, ``f``: signed or unsigned, truth values, floats."""
    is_tuple: bool
    loaded: Any
    """What keeps it in memory."""
    address: int
    """Where it is."""

    def room(self) -> Any:
        """Words for the result."""
        return (ctypes.c_int64 * max(len(self.results), 1))()

    def result(self, words: Any) -> Any:
        """What the kernel gives back."""
        if self.results == ["i"] and not self.is_tuple:
            return words[0]
        values = tuple(_value(form, word) for form, word in zip(self.results, words))
        if self.is_tuple:
            return values
        return values[0] if values else None


class NativeKernel:
    """A kernel's code by the types of its arguments."""

    def __init__(self, kernel: Kernel[..., Any]) -> None:
        self._kernel = kernel
        self._codes: dict[Hashable, Code | None] = {}
        self._last: tuple[Hashable, Code | None] = (None, None)
        self._coming: dict[Hashable, threading.Thread] = {}
        self.compiled = 0
        """Types for which this process had to compile it."""

    @property
    def signatures(self) -> frozenset[Hashable]:
        """The types of arguments that it has been called with."""
        return frozenset(self._codes)

    def call(self, arguments: Sequence[Any]) -> Any:
        """Run it."""
        try:
            described = [kind_and_words(argument) for argument in arguments]
        except UnknownTypeError:
            return self._kernel.dispatcher(*arguments)
        code = self.code_for(tuple(kind for kind, _ in described), arguments)
        if code is None:
            return self._kernel.dispatcher(*arguments)
        results = code.room()
        problem = code.run(b"".join([words for _, words in described]), results)
        if problem:
            raise_problem(problem)
        return code.result(results)

    def code_for(self, kinds: Hashable, arguments: Sequence[Any]) -> Code | None:
        """The code for these types, which are most often those of the last call: comparing takes less than hashing."""
        last, code = self._last
        if kinds != last:
            code = self._codes[kinds] if kinds in self._codes else self._find(kinds, arguments)
            self._last = kinds, code
        return code

    def begin(self, arguments: Sequence[Any]) -> None:
        """Have another process compile the code for such arguments, if it is not there, while this thread goes on."""
        try:
            kinds = tuple(kind_and_words(argument)[0] for argument in arguments)
        except UnknownTypeError:
            return
        if kinds not in self._codes and kinds not in self._coming and not object_cache.has(self._key(kinds)):
            thread = threading.Thread(target=self._come, args=(kinds,), daemon=True)
            thread.start()
            self._coming[kinds] = thread  # not before: other threads join what they find here

    def _come(self, kinds: Any) -> None:
        """Never compiles here: this process may end meanwhile, and LLVM with it, whatever it is at."""
        from tracekit.jit.lock import one_process

        key = self._key(kinds)
        with (
            contextlib.suppress(Exception),
            one_process(key),
        ):  # who needs the code compiles it then, and raises what is wrong
            whole = object_cache.read(key) or self._made_beside(key, kinds)
            if whole is not None:
                self._codes[kinds] = _loaded(whole)

    def _find(self, kinds: Hashable, arguments: Sequence[Any]) -> Code | None:
        """The code for these types: that of an earlier process, or compiled now."""
        from tracekit.jit.lock import one_process

        coming = self._coming.get(kinds)
        if coming is not None:
            coming.join()
            if kinds in self._codes:
                return self._codes[kinds]
        key = self._key(kinds)
        whole = object_cache.read(key)
        if whole is None:
            with one_process(key):
                whole = object_cache.read(key) or self._make(key, kinds, arguments)
        self._codes[kinds] = code = _loaded(whole) if whole else None
        return code

    def _make(self, key: str, kinds: Any, arguments: Sequence[Any]) -> bytes:
        whole = self._made_beside(key, kinds)
        if whole is None:
            from tracekit.jit.native_code import code_of

            whole = self._kept(key, code_of(self._kernel, arguments))
        return whole

    def _made_beside(self, key: str, kinds: Any) -> bytes | None:
        """What another process makes, if one can."""
        from tracekit.jit import background

        whole = background.code_of(self._kernel, kinds)
        return None if whole is None else self._kept(key, whole)

    def _kept(self, key: str, whole: bytes) -> bytes:
        self.compiled += 1
        object_cache.write(key, whole)
        object_cache.forget_unused()
        return whole

    def _key(self, kinds: Hashable) -> str:
        return key_of_code(self._kernel, kinds)


def key_of_code(kernel: Kernel[..., Any], kinds: Hashable) -> str:
    """What the code of a kernel depends on, for arguments of these kinds (values.kind_and_words)."""
    from tracekit.jit.machine_code import target

    function = kernel.function
    file = Path(function.__code__.co_filename)
    checks = f"{CHECKS_BOUNDS} {CHECKS_ALL_BOUNDS}"
    names = (name_of(file), digest(file), stamp(file), function.__qualname__, checks, repr(kinds))
    line = str(function.__code__.co_firstlineno)
    return object_cache.key_of([*(name.encode() for name in (*names, line, *versions())), target()])


def _loaded(whole: bytes) -> Code | None:
    from tracekit.jit import machine_code

    head, _, code = whole.partition(b"\n")
    description = json.loads(head)
    if not description["callable"]:
        return None
    loaded = machine_code.Loaded(code, {}, [RUN])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p)(loaded.functions[RUN])
    return Code(run, description["results"], description["is_tuple"], loaded, loaded.functions[RUN])


def _value(form: str, word: int) -> Any:
    if form == "i":
        return word
    if form == "u":
        return word & (1 << 64) - 1
    if form == "b":
        return bool(word)
    return ctypes.c_double.from_buffer(ctypes.c_int64(word)).value


def raise_problem(problem: int) -> None:
    """Raise what a kernel's code returned in place of 0."""
    from tracekit.jit.exceptions import raise_at

    raise_at(problem)
