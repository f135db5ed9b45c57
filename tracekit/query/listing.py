"""Lists the tables and columns that queries may use, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.query.catalogue import ENTRIES, modules_of
from tracekit.query.run import Run
from tracekit.query.schema import Column
from tracekit.render.text import Style, table


def is_table(name: str, run: Run | None) -> bool:
    """Whether there is a table of this name."""
    return name in ENTRIES or (run is not None and name in _raw(run))


def tables_text(run: Run | None, style: Style) -> str:
    """A line for each table: its name, the module that it comes from, what it holds.

    Of a profile file only those that it has, and the tables of its modules' results as they are.
    """
    rows = [
        (name, " or ".join(modules_of(name)), entry.doc)
        for name, entry in ENTRIES.items()
        if run is None or run.choose(modules_of(name))
    ]
    if run is not None:
        rows += [(name, name.partition(".")[0], f"As {name.partition('.')[0]} has it.") for name in _raw(run)]
    return "\n".join(table(("TABLE", "MODULE", "HOLDS"), rows, frozenset(), style)) + "\n"


def columns_text(name: str | None, run: Run | None, style: Style) -> str:
    """The columns of one table, or of all: name, type, meaning."""
    return "\n".join(line for part in _described(name, run, style) for line in (*part, ""))


def _described(name: str | None, run: Run | None, style: Style) -> Iterator[list[str]]:
    for known, entry in ENTRIES.items():
        if name in (None, known):
            yield [f"{style(known, 'bold')}: {entry.doc}", *_columns(entry.columns, style)]
    if run is not None:
        for known, columns in _raw(run).items():
            if name in (None, known):
                yield [style(known, "bold"), *_columns(columns, style)]


def _columns(columns: Sequence[Column], style: Style) -> list[str]:
    return ["  " + line for line in table(("COLUMN", "TYPE", "MEANING"), columns, frozenset(), style)]


def _raw(run: Run) -> dict[str, list[Column]]:
    from tracekit.query.raw import raw_tables

    return {
        f"{module}.{name}": columns for module in run.modules for name, columns, _ in raw_tables(run.report(module))
    }
