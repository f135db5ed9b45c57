"""How names of functions and types are shown in text: those of C++'s templates, and of Rust's library, without what
would fill the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tracekit.program.function_names import LIBRARY, LONGEST, brief

Json = Mapping[str, Any]

SCALARS = frozenset({str, int, float, bool, type(None)})
"""The types of JSON's values that hold no others: most of what there is, and not looked into."""

_NAMED = frozenset({"function", "within", "root", "path", "recursion", "callers", "calls", "call", "callee"})
"""Keys of a profile's JSON whose strings are names of functions, or steps of a context with one."""
_TYPES = frozenset({"type", "also"})
"""Keys of which strings are names of types."""
_DEFAULT = re.compile(r", (?:alloc::alloc::)?Global(?=[,>])")
"""The allocator that boxes, vectors and their kin have if the program does not name one."""
_OF_COMPILER = {
    ".lb": "OpenMP's lower bound",
    ".ub": "OpenMP's upper bound",
    ".omp.iv": "OpenMP's counter",
    ".omp.sections.iv": "OpenMP's counter",
    ".stride": "OpenMP's stride",
    ".st.": "OpenMP's stride",
    ".is_last": "OpenMP's mark of the last iteration",
    ".liter": "OpenMP's mark of the last iteration",
    ".il.": "OpenMP's mark of the last iteration",
    "_tid.": "OpenMP's number of the thread",
    ".part_id.": "OpenMP's part of the task",
    ".capture_expr.": "a bound that OpenMP keeps",
    ".reduction": "OpenMP's part of a reduction",
    ".omp.": "a variable of OpenMP",
    ".compoundliteral": "a compound literal",
}
"""Parts of the names that clang gives variables that the source does not have, and what these are; the first fits."""
_STEP = re.compile(r"(loop |recursion |)(.*?)((?::\d+)*)")


def with_brief_names(value: Any, place: Callable[[Json], Json] | None = None) -> Any:
    """A copy of a JSON value in which names of functions are brief; what is one object in it is one in the copy.

    `place`: what becomes of an object that has a file, whose names are brief already.
    """
    return _with_brief_names(value, place, {})


def _with_brief_names(value: Any, place: Callable[[Json], Json] | None, known: dict[int, Any]) -> Any:
    """The same; `known`: by identity what objects have been copied, for rows of a profile share most of theirs."""
    if isinstance(value, Mapping):
        copy = known.get(id(value))
        if copy is None:
            copy = {
                key: _brief(part, brief_step, place, known)
                if key in _NAMED
                else _brief(part, brief_type, place, known)
                if key in _TYPES
                else part
                if part.__class__ in SCALARS
                else _with_brief_names(part, place, known)
                for key, part in value.items()
            }
            copy = known[id(value)] = place(copy) if place and isinstance(copy.get("file"), str) else copy
        return copy
    if isinstance(value, list):
        return [part if part.__class__ in SCALARS else _with_brief_names(part, place, known) for part in value]
    return value


def _brief(
    value: Any, brief_text: Callable[[str], str], place: Callable[[Json], Json] | None, known: dict[int, Any]
) -> Any:
    """The same of a string that names something, or of a list of such, by `brief_text`."""
    if isinstance(value, str):
        return brief_text(value)
    if isinstance(value, (list, tuple)):
        return [_brief(part, brief_text, place, known) for part in value]
    return _with_brief_names(value, place, known)


@cache
def brief_step(step: str, longest: int = LONGEST) -> str:
    """A step of a context as profiles have it: `loop main:12`, `main:12:3`, `recursion main:12:3`, or a name alone."""
    parts = _STEP.fullmatch(step)
    return f"{parts[1]}{brief(parts[2], longest)}{parts[3]}" if parts else step


@cache
def brief_type(name: str) -> str:
    """A type's name; `RawVec<alloc::vec::Vec<u8, alloc::alloc::Global>, alloc::alloc::Global>` is `RawVec<Vec<u8>>`."""
    return LIBRARY.sub("", _DEFAULT.sub("", name))


def variable_name(name: str) -> str:
    """A variable's name; those that the compiler adds, for OpenMP above all (`.omp.ub`), are said in words."""
    if not name.startswith("."):
        return name
    return next((words for part, words in _OF_COMPILER.items() if part in name), "a variable of the compiler")
