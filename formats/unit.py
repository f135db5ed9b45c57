"""Image tables of one translation unit: from their bytes and back (SPEC.md, "Image tables")."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.image import DTYPES, UNIT_IN_PLANES, UNIT_MAGIC, UNIT_VERSION
from tracekit.formats.planes import HEADER, in_rows

Rows = NDArray[Any]
"""A table: a structured array with one of ``image.DTYPES``."""

_SIZE = slice(16, 24)
"""Where the header says the unit's size."""
_DIRECTORY = np.dtype([("id", "<u4"), ("row_bytes", "<u4"), ("rows", "<u8"), ("offset", "<u8")])
_NAMES = tuple(DTYPES)
_OPTIONAL = (
    *("folder", "options", "causes", "update_parts", "loop_fates", "variable_updates"),
    *("types", "members", "typed", "lines", "counters"),
)
"""Tables that are left out where they are empty."""


@dataclass(frozen=True)
class Unit:
    """The tables of one translation unit by name; every table of ``image.TABLES`` is there, read-only.

    ``hash`` names the unit, in hex: BLAKE2b-64 over its bytes, but for the compilation folder.
    """

    tables: Mapping[str, Rows]
    hash: str

    @classmethod
    def parse(cls, data: bytes) -> Unit:
        """Read a unit, of rows or of planes. What this version does not know is skipped: tables, fields at rows' ends.

        What a row refers to is not looked at here (``replay.program`` checks all references of a trace at once).
        Raises TracekitError if header, directory or strings are damaged.
        """
        if len(data) < HEADER.size:
            raise _damaged("its header is cut short")
        magic, version, count, size = HEADER.unpack_from(data)
        if magic != UNIT_MAGIC:
            raise _damaged("they do not begin with their magic")
        if version not in (UNIT_VERSION, UNIT_IN_PLANES):
            raise TracekitError(
                f"The trace's image tables have version {version}; this tracekit reads version "
                f"{UNIT_IN_PLANES}: install a newer one."
            )
        data = in_rows(data)
        if size != len(data) or count > (len(data) - HEADER.size) // _DIRECTORY.itemsize:
            raise _damaged("their size contradicts their header")
        tables = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}
        seen: set[int] = set()
        for row in np.frombuffer(data, _DIRECTORY, count, HEADER.size):
            number = int(row["id"])
            if number in seen:
                raise _damaged(f"table {number} stands there twice")
            seen.add(number)
            if number < len(_NAMES):
                tables[_NAMES[number]] = _table(data, _NAMES[number], row)
        strings = tables["strings"]["byte"]
        if len(strings) == 0 or strings[0] != 0 or strings[-1] != 0:
            raise _damaged("their strings are not terminated")
        if len(tables["unit"]) != 1:
            raise _damaged("they do not describe one unit")
        for table in tables.values():
            table.flags.writeable = False
        return cls(tables, _hash(data, count))

    @staticmethod
    def build(tables: Mapping[str, Rows]) -> bytes:
        """The bytes of a unit with `tables`, each a structured array with its ``image.DTYPES`` row (or wider rows)."""
        tables = {name: rows for name, rows in tables.items() if name not in _OPTIONAL or len(rows)}
        if "folder" in tables:
            tables["folder"] = tables.pop("folder")  # the last one: the unit's hash is over the bytes before it
        offset = _padded(HEADER.size + _DIRECTORY.itemsize * len(tables))
        directory = np.zeros(len(tables), _DIRECTORY)
        parts: list[bytes] = []
        for row, (name, table) in zip(directory, tables.items()):
            data = np.ascontiguousarray(table).tobytes()
            row["id"], row["row_bytes"] = _NAMES.index(name), table.dtype.itemsize
            row["rows"], row["offset"] = len(table), offset
            parts.append(data.ljust(_padded(len(data)), b"\0"))
            offset += len(parts[-1])
        header = HEADER.pack(UNIT_MAGIC, UNIT_VERSION, len(tables), offset)
        front = header + directory.tobytes()
        return front.ljust(_padded(len(front)), b"\0") + b"".join(parts)

    @property
    def folder(self) -> str:
        """The compilation folder, from which relative paths of ``sources`` start; empty if it is not known."""
        return self.tables["folder"]["byte"].tobytes().decode("utf-8", "replace")

    def text(self, offset: int) -> str:
        """The string at `offset` of the unit's strings. Raises TracekitError if it lies outside."""
        data = self.tables["strings"]["byte"].tobytes()
        if offset >= len(data):
            raise _damaged("a string lies outside")
        return data[offset : data.index(b"\0", offset)].decode("utf-8", "replace")


def _hash(data: bytes, count: int) -> str:
    """The hash of a unit of `count` tables; equal for one build in two folders."""
    hashed = hashlib.blake2b(digest_size=8)
    directory = np.frombuffer(data, _DIRECTORY, count, HEADER.size)
    rows = np.flatnonzero(directory["id"] == _NAMES.index("folder"))
    if not len(rows):
        hashed.update(data)
        return hashed.hexdigest()
    at = HEADER.size + _DIRECTORY.itemsize * int(rows[0])
    front = bytearray(data[: HEADER.size + _DIRECTORY.itemsize * count])
    front[_SIZE] = bytes(8)
    front[at : at + _DIRECTORY.itemsize] = bytes(_DIRECTORY.itemsize)
    hashed.update(front)
    hashed.update(memoryview(data)[len(front) : int(directory["offset"][rows[0]])])
    return hashed.hexdigest()


def _table(data: bytes, name: str, row: Any) -> Rows:
    """The rows of one table, the fields that this version knows."""
    dtype = DTYPES[name]
    row_bytes, rows, offset = int(row["row_bytes"]), int(row["rows"]), int(row["offset"])
    if row_bytes < dtype.itemsize or offset % 8 or offset > len(data) or rows > (len(data) - offset) // row_bytes:
        raise _damaged(f"table {name} lies outside")
    if row_bytes == dtype.itemsize:
        return np.frombuffer(data, dtype, rows, offset) if rows else np.empty(0, dtype)
    known = np.frombuffer(data, np.uint8, rows * row_bytes, offset).reshape(rows, row_bytes)[:, : dtype.itemsize]
    return np.ascontiguousarray(known).view(dtype).reshape(rows)


def _padded(size: int) -> int:
    return size + -size % 8


def _damaged(what: str) -> TracekitError:
    return TracekitError(f"The trace's image tables are damaged: {what}. Record it again.")
