"""The tables that the code of paths reads and writes, and their bounds: TRACEKIT_CHECK_BOUNDS=all has them checked.

Path code is straight-line code without checks but its guards. With this setting each address that it computes is
compared with the bounds of the table that it belongs to, and the first one outside of it ends the replay.
"""

from __future__ import annotations

from typing import NamedTuple

from tracekit.replay.compiled import machine
from tracekit.replay.kernels import layouts

WIDTHS = {"i8": 1, "i32": 4, "i64": 8, "ptr": 8}
"""Bytes of LLVM's types."""


class OutsideTableError(Exception):
    """The code of a path has computed an address outside of the table that it belongs to: a fault of tracekit's."""


class Table(NamedTuple):
    """Where a table lies: words of the machine's block (machine.py), or what never changes."""

    begins: int | str
    """The word with its address, or the symbol that it has."""
    ends: int | None
    """The word with the address behind it; None: it follows from the elements."""
    elements: int | None = None
    """The word with how many elements there is room for; None: `fixed` of them."""
    size: int = 8
    """Bytes of an element."""
    fixed: int = 0


NOT_CHECKED = "-"
"""Stands for the machine's block and for what a function keeps on its own stack."""


def tables(functions: int) -> dict[str, Table]:
    """By name. `functions`: those of the program."""
    return {
        "words": Table(machine.WORDS, machine.WORDS_END),
        "frames": Table(machine.FRAMES, machine.FRAMES_END),
        "registers": Table(machine.REGISTERS, None, machine.REGISTERS_ROOM),
        "iterations": Table(machine.ITERATIONS, None, machine.LOOPS_ROOM),
        "open loops": Table(machine.OPEN_LOOPS, None, machine.LOOPS_ROOM, 4),
        "scalars": Table(machine.SCALARS, None, None, 8, layouts.SCALARS),
        "functions": Table("@functions", None, None, layouts.FUNCTION.itemsize, functions),
    }


NAMES = tuple(tables(0))
OF_WORD = {
    machine.WORDS: "words",
    machine.FRAME: "frames",
    machine.FRAMES: "frames",
    machine.REGISTERS: "registers",
    machine.ITERATIONS: "iterations",
    machine.OPEN_LOOPS: "open loops",
    machine.SCALARS: "scalars",
}
"""The table that the address in a word of the machine's block belongs to."""
OF_NAME = {
    "%machine": NOT_CHECKED,
    "%left": NOT_CHECKED,
    "%inside": NOT_CHECKED,
    "%ranged": NOT_CHECKED,
    "%words": "words",
    "%frame": "frames",
    "%frame.own": "frames",
    "@functions": "functions",
}
"""The table that an argument or a symbol belongs to."""


def found(number: int, table: str) -> int:
    """What stands in the machine's block (OUTSIDE) once the code of path `number` has left `table`."""
    return number * len(NAMES) + NAMES.index(table) + 1


def error_of(code: int) -> OutsideTableError:
    """The error for what stands there."""
    number, table = divmod(code - 1, len(NAMES))
    return OutsideTableError(f"The code of path {number} reaches outside of its {NAMES[table]}.")
