"""The section of a module that has none of its own: each list of the result as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.text import cell, number_with_unit


def generic_section(report: Json, shown: Shown) -> str:
    """Any module's tables, as the text would show them."""
    parts = []
    percent = shown.displays[report["module"]].percent.split()
    for name, value in report["result"].items():
        heading = name.replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            parts.append(rows_table(f"{report['module']}-{name}", heading, value, shown))
        elif isinstance(value, Mapping):
            listed = "".join(
                f"<div><dt>{text(key.replace('_', ' '))}</dt>"
                f"<dd>{text(number_with_unit(part, key in percent))}</dd></div>"
                for key, part in value.items()
            )
            parts.append(f"<h3>{text(heading)}</h3><dl>{listed}</dl>")
        else:
            parts.append(f"<p>{text(heading)}: {text(cell(value) if value != [] else 'none')}</p>")
    return "\n".join(parts)


def rows_table(name: str, heading: str, rows: Sequence[Json], shown: Shown) -> str:
    """A table of JSON rows, as many as the page shows."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    number = {
        column: all(isinstance(row.get(column), (int, float)) and not isinstance(row.get(column), bool) for row in rows)
        for column in columns
    }
    made = []
    for row in shown.names.shown(rows[: shown.rows]):
        cells = (
            number_cell(row[column], cell(row[column])) if number[column] else f"<td>{text(cell(row.get(column)))}</td>"
            for column in columns
        )
        made.append(f"<tr>{''.join(cells)}</tr>\n")
    heads = [(column.replace("_", " "), number[column]) for column in columns]
    return "".join([table(name, heading, heads, made), *more(len(rows), len(made))])
