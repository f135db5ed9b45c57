"""IMAG payloads: one executable or shared library, its path numbers and its units (SPEC.md, "IMAG")."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import FIRST_PATH
from tracekit.formats.planes import in_planes
from tracekit.formats.unit import Unit

FUNCTION = np.dtype([("unit", "<u4"), ("function", "<u4"), ("first", "<u4")])
"""A function that the image has: its path k has the number ``first_path + first + k``."""

GLOBAL = np.dtype([("address", "<u8"), ("unit", "<u4"), ("global", "<u4")])
"""A global variable that the image has, at its run-time address."""

_HEADER = struct.Struct("<8I")


@dataclass(frozen=True)
class Image:
    """One image of the recorded process."""

    number: int
    first_path: int
    span: int
    """Path numbers of the image: ``first_path .. first_path + span - 1``; some may be unused."""
    name: str
    units: Sequence[Unit]
    functions: NDArray[Any]
    """Rows of dtype FUNCTION."""
    globals: NDArray[Any]
    """Rows of dtype GLOBAL."""

    @classmethod
    def parse(cls, payload: bytes) -> Image:
        """Read an IMAG payload. Raises TracekitError if its lengths do not add up, or a unit is damaged."""
        if len(payload) < _HEADER.size:
            raise _damaged()
        number, first_path, span, units, functions, globals_, name_bytes, _ = _HEADER.unpack_from(payload)
        if first_path < FIRST_PATH or first_path + span > 1 << 32:
            raise TracekitError(f"The trace is damaged: image {number} has impossible path numbers.")
        sizes_at = _HEADER.size
        functions_at = sizes_at + 8 * units
        globals_at = _padded(functions_at + FUNCTION.itemsize * functions)
        name_at = globals_at + GLOBAL.itemsize * globals_
        units_at = _padded(name_at + name_bytes)
        if units_at > len(payload):
            raise _damaged()
        sizes = [int(size) for size in np.frombuffer(payload, "<u8", units, sizes_at)]
        if units_at + sum(_padded(size) for size in sizes) != len(payload):
            raise _damaged()
        parsed, at = [], units_at
        for size in sizes:
            parsed.append(Unit.parse(payload[at : at + size]))
            at += _padded(size)
        return cls(
            number,
            first_path,
            span,
            payload[name_at : name_at + name_bytes].decode("utf-8", "replace"),
            parsed,
            np.frombuffer(payload, FUNCTION, functions, functions_at),
            np.frombuffer(payload, GLOBAL, globals_, globals_at),
        )


def build_image(
    number: int,
    first_path: int,
    span: int,
    name: str,
    units: Sequence[bytes],
    functions: NDArray[Any],
    global_rows: NDArray[Any],
) -> bytes:
    """An IMAG payload; `units` are the bytes of each, `functions` and `global_rows` have dtypes FUNCTION and GLOBAL.

    The payload has the units in planes, which readers know since format version 3.
    """
    units = [in_planes(unit) for unit in units]
    encoded = name.encode()
    header = _HEADER.pack(number, first_path, span, len(units), len(functions), len(global_rows), len(encoded), 0)
    sizes = np.array([len(unit) for unit in units], "<u8").tobytes()
    front = _pad(header + sizes + functions.astype(FUNCTION, copy=False).tobytes())
    placed = _pad(global_rows.astype(GLOBAL, copy=False).tobytes() + encoded)
    return front + placed + b"".join(_pad(unit) for unit in units)


def _padded(size: int) -> int:
    return size + -size % 8


def _pad(data: bytes) -> bytes:
    return data.ljust(_padded(len(data)), b"\0")


def _damaged() -> TracekitError:
    return TracekitError("The trace is damaged: an image's tables do not fill its frame.")
