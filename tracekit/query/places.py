"""Columns for what rows of many tables have: an instruction, a loop, a context, an object; and their cells."""

from __future__ import annotations

from typing import Any

from tracekit.query.schema import Column, Json, number, text

SEPARATOR = " > "
"""Between the steps of a context: `main > main:25:7 > loop work:12`."""


def instruction_columns(prefix: str = "", what: str = "the instruction") -> tuple[Column, ...]:
    """Where an instruction is; the names of its columns begin with `prefix`."""
    return (
        text(f"{prefix}kind", f"what {what} is: load, store, call, library, ..."),
        text(f"{prefix}function", "the function whose text it stands in"),
        text(f"{prefix}file", "its source file, as the compiler was given it"),
        number(f"{prefix}line", "its line; NULL without debug information"),
        number(f"{prefix}column", "its column; NULL if not known"),
        text(f"{prefix}outer_function", "the function that it was inlined into; as above if it was not"),
        text(f"{prefix}id", "its id, the same in all runs of a build"),
    )


def instruction_cells(instruction: Json | None) -> tuple[Any, ...]:
    """The cells of :func:`instruction_columns`."""
    if instruction is None:
        return (None,) * 7
    inlined = instruction.get("inlined_at") or ()
    return (
        instruction.get("kind"),
        instruction.get("function"),
        instruction.get("file"),
        instruction.get("line") or None,
        instruction.get("column") or None,
        inlined[-1]["function"] if inlined else instruction.get("function"),
        instruction.get("id"),
    )


def loop_columns(prefix: str = "", what: str = "the loop") -> tuple[Column, ...]:
    """Where a loop is."""
    return (
        text(f"{prefix}function", f"the function of {what}"),
        text(f"{prefix}file", "its source file"),
        number(f"{prefix}line", "the line that it begins in; NULL without debug information"),
        number(f"{prefix}column", "the column; NULL if not known"),
        number(f"{prefix}depth", "how deep it is nested in its function, from 1"),
    )


def loop_cells(loop: Json | None) -> tuple[Any, ...]:
    """The cells of :func:`loop_columns`; of a level that is a recursion its function alone."""
    if loop is None:
        return (None,) * 5
    if "recursion" in loop:
        return (loop["recursion"], None, None, None, None)
    return (loop["function"], loop["file"], loop["line"] or None, loop["column"] or None, loop.get("depth"))


def context_column(name: str, what: str) -> Column:
    """Where something happened, as :func:`context_cell` has it."""
    return text(name, f"the context of {what}: calls (caller:line:column) and loops around it; see contexts")


def context_cell(context: Json | None) -> str | None:
    """Root and steps of a context in a line; NULL of a module that knows no contexts."""
    return None if context is None else SEPARATOR.join([context["root"], *context["path"]])


OBJECT_COLUMNS = (
    text("kind", "heap, stack, global, or unknown; of a race also descriptor"),
    text("name", "the variable's; NULL of heap memory"),
    text("function", "the function that makes it; NULL of a global, and of what a library makes"),
    text("file", "the file of the line that makes it"),
    number("line", "the line"),
    number("column", "the column"),
    text("id", "the id of the instruction that makes it"),
    context_column("context", "the allocation, where sites are told apart by it"),
)
"""An object, or all of one allocation site."""


def object_cells(thing: Json) -> tuple[Any, ...]:
    """The cells of OBJECT_COLUMNS."""
    _, function, file, line, column, _, identity = instruction_cells(thing.get("site"))
    context = context_cell(thing.get("context"))
    return (thing["kind"], thing.get("name") or None, function, file, line, column, identity, context)
