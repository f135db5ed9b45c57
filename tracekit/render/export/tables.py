"""A table of a profile as comma-separated values (RFC 4180); nested values are columns named with dots."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from tracekit.modules import registry
from tracekit.profiles.profile import flat
from tracekit.render.export.stacks import table_of

KINDS = {
    "place": "id kind function file line column",
    "instruction": "id kind function file line column inlined_at",
    "loop": "function file line column depth",
    "context": "id root path",
    "object": "kind site:instruction",
    "made": "kind site:instruction context:context",
    "end": "access instruction:instruction context:context threads tasks locks",
    "path": "id kind function file line column name lines blocks begins ends back_to",
}
"""What nested values are called in a module's ``DISPLAY`` -> their columns; ``made`` is an object with its context."""


def write(report: dict[str, Any], table: str) -> bytes:
    """The file's bytes: a head with the columns of all rows, in the order in which they first appear.

    Without rows it has the columns that the module declares.
    """
    name, rows = table_of(report, table)
    cells = [{column: _cell(value) for column, value in flat(row).items()} for row in rows]
    columns = list(dict.fromkeys(column for row in cells for column in row))
    if not cells:
        columns = list(declared(registry.display(report["module"]).columns.get(name, "")))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue().encode()


def declared(columns: str, prefix: str = "") -> Iterator[str]:
    """The names of columns that a ``DISPLAY`` tells, nested ones with dots; a kind that is none is left as it is."""
    for column in columns.split():
        name, _, kind = column.partition(":")
        if kind in KINDS:
            yield from declared(KINDS[kind], f"{prefix}{name}.")
        else:
            yield prefix + column


def _cell(value: Any) -> Any:
    """Lists are JSON; nothing is an empty cell."""
    if isinstance(value, (list, bool)):
        return json.dumps(value)
    return "" if value is None else value
