"""Writes LLVM's text: lines, names of values, loads and stores of fields."""

from __future__ import annotations

from typing import Any

import numpy as np

TYPES = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


class Code:
    """The body of one function, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names = 0

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
        return self.set(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, base: str, offset: int | str, kind: str = "i64") -> str:
        """What lies there."""
        return self.set(f"load {kind}, ptr {self.at(base, offset)}")

    def store(self, base: str, offset: int | str, value: int | str, kind: str = "i64") -> None:
        """Put `value` there."""
        self.line(f"store {kind} {value}, ptr {self.at(base, offset)}")

    def word(self, number: int, kind: str = "i64") -> str:
        """A word of the machine's block."""
        return self.load("%machine", 8 * number, kind)

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
