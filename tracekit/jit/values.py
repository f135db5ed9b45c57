"""The arguments of kernels as machine code takes them: words, and what tells their types.

Numba is not needed for it: a kernel whose code is there runs without.
"""

from __future__ import annotations

import importlib
import struct
from array import array
from collections.abc import Hashable, Iterator
from functools import reduce
from typing import Any

import numpy as np

_IMPORTED = ("builtins", "tracekit", "tracekit_generated")

Leaf = int | None
"""What one LLVM argument of a Numba function holds; None for a pointer that is not used."""


def leaves(value: Any) -> Iterator[Leaf]:
    """The LLVM arguments that Numba makes of `value`: an array, a number, None, or a tuple of such."""
    if isinstance(value, np.ndarray):
        yield from (None, None, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield None if value is None else int(value)


class UnknownTypeError(TypeError):
    """A value that only Numba knows how to hand to a kernel."""


def kind_and_words(value: Any) -> tuple[Hashable, bytes]:
    """What Numba's type of `value` depends on, and the words of its LLVM arguments, eight bytes each.

    Raises UnknownTypeError for what is neither an array nor a number, None, or a tuple of such.
    """
    if type(value) is np.ndarray:
        return _of_array(value)
    if isinstance(value, tuple):
        parts = [kind_and_words(part) for part in value]
        kinds = tuple(kind for kind, _ in parts)
        return (_name_of(type(value)), kinds), b"".join(words for _, words in parts)
    if value is None:
        return None, bytes(8)
    return _of_number(value)


def _of_array(value: np.ndarray[Any, Any]) -> tuple[Hashable, bytes]:
    flags = value.flags
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    words = (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
    return (value.dtype, value.ndim, layout, flags.writeable, flags.aligned), array("q", words).tobytes()


def _name_of(kind: type) -> Hashable:
    """What tells a class of tuples from others."""
    return (kind.__module__, kind.__qualname__, getattr(kind, "_fields", None))


def _of_number(value: Any) -> tuple[Hashable, bytes]:
    kind = type(value)
    if kind is int:
        if -(1 << 63) <= value < 1 << 63:
            return "int64", struct.pack("q", value)
        if 0 <= value < 1 << 64:
            return "uint64", struct.pack("Q", value)
    elif kind is bool:
        return "bool", struct.pack("q", value)
    elif kind is float:
        return "float64", struct.pack("d", value)
    elif isinstance(value, (np.integer, np.bool_)):
        return value.dtype.name, struct.pack("Q", int(value) & (1 << 64) - 1)
    raise UnknownTypeError(kind.__name__)


def example(kind: Any) -> Any:
    """Some value that `kind_and_words` says this kind of: what Numba infers a type from, where the value itself is not.

    Raises ImportError for a class that is not tracekit's own: to import somebody's module may do anything.
    """
    if kind is None:
        return None
    if isinstance(kind, str):
        return 0.0 if kind == "float64" else np.dtype(kind).type(0)
    if len(kind) == 2:
        (module, name, fields), kinds = kind
        if module.partition(".")[0] not in _IMPORTED:
            raise ImportError(f"{module} is not imported for its class {name}")
        found: Any = importlib.import_module(module)
        owner = reduce(getattr, name.split("."), found)
        parts = [example(part) for part in kinds]
        return owner(*parts) if fields is not None else owner(parts)
    return _example_of_array(*kind)


def _example_of_array(dtype: Any, dimensions: int, layout: str, is_writeable: bool, is_aligned: bool) -> Any:
    shape = (4,) * dimensions  # with one element all layouts are the same
    room = np.zeros(int(np.prod(shape)) * dtype.itemsize + 1, np.uint8)
    order: Any = "F" if layout == "F" else "C"
    made: Any = np.ndarray(shape, dtype, room, offset=int(not is_aligned), order=order)
    if layout == "A":
        made = made[(slice(None, None, 2),) * dimensions]
    made.flags.writeable = is_writeable
    return made
