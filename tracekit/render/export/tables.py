"""A table of a profile as comma-separated values (RFC 4180); nested values are columns named with dots."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from tracekit.profiles.profile import flat
from tracekit.render.export.stacks import table_of


def write(report: dict[str, Any], table: str) -> bytes:
    """The file's bytes: a head with the columns of all rows, in the order in which they first appear."""
    _, rows = table_of(report, table)
    cells = [{column: _cell(value) for column, value in flat(row).items()} for row in rows]
    columns = list(dict.fromkeys(column for row in cells for column in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """Lists are JSON; nothing is an empty cell."""
    if isinstance(value, (list, bool)):
        return json.dumps(value)
    return "" if value is None else value
