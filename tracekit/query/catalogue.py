"""All tables by name."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.query import access_tables, cache_tables, correctness_tables, loop_tables, object_tables
from tracekit.query.schema import Table, View

TABLES: Mapping[str, Table] = {
    table.name: table
    for tables in (loop_tables, access_tables, object_tables, cache_tables, correctness_tables)
    for table in tables.TABLES
}
"""Table by name, in the order in which they are listed."""

VIEWS: Mapping[str, View] = {view.name: view for view in access_tables.VIEWS}
"""View by name."""

ENTRIES: Mapping[str, Table | View] = {**TABLES, **VIEWS}
"""Both."""


def modules_of(name: str) -> tuple[str, ...]:
    """Those whose results have the rows of a table, or of the one that a view reads."""
    return TABLES[VIEWS[name].source if name in VIEWS else name].modules


def tables_of(module: str) -> list[str]:
    """Those that are made of a module's results."""
    return [name for name in ENTRIES if module in modules_of(name)]
