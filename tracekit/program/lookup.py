"""Functions by name and loops by place, as users name them on the command line (--function, --loop, --carried-by)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.program.fates import fate_at, fate_text
from tracekit.program.function_names import LONGEST, brief, shorter_names
from tracekit.program.sources import is_meant

if TYPE_CHECKING:
    from tracekit.program.program import Program


def functions_named(program: Program, name: str) -> NDArray[np.uint8]:
    """1 for each function with this name: demangled, with or without its parameters, as text shows it, which may be
    several (``f<...>``), or as the linker knows it.

    Raises TracekitError, with names like it, if there is none.
    """
    names: dict[str, list[int]] = {}
    for row in range(len(program.functions)):
        for known in names_of(program, row):
            names.setdefault(known, []).append(row)
    return _chosen(names, name, len(program.functions), f"The trace's program has no function {name!r}")


def loops_at(program: Program, place: tuple[str, int]) -> NDArray[np.uint8]:
    """1 for each loop at FILE:LINE; the file may be given by its last components, if no path is just these.

    Raises TracekitError, with the file's loops that are nearest, if there is none.
    """
    file, line = place
    names: dict[str, list[int]] = {}
    ending: list[int] = []
    lines: set[int] = set()
    compilation = program.source_names.compilation
    for row in range(len(program.loops)):
        loop = program.loop(row)
        names.setdefault(f"{loop['file']}:{loop['line']}", []).append(row)
        if loop["file"] and is_meant(file, loop["file"], compilation):
            lines.add(loop["line"])
            if loop["file"] != file and loop["line"] == line:
                ending.append(row)
    if ending:
        names.setdefault(f"{file}:{line}", ending)  # a whole path stands for itself
    near = [f"{file}:{other}" for other in sorted(lines, key=lambda other: abs(other - line))]
    place_text = f"{file}:{line}"
    sentence = f"The trace's program has no loop at {place_text}"
    if place_text not in names and (fate := fate_at(program, place)):
        raise TracekitError(fate_text(fate))
    return _chosen(names, place_text, len(program.loops), sentence, near)


def one_place(program: Program, place: tuple[str, int]) -> tuple[str, int]:
    """The whole file name and the line of the loops at FILE:LINE; the file may be given by its last components.

    Raises TracekitError if there is no such loop, or if loops of several files may be meant.
    """
    loops = [program.loop(row) for row in np.flatnonzero(loops_at(program, place)).tolist()]
    places = sorted({(loop["file"], loop["line"]) for loop in loops})
    if len(places) > 1:
        raise TracekitError(f"{place[0]}:{place[1]} may be {', '.join(f'{file}:{line}' for file, line in places)}.")
    return places[0]


def loop_around(program: Program, place: tuple[str, int]) -> tuple[str, int]:
    """The whole file name and the line of the loops that begin at FILE:LINE, or else of the innermost around that line.

    Raises TracekitError as :func:`one_place`.
    """
    file, line = place
    compilation = program.source_names.compilation
    begins: dict[str, int] = {}
    for row in range(len(program.loops)):
        loop = program.loop(row)
        around = loop["line"] <= line <= int(program.loops["end_line"][row])
        if loop["line"] and around and is_meant(file, loop["file"], compilation):
            begins[loop["file"]] = max(begins.get(loop["file"], 0), loop["line"])
    exact = begins.get(file)
    if exact is not None or len(begins) == 1:
        return (file, exact) if exact is not None else next(iter(begins.items()))
    return one_place(program, place)


def _chosen(
    names: Mapping[str, list[int]], name: str, count: int, sentence: str, like: Sequence[str] = ()
) -> NDArray[np.uint8]:
    if name not in names:
        near = like[:5] or _near(name, [known for known in names if 0 < len(known) <= LONGEST])
        raise TracekitError(f"{sentence}; there is {', '.join(near)}." if near else f"{sentence}.")
    chosen = np.zeros(count, np.uint8)
    chosen[names[name]] = 1
    return chosen


def _near(name: str, known: list[str]) -> list[str]:
    """At most five names like `name`: those that hold it, or look like it, or else some that there are."""
    holding = sorted((candidate for candidate in known if name.lower() in candidate.lower()), key=len)
    similar = difflib.get_close_matches(name, known, 5, 0.5)
    return list(dict.fromkeys([*holding, *similar, *([] if holding or similar else sorted(known))]))[:5]


def names_of(program: Program, function: int) -> set[str]:
    """What the command line may call a function: as shown, shorter, as a demangler has it, or as the linker does."""
    name = program.function_name(function)
    names = {*shorter_names(name), brief(name)}
    return {*names, *(name.replace(*_STRING) for name in names), program.text(int(program.functions["name"][function]))}


_STRING = "std::string", "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>"
"""What the image writes for what demanglers do."""
