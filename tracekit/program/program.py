"""The program of a trace: the image tables of all its units joined into one set with global indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, FIRST_PATH, NONE, RECORDED
from tracekit.program import validation
from tracekit.program.callees import Resolver, resolve
from tracekit.program.linker import Rows, UnitLike, link
from tracekit.program.tables import U4, U8, Tables, string_at


class ImageLike(Protocol):
    """One image (executable or shared library) as a reader or a test builder gives it."""

    @property
    def number(self) -> int:
        """Counts the images of a trace from 0."""

    @property
    def first_path(self) -> int:
        """The first of its path numbers."""

    @property
    def span(self) -> int:
        """How many path numbers it has."""

    @property
    def name(self) -> str:
        """Its file's name."""

    @property
    def units(self) -> Sequence[UnitLike]:
        """Its translation units."""

    @property
    def functions(self) -> Rows:
        """Rows {unit, function, first}: path k of that function has number first_path + first + k."""

    @property
    def globals(self) -> Rows:
        """Rows {address, unit, global}."""


@dataclass(frozen=True)
class Program(Tables):
    """The tables, and how profiles show their rows."""

    @classmethod
    def from_images(cls, images: Sequence[ImageLike]) -> Program:
        """Join the units of all images. Raises TracekitError where the tables contradict themselves."""
        units = [unit for image in images for unit in image.units]
        tables, strings, starts = link(units)
        owner = validation.check(tables)
        first_unit = np.cumsum([0] + [len(image.units) for image in images])
        linked, path_row = _number_paths(images, first_unit, tables, starts)
        address, image_of = _place_globals(images, first_unit, starts)
        arity = _arity(path_row, tables["paths"]["words"])
        function_unit = _unit_of("functions", starts)
        resolver = Resolver(tables, linked, function_unit, lambda offset: string_at(strings, offset))
        renamed = {("units" if name == "unit" else name): rows for name, rows in tables.items()}
        return cls(
            **renamed,
            strings=strings,
            unit_hashes=tuple(unit.hash for unit in units),
            source_folders=tuple(_folder(unit) for unit in units for _ in unit.tables["sources"]),
            unit_first_op=starts["ops"],
            unit_first_function=starts["functions"],
            image_names={image.number: image.name for image in images},
            global_address=address,
            global_image=image_of,
            path_row=path_row,
            arity=arity,
            linked=linked,
            op_function=owner["ops"],
            path_function=owner["paths"],
            callees=resolve(tables, _unit_of("calls", starts), resolver),
        )

    @cached_property
    def _symbols(self) -> Any:
        from tracekit.program.symbols import Symbols

        return Symbols(self)

    def function_name(self, function: int) -> str:
        """The demangled name of a function."""
        name: str = self._symbols.function_name(int(function))
        return name

    def callee_name(self, call: int) -> str:
        """What the function that a call site, a row of ``calls``, names is called; empty if it is called by pointer."""
        name: str = self._symbols.callee_name(int(call))
        return name

    def instruction(self, op: int, free: bool = False) -> dict[str, Any]:
        """An instruction as profiles show it; `free` says that it freed heap memory."""
        row: dict[str, Any] = self._symbols.instruction(int(op), free)
        return row

    def place(self, location: int) -> dict[str, Any]:
        """File, line and column of a row of ``locations``; empty and zeros for NONE."""
        place: dict[str, Any] = self._symbols.place(int(location))
        return place

    def phi_place(self, phi: int) -> dict[str, Any]:
        """File, line and column of a row of ``phis``; ``nearby`` is true if that is only what stands near."""
        place: dict[str, Any] = self._symbols.phi_place(int(phi))
        return place

    def exit_place(self, exit_row: int) -> dict[str, Any]:
        """File, line and column of a row of ``loop_exits``; ``nearby`` is true if that is only what stands near."""
        place: dict[str, Any] = self._symbols.exit_place(int(exit_row))
        return place

    def loop(self, loop: int) -> dict[str, Any]:
        """A loop as profiles show it: function, file, line, column, depth; in system headers also ``called_at``."""
        row: dict[str, Any] = self._symbols.loop(int(loop))
        return row

    def source_loop(self, loop: int) -> dict[str, Any]:
        """A loop as it stands in the source: as :meth:`loop`, with the function whose text it is, its depth therein.

        ``inlined_at``: where that function was inlined into the one that the loop was compiled in, innermost first.
        """
        row: dict[str, Any] = self._symbols.source_loop(int(loop))
        return row

    def call_callees(self, call: int) -> U4:
        """The functions (rows) that a call site, a row of ``calls``, may enter."""
        first = int(self.callees.first[call])
        return self.callees.functions[first : first + int(self.callees.count[call])]


def _folder(unit: UnitLike) -> str:
    return unit.tables["folder"]["byte"].tobytes().decode("utf-8", "replace")


def _unit_of(table: str, starts: Mapping[str, NDArray[np.int64]]) -> U4:
    """The unit of each row of `table`."""
    start = starts[table]
    return np.repeat(np.arange(len(start) - 1, dtype=np.uint32), np.diff(start))


def _image_rows(
    image: ImageLike, rows: Rows, field_name: str, first_unit: int, start: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows {unit, `field_name`} of an image -> global rows."""
    unit = rows["unit"].astype(np.int64)
    if bool(np.any(unit >= len(image.units))):
        raise TracekitError(f"The trace is damaged: image {image.number} names a unit that it does not have.")
    count = start[first_unit + unit + 1] - start[first_unit + unit]
    if bool(np.any(rows[field_name] >= count)):
        raise TracekitError(f"The trace is damaged: image {image.number} names a {field_name} that does not exist.")
    return start[first_unit + unit] + rows[field_name].astype(np.int64)


def _number_paths(
    images: Sequence[ImageLike],
    first_unit: NDArray[np.int64],
    tables: Mapping[str, Rows],
    starts: Mapping[str, NDArray[np.int64]],
) -> tuple[NDArray[np.bool_], U4]:
    """Which functions are linked, and the table from record id to row of ``paths``."""
    functions = tables["functions"]
    linked = np.zeros(len(functions), np.bool_)
    total = max([FIRST_PATH] + [image.first_path + image.span for image in images])
    # An id costs the program one byte; more than a few per path (padding, dropped code) are a forgery.
    if total > 65536 + 256 * len(tables["paths"]):
        raise TracekitError("The trace is damaged: an image claims more path numbers than its tables justify.")
    path_row = np.full(total, NONE, np.uint32)
    for position, image in enumerate(images):
        rows = _image_rows(image, image.functions, "function", int(first_unit[position]), starts["functions"])
        linked[rows] = True
        first = image.functions["first"].astype(np.int64)
        count = functions["paths"][rows].astype(np.int64)
        if bool(np.any(first + count > image.span)):
            raise TracekitError(f"The trace is damaged: image {image.number} has a path outside its range.")
        numbers = validation.runs(image.first_path + first, count)
        if bool(np.any(numbers < FIRST_PATH)) or bool(np.any(path_row[numbers] != NONE)):
            raise TracekitError(f"The trace is damaged: path numbers of image {image.number} are taken.")
        path_row[numbers] = validation.runs(functions["first_path"][rows], count)
    return linked, path_row


def _place_globals(
    images: Sequence[ImageLike], first_unit: NDArray[np.int64], starts: Mapping[str, NDArray[np.int64]]
) -> tuple[U8, U4]:
    count = int(starts["globals"][-1])
    address, image_of = np.zeros(count, np.uint64), np.full(count, NONE, np.uint32)
    for position, image in enumerate(images):
        first, last = starts["globals"][first_unit[position]], starts["globals"][first_unit[position + 1]]
        image_of[first:last] = image.number
        rows = _image_rows(image, image.globals, "global", int(first_unit[position]), starts["globals"])
        address[rows] = image.globals["address"]
    return address, image_of


def _arity(path_row: U4, words: U4) -> U4:
    arity = np.full(len(path_row), NONE, np.uint32)
    for code in RECORDED:
        arity[code] = len(BY_CODE[code].words)
    used = path_row != NONE
    arity[used] = words[path_row[used]]
    return arity
