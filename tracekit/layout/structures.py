"""The structures that a program's debug information describes, and which of them its accesses are made to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind, StructureKind, TypedKind

if TYPE_CHECKING:
    from tracekit.program.program import Program

MOST_BYTES = 1 << 20
"""Of a structure that is looked at: of a larger one, or of what a damaged table claims, nobody wants a picture."""

MOST_FIELDS = 4096
"""Of one structure; a damaged table could nest without end."""


@dataclass(frozen=True)
class Field:
    """A part of a structure that is no structure itself. Offset and size in bits."""

    name: str
    type_name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Structure:
    """A structure, class or union; size in bytes; fields by offset, those of structures inside in their places."""

    name: str
    size: int
    fields: tuple[Field, ...]


def structures_of(program: Program) -> Structures:
    """The program's structures, made once."""
    known: Structures | None = program.__dict__.get("_structures")
    if known is None:
        known = program.__dict__["_structures"] = Structures(program)
    return known


class Structures:
    """Structures have numbers, from 1; those that several units describe alike have one. 0 is none."""

    def __init__(self, program: Program) -> None:
        self.program = program
        numbers: dict[Structure, int] = {}
        self._parts: dict[int, set[int]] = {}
        self.all: list[Structure | None] = [None]
        self.of_row = np.zeros(len(program.types), np.int64)
        """Row of ``types`` -> number."""
        for row in np.unique(program.typed["type"]).tolist():
            if program.types["size"][row] > MOST_BYTES:
                continue
            made = self._structure(row)
            if made not in numbers:
                numbers[made] = len(self.all)
                self.all.append(made)
            self.of_row[row] = numbers[made]
        self.sizes = np.array([each.size if each else 0 for each in self.all], np.int64)
        self.of_op = np.zeros(len(program.ops) + 1, np.int64)
        """Instruction -> the structure that it accesses, or 0 (so has the last, which stands for library code)."""
        self.offset_of_op = np.zeros(len(program.ops) + 1, np.int64)
        """Bytes from the start of that structure to what it accesses."""
        self.of_variable: dict[int, int] = {}
        """STACK_ALLOC -> the structure that the variable is, or has as elements."""
        self.of_global: dict[int, int] = {}
        self._place(program)

    def _place(self, program: Program) -> None:
        """Fill in what instructions and variables are of."""
        typed = program.typed
        typed = typed[self.of_row[typed["type"]] != 0]
        numbers = self.of_row[typed["type"]]
        of_global = typed["of_kind"] == TypedKind.GLOBAL
        self.of_global.update(zip(typed["of"][of_global].tolist(), numbers[of_global].tolist()))
        typed, numbers = typed[~of_global], numbers[~of_global]
        of_variable = program.ops["kind"][typed["of"]] == OpKind.STACK_ALLOC
        self.of_variable.update(zip(typed["of"][of_variable].tolist(), numbers[of_variable].tolist()))
        accesses = ~of_variable & (typed["offset"] < self.sizes[numbers])
        self.of_op[typed["of"][accesses]] = numbers[accesses]
        self.offset_of_op[typed["of"][accesses]] = typed["offset"][accesses]

    def may_overlap(self, one: int, other: int) -> bool:
        """Whether both may be of the same bytes: one is a part of the other, or they begin with the same field."""
        if one == other or not one or not other:
            return False
        first, second = (
            (each.fields[0] if each and each.fields else None) for each in (self.all[one], self.all[other])
        )
        return (first is not None and first == second) or one in self._inside(other) or other in self._inside(one)

    def places_in(self, part: int, outer: int) -> Iterator[int]:
        """The bytes of a structure at which it may have another one as a member: fields of these types lie there."""
        inner, around = self.all[part], self.all[outer]
        if not inner or not around or not inner.fields or inner.size >= around.size:
            return
        have = {(field.type_name, field.offset, field.size) for field in around.fields}
        first = inner.fields[0].offset
        for start in sorted({field.offset - first for field in around.fields if (field.offset - first) % 8 == 0}):
            if have.issuperset((field.type_name, field.offset + start, field.size) for field in inner.fields):
                yield start // 8

    def _inside(self, number: int) -> set[int]:
        """The structures that are parts of a structure, at whatever depth."""
        if number not in self._parts:
            found: set[int] = set()
            waiting = np.flatnonzero(self.of_row == number).tolist()
            seen: set[int] = set()
            while waiting:
                row = waiting.pop()
                if row in seen:
                    continue
                seen.add(row)
                first, count = (int(self.program.types[name][row]) for name in ("first_member", "members"))
                inner = [each for each in self.program.members["type"][first : first + count].tolist() if each != NONE]
                found.update(self.of_row[inner].tolist())
                waiting += inner
            self._parts[number] = found - {0, number}
        return self._parts[number]

    def _structure(self, row: int) -> Structure:
        described = self.program.types[row]
        size = int(described["size"])
        known = islice(self._fields(row, "", 0, 0), MOST_FIELDS)
        inside = [field for field in known if field.offset + field.size <= 8 * size]
        inside.sort(key=lambda field: (field.offset, -field.size))
        return Structure(self.program.text(int(described["name"])), size, tuple(inside))

    def _fields(self, row: int, prefix: str, start: int, depth: int) -> Iterator[Field]:
        described = self.program.types[row]
        first = int(described["first_member"])
        for member in self.program.members[first : first + int(described["members"])]:
            name = self.program.text(int(member["name"]))
            type_name = self.program.text(int(member["type_name"]))
            inner = int(member["type"])
            if self._is_empty(inner, int(member["size"]), type_name):
                continue
            if inner != NONE and depth < 8 and self._is_one(inner, int(member["size"])):
                yield from self._fields(
                    inner, f"{prefix}{name}." if name else prefix, start + int(member["offset"]), depth + 1
                )
            else:
                yield Field(prefix + (name or type_name), type_name, start + int(member["offset"]), int(member["size"]))

    def _is_empty(self, row: int, bits: int, type_name: str) -> bool:
        """Whether a member holds nothing: an empty base or class of C++, PhantomData of Rust; no array of open end."""
        if row == NONE:
            return bits == 0 and not type_name.endswith("]")
        described: Any = self.program.types[row]
        return bool(described["kind"] == StructureKind.STRUCT and not described["members"])

    def _is_one(self, row: int, bits: int) -> bool:
        """Whether a member of this type and size is one structure, no array of them, and no union."""
        described: Any = self.program.types[row]
        return (
            bool(described["kind"] == StructureKind.STRUCT and described["members"])
            and 8 * int(described["size"]) == bits
        )
