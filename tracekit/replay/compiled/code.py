"""Writes LLVM's text: lines, names of values, loads and stores of fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.replay.compiled import bounds, machine

TYPES = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


class Code:
    """The body of one function, line by line.

    With `checked`, the number of a path and the functions of its program, no load or store leaves its table
    (bounds.py): else the code goes to the label ``damaged``.
    """

    def __init__(self, checked: tuple[int, int] | None = None) -> None:
        self.lines: list[str] = []
        self._names = 0
        self._checked = checked
        self._tables = dict(bounds.OF_NAME)  # by the name of an address

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " + text)

    def name(self) -> str:
        """A new name."""
        self._names += 1
        return f"%v{self._names}"

    def set(self, text: str) -> str:
        """Append an instruction; returns the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, hint: str) -> str:
        """A new label, to be placed."""
        self._names += 1
        return f"{hint}{self._names}"

    def place(self, label: str) -> None:
        """What follows has this label."""
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        """Go to a label."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Go to one of two labels."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def require(self, condition: str, otherwise: str) -> None:
        """Go on only if the condition holds."""
        label = self.label("ok")
        self.branch(condition, label, otherwise)
        self.place(label)

    # -- memory ----------------------------------------------------------------------------------

    def at(self, base: str, offset: int | str) -> str:
        """The address `offset` bytes behind `base`."""
        return self.element("i8", base, offset)

    def element(self, kind: str, base: str, index: int | str) -> str:
        """The address of an element of this type, so many behind `base`."""
        place = self.set(f"getelementptr {kind}, ptr {base}, i64 {index}")
        if self._checked:
            self._tables[place] = self._tables[base]
        return place

    def load(self, base: str, offset: int | str, kind: str = "i64") -> str:
        """What lies there."""
        place = self.at(base, offset)
        self.check(place, bounds.WIDTHS.get(kind, 0))
        return self.set(f"load {kind}, ptr {place}")

    def store(self, base: str, offset: int | str, value: int | str, kind: str = "i64") -> None:
        """Put `value` there."""
        place = self.at(base, offset)
        self.check(place, bounds.WIDTHS[kind])
        self.line(f"store {kind} {value}, ptr {place}")

    def check(self, place: str, size: int) -> None:
        """Go on only if these bytes lie in the table that the address `place` belongs to, if that is checked."""
        if self._checked is None or self._tables[place] == bounds.NOT_CHECKED:
            return
        number, functions = self._checked
        name = self._tables[place]
        begin, end = self._bounds(bounds.tables(functions)[name])
        behind = self.set(f"getelementptr i8, ptr {place}, i64 {size}")
        is_behind, is_before = self.test("uge", place, begin, "ptr"), self.test("ule", behind, end, "ptr")
        inside, outside = self.label("inside"), self.label("outside")
        self.branch(self.set(f"and i1 {is_behind}, {is_before}"), inside, outside)
        self.place(outside)
        self.line(f"store i64 {bounds.found(number, name)}, ptr {self.at('%machine', 8 * machine.OUTSIDE)}")
        self.jump("damaged")
        self.place(inside)

    def _bounds(self, table: bounds.Table) -> tuple[str, str]:
        """The addresses where a table begins and ends."""
        begin = table.begins if isinstance(table.begins, str) else self.word(table.begins, "ptr")
        if table.ends is not None:
            return begin, self.word(table.ends, "ptr")
        count = str(table.fixed) if table.elements is None else self.word(table.elements)
        size = self.set(f"mul i64 {count}, {table.size}")
        return begin, self.set(f"getelementptr i8, ptr {begin}, i64 {size}")

    def word(self, number: int, kind: str = "i64") -> str:
        """A word of the machine's block."""
        value = self.load("%machine", 8 * number, kind)
        if kind == "ptr":
            self._tables[value] = bounds.OF_WORD.get(number, bounds.NOT_CHECKED)
        return value

    def set_word(self, number: int, value: int | str, kind: str = "i64") -> None:
        """Put `value` into a word of the machine's block."""
        self.store("%machine", 8 * number, value, kind)

    def field(self, record: np.dtype[Any], base: str, name: str) -> str:
        """A field of a record at `base`."""
        dtype, offset = record.fields[name][:2]  # type: ignore[index]
        return self.load(base, offset, TYPES[dtype.itemsize])

    def set_field(self, record: np.dtype[Any], base: str, name: str, value: int | str) -> None:
        """Put `value` into a field of a record at `base`."""
        dtype, offset = record.fields[name][:2]  # type: ignore[index]
        self.store(base, offset, value, TYPES[dtype.itemsize])

    # -- numbers ---------------------------------------------------------------------------------

    def wide(self, value: str) -> str:
        """A number of 32 bits as one of 64."""
        return self.set(f"zext i32 {value} to i64")

    def add(self, one: str, other: int | str) -> str:
        """The sum of two numbers of 64 bits."""
        return one if other == 0 else self.set(f"add i64 {one}, {other}")

    def test(self, relation: str, one: str, other: int | str, kind: str = "i64") -> str:
        """Whether a relation holds (LLVM's icmp)."""
        return self.set(f"icmp {relation} {kind} {one}, {other}")
