"""Regions of the source that an assistant asks about, and rows that touch them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.program.sources import is_meant

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Region:
    """A function, lines of a file, or both; what is left out is not asked for."""

    function: str = ""
    file: str = ""
    """Its name, or the last components of its path."""
    first_line: int = 0
    last_line: int = 0
    """0: the same as the first one, or the end of the file if that is 0, too."""
    compilation: str = ""
    """The folder that relative names of files start from, or nothing."""

    def __post_init__(self) -> None:
        if self.first_line < 0 or self.last_line < 0:
            raise TracekitError("Lines of a file are numbered from 1.")
        if (self.first_line or self.last_line) and not self.file:
            raise TracekitError("first_line and last_line are lines of a file: name the file, too.")
        if self.last_line and self.last_line < self.first_line:
            raise TracekitError(f"The last line, {self.last_line}, is before the first, {self.first_line}.")

    def has(self, place: Json) -> bool:
        """Whether an instruction or a loop is in it; code that was inlined is where it was inlined, too."""
        return any(self._has(each) for each in (place, *place.get("inlined_at", ())))

    def _has(self, place: Json) -> bool:
        if self.function and place.get("function") != self.function:
            return False
        if not self.file:
            return True
        if not is_meant(self.file, str(place.get("file", "")), self.compilation):
            return False
        if not self.first_line and not self.last_line:
            return True
        return self.first_line <= int(place.get("line", 0)) <= (self.last_line or self.first_line)


def check(region: Region, places: Sequence[Json]) -> None:
    """Raises TracekitError if no place of a run is in the function, or in the file, of a region."""
    if region.function and not any(
        region.function == each.get("function") for place in places for each in (place, *place.get("inlined_at", ()))
    ):
        raise TracekitError(f"Nothing of this kind was seen in a function {region.function!r}; names are demangled.")
    if region.file and not any(
        is_meant(region.file, str(each.get("file", "")), region.compilation)
        for place in places
        for each in (place, *place.get("inlined_at", ()))
    ):
        raise TracekitError(f"Nothing of this kind was seen in a file {region.file}.")
