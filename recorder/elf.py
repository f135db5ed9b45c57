"""Whether an executable holds instrumented code, read from its ELF section headers."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import BinaryIO

MARK = b"tk_functions"
"""The section that every instrumented image has; strip keeps it."""

ACTIVATIONS = b"tk_activations"
"""That of one built with --windows."""

_PT_INTERP = 3
_DT_NEEDED = 1
_SHT_DYNAMIC = 6
_SHT_DYNSYM = 11
_STT_FUNC = 2


PROBES = b"tk_probes"
"""What of the functions whose calls are recorded: their prototypes."""

STATIC = b"tk_static"
"""That of a static program that was linked with the recorder's runtime."""

_LISTED = re.compile(r"\s*(?:.* => )?(.+) \(0x[0-9a-f]+\)")
"""A library in the dynamic linker's list. Its file has a relative name if it was found by one (LD_LIBRARY_PATH=lib)."""


def is_elf(path: str) -> bool:
    """Whether the file begins as an ELF file does (a script does not)."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def holds_instrumented_code(path: str) -> bool:
    """Whether the ELF file, or a library that the dynamic linker would load with it, has instrumented functions.

    A file that is not a 64-bit little-endian ELF file with section headers has none.
    """
    return _has_mark(path) or any(_has_mark(library) for library in libraries(path))


def keeps_activations(path: str) -> bool:
    """Whether it, or a library that would be loaded with it, was built with --windows."""
    return any(_has_mark(file, ACTIVATIONS) for file in (path, *libraries(path)))


def is_static(path: str) -> bool:
    """Whether the ELF file is an executable that no dynamic linker loads, so that nothing can be preloaded into it."""
    try:
        return not _interpreter(path)
    except (OSError, struct.error):
        return False


def links_recorder(path: str) -> bool:
    """Whether a static program brings the recorder's runtime along."""
    return _has_mark(path, STATIC)


def probes(path: str) -> list[str]:
    """The prototypes of functions that an executable was built to tell the calls of (``cc --intercept``)."""
    try:
        with open(path, "rb") as file:
            names = _section_names(file)
            if PROBES not in names:
                return []
            row = _sections(file)[names.index(PROBES)]
            file.seek(row[4])
            return sorted({text.decode() for text in file.read(row[5]).split(b"\0") if text})
    except (OSError, struct.error):
        return []


def exported_functions(path: str) -> list[str]:
    """The names of the functions that a shared library defines for others, in alphabetical order."""
    with open(path, "rb") as file:
        sections = _sections(file)
        row = next(row for row in sections if row[1] == _SHT_DYNSYM)
        file.seek(row[4])
        symbols = file.read(row[5])
        file.seek(sections[row[6]][4])
        strings = file.read(sections[row[6]][5])
    names = []
    for name, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", symbols):
        if info & 15 == _STT_FUNC and section:
            names.append(strings[name : strings.find(b"\0", name)].decode())
    return sorted(names)


def archived_symbols(path: str) -> set[str]:
    """The names that a static library defines for others, by its index; empty if it has none or cannot be read."""
    try:
        with open(path, "rb") as file:
            if file.read(8) != b"!<arch>\n":
                return set()
            head = file.read(60)
            if head[:16].rstrip() != b"/":
                return set()
            index = file.read(int(head[48:58]))
    except OSError:
        return set()
    return {name.decode() for name in index[4 + 4 * int.from_bytes(index[:4], "big") :].split(b"\0")}


def _has_mark(path: str, mark: bytes = MARK) -> bool:
    try:
        with open(path, "rb") as file:
            return mark in _section_names(file)
    except (OSError, struct.error):
        return False


def _header(file: BinaryIO) -> tuple[int, ...]:
    file.seek(0)
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        raise struct.error("not a 64-bit little-endian ELF file")
    return struct.unpack("<HHIQQQIHHHHHH", head[16:])


def _sections(file: BinaryIO) -> list[tuple[int, ...]]:
    """Rows of the section headers: name, type, flags, address, offset, size, link."""
    _, _, _, _, _, offset, _, _, _, _, size, count, _ = _header(file)
    file.seek(offset)
    return [struct.unpack_from("<IIQQQQI", file.read(size)) for _ in range(count)]


def _section_names(file: BinaryIO) -> list[bytes]:
    strings = _header(file)[12]
    rows = _sections(file)
    if not rows:
        return []
    file.seek(rows[strings][4])
    names = file.read(rows[strings][5])
    return [names[row[0] : names.find(b"\0", row[0])] for row in rows]


def _interpreter(path: str) -> str:
    """The dynamic linker that the executable names, empty if it is static."""
    with open(path, "rb") as file:
        _, _, _, _, offset, _, _, _, size, count, _, _, _ = _header(file)
        for row in range(count):
            file.seek(offset + row * size)
            kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", file.read(size))
            if kind == _PT_INTERP:
                file.seek(at)
                return file.read(length).rstrip(b"\0").decode()
    return ""


def needed(path: str) -> list[str]:
    """The names of the libraries that the ELF file itself asks for, not those that these ask for."""
    try:
        with open(path, "rb") as file:
            rows = [row for row in _sections(file) if row[1] == _SHT_DYNAMIC]
            if not rows:
                return []
            file.seek(rows[0][4])
            entries = file.read(rows[0][5])
            strings = _sections(file)[rows[0][6]]
            file.seek(strings[4])
            names = file.read(strings[5])
    except (OSError, struct.error, IndexError):
        return []
    places = [value for tag, value in struct.iter_unpack("<qQ", entries) if tag == _DT_NEEDED]
    return [os.fsdecode(names[place : names.find(b"\0", place)]) for place in places]


def libraries(path: str) -> list[str]:
    """What the dynamic linker would load with the executable; asked of it, because only it knows all its rules."""
    import subprocess  # seldom needed, and slow to import

    try:
        interpreter = _interpreter(path)
        if not interpreter:
            return []
        listing = subprocess.run([interpreter, "--list", path], capture_output=True, text=True, timeout=30).stdout
    except (OSError, struct.error, subprocess.SubprocessError):
        return []
    files = [match[1] for match in map(_LISTED.fullmatch, listing.splitlines()) if match]
    return [file for file in dict.fromkeys(files) if "/" in file and os.path.exists(Path(file))]
