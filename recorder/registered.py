"""Images as the program registered them in the pool (runtime/pool.h)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.recorder.pool import DamagedPoolError, Pool

MOST_PATHS = 1 << 28
"""Paths of one image; more are none."""

# Mirrors of structs in runtime/pool.h; their sizes are asserted there.
_IMAGE = np.dtype(
    [("low", "<u8"), ("span", "<u8"), ("functions", "<u8"), ("units", "<u8"), ("globals", "<u8"), ("name", "<u8"),
     ("function_rows", "<u4"), ("unit_rows", "<u4"), ("global_rows", "<u4"), ("name_bytes", "<u4"),
     ("loaded", "<u4"), ("unloaded", "<u4"), ("identity", "<u8")]
)  # fmt: skip
_FUNCTION = np.dtype([("first", "<u8"), ("unit", "<u4"), ("function", "<u4"), ("paths", "<u4"), ("reserved", "<u4")])
_UNIT = np.dtype([("offset", "<u8"), ("bytes", "<u8")])
_GLOBAL = np.dtype([("address", "<u8"), ("unit", "<u4"), ("global", "<u4")])


class RegisteredImage(NamedTuple):
    """An image as the program registered it.

    ``low`` and ``span``: its record ids are ``low .. low + span - 1``. ``functions``: rows (first, unit, function,
    paths), ``first`` counting from ``low``. ``globals``: rows (address, unit, global). ``units``: their tables.
    ``loaded``: the epoch from which on it was loaded.
    """

    name: str
    low: int
    span: int
    loaded: int
    functions: NDArray[Any]
    globals: NDArray[Any]
    units: list[bytes]


def registered_image(pool: Pool, number: int) -> RegisteredImage:
    """Copy a registration (``number`` below ``status().images``) out of the pool.

    Raises DamagedPoolError if its rows point out of the image or of the pool.
    """
    entry = np.frombuffer(pool.copied(pool.image_offset(number), _IMAGE.itemsize), _IMAGE)[0]
    units = _rows(pool, _UNIT, int(entry["units"]), int(entry["unit_rows"]))
    image = RegisteredImage(
        name=pool.copied_table(int(entry["name"]), int(entry["name_bytes"])).decode(errors="replace"),
        low=int(entry["low"]),
        span=int(entry["span"]),
        loaded=int(entry["loaded"]),
        functions=_rows(pool, _FUNCTION, int(entry["functions"]), int(entry["function_rows"])),
        globals=_rows(pool, _GLOBAL, int(entry["globals"]), int(entry["global_rows"])),
        units=[pool.copied_table(int(unit["offset"]), int(unit["bytes"])) for unit in units],
    )
    _check(image)
    return image


def _rows(pool: Pool, dtype: np.dtype[Any], offset: int, rows: int) -> NDArray[Any]:
    return np.frombuffer(pool.copied_table(offset, rows * dtype.itemsize), dtype)


def _check(image: RegisteredImage) -> None:
    """Raise DamagedPoolError if a row names a unit or an id that the image does not have."""
    rows = image.functions
    if (
        image.span > min(MOST_PATHS, 2 * int(rows["paths"].sum(dtype=np.uint64)) + 64 * len(rows))
        or image.low > 1 << 56
        or (rows["first"] > image.span).any()
        or (rows["first"] + rows["paths"] > image.span).any()
        or (rows["unit"] >= len(image.units)).any()
        or (image.globals["unit"] >= len(image.units)).any()
    ):
        raise DamagedPoolError
