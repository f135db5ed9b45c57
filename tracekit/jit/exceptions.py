"""What compiled code raises, found where Numba's code has left it."""

from __future__ import annotations

import ctypes


class _Description(ctypes.Structure):
    """Numba's description of an exception (numba.core.pythonapi)."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("digest", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("is_allocated", ctypes.c_int32),
    )


def exception_at(address: int) -> tuple[Exception, str, int]:
    """The exception that is described at `address`, and the file and the line that it comes from."""
    from numba import cloudpickle

    description = _Description.from_address(address)
    kind, arguments, place = cloudpickle.loads(ctypes.string_at(description.pickled, description.size))
    error: Exception = kind(*(arguments or ()))
    return (error, "", 0) if place is None else (error, place[1], place[2])


def raise_at(address: int) -> None:
    """Raise the exception that is described at `address`, from the place that it comes from."""
    error, file, line = exception_at(address)
    if not file:
        raise error
    exec(compile("\n" * (line - 1) + "raise error", file, "exec"), {"error": error})  # a traceback with that line
