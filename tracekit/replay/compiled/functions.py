"""Numba's functions as LLVM sees them: what modules do for an event, and what the replay kernels do seldom."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard

from tracekit.jit import object_cache
from tracekit.jit.background import recipe_of
from tracekit.jit.native import key_of_code
from tracekit.jit.values import example, kind_and_words, leaves
from tracekit.jit.worker import Worker


@dataclass(frozen=True)
class NumbaFunction:
    """A function for kernels, compiled for some arguments as code that is linked into its callers."""

    name: str
    code: bytes
    """LLVM bitcode, with all that it calls."""
    used: tuple[int, ...]
    """Which of the arguments that Numba makes of its own it has (jit/arguments.py)."""

    @classmethod
    def of(cls, kernel: Any, arguments: Sequence[Any], worker: Worker | None = None) -> NumbaFunction:
        """Compile `kernel` for arguments like these, or find it compiled; by another process, if that can.

        What is tracekit's own is kept for other replays, which then need no Numba.
        """
        kinds = tuple(kind_and_words(argument)[0] for argument in arguments)
        if not kernel.is_native:  # it stands in no file, or depends on more than that
            return cls._made(kernel, arguments, kinds, worker)
        key = f"bitcode-{key_of_code(kernel, kinds)}"
        kept = object_cache.read(key)
        if kept is not None:
            head, _, code = kept.partition(b"\0")
            name, used = json.loads(head)
            return cls(name, zstandard.decompress(code), tuple(used))
        made = cls._made(kernel, arguments, kinds, worker)
        head = json.dumps([made.name, made.used]).encode()
        object_cache.write(key, head + b"\0" + zstandard.compress(made.code))
        return made

    @classmethod
    def _made(cls, kernel: Any, arguments: Sequence[Any], kinds: Sequence[Any], worker: Worker | None) -> NumbaFunction:
        recipe = recipe_of(kernel) if worker is not None else None
        if worker is None or recipe is None:
            return cls._here(kernel, arguments)
        try:
            made: NumbaFunction = worker.call(_of_kinds, *recipe, kinds)
        except (RuntimeError, ImportError, pickle.PicklingError, AttributeError):
            return cls._here(kernel, arguments)
        return made

    @classmethod
    def _here(cls, kernel: Any, arguments: Sequence[Any]) -> NumbaFunction:
        callee = kernel.callee
        types = tuple(callee.typeof_pyval(argument) for argument in arguments)
        callee.compile(types)
        made = callee.overloads[types]
        return cls(made.fndesc.mangled_name, made.library.bitcode(), made.library.used)

    def call(self, arguments: Sequence[str]) -> str:
        """LLVM's text of a call; ``%result`` and ``%raised`` are places for what it returns and what it raises."""
        return f"call i32 @{quoted(self.name)}({self._list('ptr %result', 'ptr %raised', arguments)})"

    def declaration(self, types: Sequence[str]) -> str:
        """LLVM's text that declares it, for arguments of these types."""
        return f"declare i32 @{quoted(self.name)}({self._list('ptr', 'ptr', types)})"

    def _list(self, result: str, raised: str, parts: Sequence[str]) -> str:
        """Those of the parts that the function has, behind the first two."""
        return ", ".join((result, raised, *(parts[number] for number in self.used)))


def _of_kinds(find: Callable[..., Any], what: Sequence[Any], kinds: Sequence[Any]) -> NumbaFunction:
    """What another process does: `find` the kernel; the kinds of its arguments are as `kind_and_words` gives them."""
    return NumbaFunction.of(find(*what), [example(kind) for kind in kinds])


def quoted(name: str) -> str:
    """A name as LLVM's text has it."""
    return f'"{name}"'


def types_of(value: Any) -> Iterator[str]:
    """LLVM's types of the arguments that Numba makes of `value` (machine.leaves)."""
    if isinstance(value, np.ndarray):
        yield from ("ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * value.ndim))
    elif isinstance(value, tuple):
        for part in value:
            yield from types_of(part)
    else:
        yield "ptr" if value is None else _scalar(value)


def _scalar(value: Any) -> str:
    widths = {np.uint8: "i8", np.uint32: "i32", np.bool_: "i1", bool: "i1"}
    return widths.get(type(value), "i64")


USUAL_LENGTH = 64
"""Elements of an array that has as many for every program, like one of at most that many."""


class Constants:
    """Arguments that stay the same as long as a replay lives, as LLVM's text: addresses are symbols.

    LLVM takes it that different symbols are different memory, so arrays that overlap share one. Lengths that depend on
    the program are symbols, too, with the length as the address: the code is then the same for all programs.
    """

    def __init__(self, values: Any) -> None:
        begins: dict[int, int] = {}  # where an array begins -> where the memory does that it shares with others
        start = end = -1
        for first, behind in sorted({_extent(array) for array in arrays_of(values)}):
            start = start if first < end else first
            begins[first] = start
            end = max(end, behind)
        names: dict[int, str] = {}  # in the order of the values: the same text in each process
        self._symbols: dict[int, str] = {}
        for array in arrays_of(values):
            first = array.ctypes.data
            name = names.setdefault(begins[first], f"data{len(names)}")
            self._symbols[first] = f"getelementptr (i8, ptr @{name}, i64 {first - begins[first]})"
        lengths = [*dict.fromkeys(_lengths_of_programs(values))]
        self._lengths = {length: f"ptrtoint (ptr @length{number} to i64)" for number, length in enumerate(lengths)}
        self.addresses = {name: start for start, name in names.items()}
        self.addresses |= {f"length{number}": length for number, length in enumerate(lengths)}
        """Symbol -> address: what has to be bound when the code is loaded."""

    def text(self, value: Any) -> Iterator[str]:
        """The LLVM arguments that Numba makes of `value`, a part of what this was made with."""
        if isinstance(value, np.ndarray):
            size, *shape = (f"i64 {self._lengths.get(length, length)}" for length in (value.size, *value.shape))
            place = f"ptr {self._symbols[value.ctypes.data]}"
            strides = (f"i64 {stride}" for stride in value.strides)
            yield from ("ptr null", "ptr null", size, f"i64 {value.itemsize}", place, *shape, *strides)
        elif isinstance(value, tuple):
            for part in value:
                yield from self.text(part)
        elif value is None:
            yield "ptr null"
        else:
            yield f"{_scalar(value)} {int(value)}"


def _lengths_of_programs(values: Any) -> Iterator[int]:
    """The lengths of arrays that other programs may have in other lengths: powers of 2 are those of hash tables."""
    for array in arrays_of(values):
        for length in (array.size, *array.shape):
            if length > USUAL_LENGTH and length & (length - 1):
                yield length


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays anywhere in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_of(part)


def _extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """First byte of an array, and the one behind its last."""
    first = array.ctypes.data
    return first, first + max(array.nbytes, 1)


def loads(value: Any, first: int, prefix: str) -> tuple[list[str], list[str]]:
    """Lines that load the arguments that Numba makes of `value` from the words of ``%machine``, and the arguments."""
    lines, names = [], []
    for number, kind in enumerate(types_of(value)):
        name = f"%{prefix}{number}"
        lines.append(f"{name}.at = getelementptr i64, ptr %machine, i64 {first + number}")
        lines.append(f"{name} = load {kind}, ptr {name}.at, !invariant.load !0")
        names.append(f"{kind} {name}")
    return lines, names


def count(value: Any) -> int:
    """How many leaves a value has."""
    return sum(1 for _ in leaves(value))
