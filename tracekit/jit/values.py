"""The arguments of kernels as machine code takes them: words, and what tells their types.

Numba is not needed for it: a kernel whose code is there runs without.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

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


def told(value: Any) -> tuple[Hashable, bytes]:
    """What Numba's type of `value` depends on, and the words of its LLVM arguments, eight bytes each.

    Raises UnknownTypeError for what is neither an array nor a number, None, or a tuple of such.
    """
    if type(value) is np.ndarray:
        return _of_array(value)
    if isinstance(value, tuple):
        parts = [told(part) for part in value]
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
