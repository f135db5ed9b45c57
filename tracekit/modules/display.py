"""What a module's file declares of how its profiles are shown; the functions themselves are named, never imported here.

The file holds ``DISPLAY = Display(...)`` at its top level, with literals for arguments, because it is read without
running the file: to list modules, to print a profile from a file, to choose what a page shows. A function is named by a
*reference*, ``package.file:function``, or ``:function`` for one of the module's own file, and imported when it is used.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tracekit.formats.errors import TracekitError

NOTES = ("", "accesses", "loops")
REFERENCES = ("text", "section", "image", "failed", "lcov")
"""The fields of a Display that are references."""


@dataclass(frozen=True)
class Display:
    """How the profiles of a module are shown; what is left out is shown as for any module, table by table.

    Raises ValueError, with a sentence, for a reference or notes that make no sense.
    """

    text: str = ""
    """Reference: (report, facts, limit, style) -> the profile's text, with its last newline.

    `report` is the profile's JSON object, `facts` the numbers that :meth:`Module.facts` gave, `limit` the number of
    rows that a table shows at most (0: all), `style` a :class:`tracekit.render.text.Style`.
    """
    greatest: str = ""
    """Column by which the generic text sorts the rows of a table that has it, the greatest first."""
    percent: str = ""
    """Names, separated by spaces, of numbers outside of tables that are in percent, and shown with a `%`."""
    section: str = ""
    """Reference: (report, shown) -> HTML of a section of the page; nothing is shown for an empty string.

    `shown` is a :class:`tracekit.render.html.data.Shown`.
    """
    heading: str = ""
    """Of the section; by default the module's name."""
    image: str = ""
    """Reference: (report, path) -> None, which writes the picture that ``tracekit analyze --image`` asks for."""
    failed: str = ""
    """Reference: (report) -> whether ``tracekit analyze --exit-code`` ends with status 1."""
    lcov: str = ""
    """Reference: (report) -> the coverage that ``--format lcov`` prints."""
    notes: str = ""
    """What the profile says of lines of the source, for ``annotate`` and the page, which then has no section of it:

    ``accesses``: its table ``instructions`` has rows with instruction, loads, stores and bytes, as accesses has;
    ``loops``: its tables ``loops`` and ``dependences`` are as those of camp.
    """
    rank: int = 0
    """Sections are sorted by this number, and of two modules with the same notes the lesser counts."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Table -> its columns, separated by spaces: the head of the table where it has no rows to tell.

    Those of a nested value are named by its kind, as in ``source:instruction``; the kinds are those of
    :data:`tracekit.render.export.tables.KINDS`.
    """
    on_page: bool = False
    """Whether ``tracekit report`` runs the module on a trace, and ``tracekit annotate``, too, if it has notes."""

    def __post_init__(self) -> None:
        if self.notes not in NOTES:
            raise ValueError(f"notes is one of {', '.join(NOTES[1:])}, not {self.notes!r}.")
        for name in REFERENCES:
            reference = getattr(self, name)
            if reference and not reference.rpartition(":")[2].isidentifier():
                raise ValueError(f"{name} is a reference as package.file:function, not {reference!r}.")
        if not isinstance(self.columns, dict) or not all(isinstance(text, str) for text in self.columns.values()):
            raise ValueError(f"columns is a dict of names in one string for each table, not {self.columns!r}.")


def display_in(tree: ast.Module, file: str, python_name: str) -> Display:
    """The ``DISPLAY`` of a parsed file, with full references; `python_name` is what the file is imported as.

    Raises TracekitError, which names the `file`, if it is not written with literals or makes no sense.
    """
    declared = next((found for found in map(_declaration, reversed(tree.body)) if found is not None), None)
    if declared is None:
        return Display()
    try:
        if not isinstance(declared, ast.Call) or declared.args:
            raise ValueError("it is Display(...) with named arguments")
        fields = {str(word.arg): ast.literal_eval(word.value) for word in declared.keywords}
        display = Display(**fields)
    except (ValueError, TypeError) as error:
        reason = str(error).rstrip(".").removeprefix("Display.__init__() ")
        raise TracekitError(
            f"DISPLAY in {file}, line {declared.lineno}, cannot be read (it is read without running the file, "
            f"so its arguments are literals): {reason}."
        ) from None
    own = {name: python_name + reference for name, reference in fields.items() if _is_own(name, reference)}
    return replace(display, **own)


def _declaration(statement: ast.stmt) -> ast.expr | None:
    """What a statement assigns to DISPLAY."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and any(
        isinstance(target, ast.Name) and target.id == "DISPLAY" for target in targets
    ):
        return statement.value
    return None


def _is_own(field: str, value: object) -> bool:
    return field in REFERENCES and str(value).startswith(":")
