"""What program counters stand for: functions, files and lines of the binaries that they were run from.

Symbols and line tables are read by pyelftools, an optional dependence.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracekit import extras
from tracekit.formats.errors import TracekitError
from tracekit.imports import modules

PAGE = 4096
EXECUTABLE = 1
"""A flag of a segment."""


class Place(NamedTuple):
    """Where a program counter lies, as far as that is known."""

    function: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    binary: str = ""


class _Line(NamedTuple):
    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Binary:
    """A binary at an address; the addresses of its tables are its own, `base` is added at run time."""

    name: str
    base: int
    segments: Sequence[tuple[int, int]]
    """First address and end of what is executable."""
    starts: Sequence[int]
    symbols: Sequence[tuple[int, str]]
    """Size (0: not known) and name of the function that begins at each of `starts`, ascending."""
    line_starts: Sequence[int]
    lines: Sequence[_Line | None]
    """What begins at each of `line_starts`, ascending; None: a gap."""

    def holds(self, counter: int) -> bool:
        """Whether a program counter lies in its code."""
        own = counter - self.base
        return any(first <= own < end for first, end in self.segments)

    def place(self, counter: int) -> Place:
        """Where a program counter in its code lies."""
        own = counter - self.base
        name = self._symbol(own) or f"[{self.name}]"
        found = self.lines[at] if (at := bisect_right(self.line_starts, own) - 1) >= 0 else None
        return Place(name, *(found or ("", 0, 0)), self.name)

    def _symbol(self, own: int) -> str:
        """The function at an address; empty if there is none."""
        at = bisect_right(self.starts, own) - 1
        if at < 0:
            return ""
        size, name = self.symbols[at]
        return name if own - self.starts[at] < size or size == 0 else ""


class Binaries:
    """All binaries that are known."""

    def __init__(self, binaries: Sequence[Binary] = ()) -> None:
        self._binaries = binaries

    def place(self, counter: int) -> Place:
        """Where a program counter lies; of code of no known binary its address alone."""
        for binary in self._binaries:
            if binary.holds(counter):
                return binary.place(counter)
        return Place()

    def sources(self, files: Iterable[str]) -> dict[str, bytes]:
        """The text of those source files that can be read."""
        texts = {}
        for file in sorted(files):
            try:
                with open(file, "rb") as opened:
                    texts[file] = opened.read()
            except OSError:
                continue
        return texts


def known(given: Iterable[tuple[str, int | None]], module_list: str | None = None) -> Binaries:
    """The binaries with these paths and bases, and the names of all others in `module_list`, if that is given.

    A binary without a base lies where the list says, or, without a list, where its own addresses say. Raises
    TracekitError if one cannot be read, or the list does not have it.
    """
    listed = [] if module_list is None else modules.read(module_list)
    loaded = []
    for path, base in given:
        of_name = [each for each in listed if each.name == os.path.basename(path)]
        if base is None and listed and not of_name:
            raise TracekitError(f"{module_list} lists no {os.path.basename(path)}: say where it was, {path}@BASE.")
        loaded.append(load(path, base, of_name[0].ranges[0][0] if of_name else None))
    return Binaries([*loaded, *(Binary(each.name, 0, each.ranges, [], [], [], []) for each in listed)])


def parsed(options: Iterable[str]) -> list[tuple[str, int | None]]:
    """Path and base address of each ``FILE[@BASE]``. Raises ValueError, with a sentence, for one that is neither."""
    return [_parsed(option) for option in options]


def _parsed(option: str) -> tuple[str, int | None]:
    path, at, base = option.rpartition("@")
    if not at:
        return option, None
    try:
        return path, int(base, 16)
    except ValueError:
        raise ValueError(f"--binary takes FILE@BASE with a hexadecimal address, not {option!r}.") from None


def load(path: str, base: int | None, start: int | None = None) -> Binary:
    """Read a binary's symbols and lines. Without a `base`, its first page was at `start`, or where it says itself.

    Raises TracekitError if it is none, or pyelftools is not there.
    """
    extras.require("symbols", "Reading binaries")
    from elftools.elf.elffile import ELFFile

    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            parts = [(each["p_vaddr"], each["p_memsz"], each["p_flags"]) for each in elf.iter_segments("PT_LOAD")]
            segments = [(first, first + size) for first, size, flags in parts if flags & EXECUTABLE]
            symbols = _symbols(elf)
            lines = _lines(elf)
    except OSError as error:
        raise TracekitError(f"Cannot read {path}: {error.strerror}.") from None
    except Exception as error:  # pyelftools raises whatever comes of damaged bytes, MemoryError among others
        raise TracekitError(
            f"{path} is no ELF file whose symbols can be read: {error or type(error).__name__}."
        ) from None
    if not segments:
        raise TracekitError(f"{path} holds no code: it is no program and no library.")
    if base is None:
        base = 0 if start is None or not parts else start - (min(parts)[0] & -PAGE)
    return Binary(
        os.path.basename(path),
        base,
        segments,
        [start for start, _, _ in symbols],
        [(size, name) for _, size, name in symbols],
        [start for start, _ in lines],
        [line for _, line in lines],
    )


def _symbols(elf: Any) -> list[tuple[int, int, str]]:
    """Address, size and name of each function, one for each address."""
    best: dict[int, tuple[int, str]] = {}
    for section in (elf.get_section_by_name(name) for name in (".dynsym", ".symtab")):
        if section is None:
            continue
        for symbol in section.iter_symbols():
            is_function = symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS")
            if is_function and symbol["st_shndx"] != "SHN_UNDEF" and symbol.name:
                best[symbol["st_value"]] = max((symbol["st_size"], symbol.name), best.get(symbol["st_value"], (0, "")))
    return [(start, *best[start]) for start in sorted(best)]


def _lines(elf: Any) -> list[tuple[int, _Line | None]]:
    """The rows of all line tables by address; where a sequence ends there is None."""
    if not elf.has_dwarf_info():
        return []
    dwarf = elf.get_dwarf_info()
    rows: dict[int, _Line | None] = {}
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        folder = _text(unit.get_top_DIE().attributes.get("DW_AT_comp_dir"))
        names = _files(program, folder)
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if state.end_sequence:
                rows.setdefault(state.address, None)
            elif state.line:
                rows[state.address] = _Line(names.get(state.file, ""), state.line, state.column)
    return sorted(rows.items(), key=lambda row: row[0])


def _files(program: Any, folder: str) -> dict[int, str]:
    """The names of a line table's files by their numbers: from 1, from DWARF 5 on from 0."""
    header = program.header
    first = 0 if header.version >= 5 else 1
    folders = [each.decode("utf-8", "replace") for each in header["include_directory"]]
    if first == 1:
        folders.insert(0, folder)
    names = {}
    for number, entry in enumerate(header["file_entry"], first):
        name = entry.name.decode("utf-8", "replace")
        inside = folders[entry.dir_index] if entry.dir_index < len(folders) else ""
        names[number] = os.path.normpath(os.path.join(folder, inside, name))
    return names


def _text(attribute: Any) -> str:
    return attribute.value.decode("utf-8", "replace") if attribute is not None else ""
