"""Prototypes of functions whose calls are recorded: `compress(src: bytes[len], len: u64) -> i32`.

They stand in traces (event ``call_probe``), and in what ``record --intercept`` is given.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from tracekit.formats.errors import TracekitError

SCALARS = {
    "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f",
    "f64": "d", "ptr": "Q", "bool": "?",
}  # fmt: skip
"""Name of a type -> the letter of module struct."""

RESULT = "return"
"""What a count may name beside parameters."""

MOST = 16
"""Parameters of one function."""

_PROTOTYPE = re.compile(r"\s*([\w.:~$]+)\s*\((.*)\)\s*(?:->(.*))?", re.DOTALL)
_TYPE = re.compile(r"(?:(out|inout)\s+)?(\w+)\s*(?:\[\s*(\w+)\s*\])?")

HELP = "write it as 'compress(dest: out bytes[size], size: inout u64, src: bytes[len], len: u64) -> i32'"


@dataclass(frozen=True)
class Type:
    """``direction``: "", "out" or "inout", of what a pointer leads to; ``base``: a scalar, ``string`` or ``bytes``;
    ``count``: of an array: a number, a parameter's name, or ``return``."""

    base: str
    direction: str = ""
    count: str = ""

    @property
    def is_pointer(self) -> bool:
        """Whether the argument itself is a pointer to what is recorded."""
        return bool(self.direction or self.count or self.base == "string")


@dataclass(frozen=True)
class Prototype:
    """A function's name, its parameters with their types, and the type of its result (None: there is none)."""

    name: str
    parameters: tuple[tuple[str, Type], ...]
    result: Type | None
    text: str


def parse(text: str) -> Prototype:
    """Read a prototype. Raises TracekitError if it is none."""
    match = _PROTOTYPE.fullmatch(text)
    if match is None:
        raise TracekitError(f"{text!r} is no prototype; {HELP}")
    name, inside, result = match[1], match[2].strip(), (match[3] or "void").strip()
    parameters = tuple(_parameter(part, text) for part in inside.split(",")) if inside else ()
    names = [parameter for parameter, _ in parameters]
    if len(set(names)) < len(names) or len(names) > MOST:
        raise TracekitError(f"{text!r}: parameters have different names, and there are at most {MOST}")
    found = None if result == "void" else _type(result, text)
    for type_ in (*(type_ for _, type_ in parameters), *((found,) if found else ())):
        if type_.count and not type_.count.isdecimal() and type_.count not in (*names, RESULT):
            raise TracekitError(f"{text!r}: no parameter is called {type_.count}")
    rest = "" if found is None else f" -> {written(found)}"
    shown = ", ".join(f"{parameter}: {written(type_)}" for parameter, type_ in parameters)
    return Prototype(name, parameters, found, f"{name}({shown}){rest}")


def written(type_: Type) -> str:
    """The type as text."""
    count = f"[{type_.count}]" if type_.count else ""
    return f"{type_.direction} {type_.base}{count}".strip()


def _parameter(part: str, text: str) -> tuple[str, Type]:
    name, colon, type_ = part.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z_]\w*", name.strip()):
        raise TracekitError(f"{text!r}: {part.strip() or 'nothing'} is no parameter; {HELP}")
    return name.strip(), _type(type_.strip(), text)


def _type(words: str, text: str) -> Type:
    match = _TYPE.fullmatch(words)
    if match is None or match[2] not in (*SCALARS, "string", "bytes"):
        known = ", ".join((*SCALARS, "string", "bytes[COUNT]"))
        raise TracekitError(
            f"{text!r}: {words or 'nothing'} is no type; types are {known}, also out and inout of these"
        )
    if match[2] == "bytes" and not match[3]:
        raise TracekitError(f"{text!r}: how many bytes? Write bytes[64], or the name of a parameter")
    return Type(match[2], match[1] or "", match[3] or "")


def scalar(type_: Type, content: int) -> int | float | bool:
    """The value of a scalar type that the 64 bits `content` hold."""
    letter = "Q" if type_.is_pointer else SCALARS[type_.base]
    value: int | float | bool = struct.unpack_from(f"<{letter}", content.to_bytes(8, "little"))[0]
    return value
