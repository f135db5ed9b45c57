"""What sections are written with. Whatever comes from a profile or a source passes through `text` or `in_script`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

Json = Mapping[str, Any]

LONGEST = 300
"""Characters of any one name."""


def text(value: Any) -> str:
    """`value` as text of HTML or of an attribute in quotes, clipped where it is absurdly long."""
    plain = str(value)
    return escape(plain if len(plain) <= LONGEST else plain[:LONGEST] + "...")


def in_script(value: Any) -> str:
    """`value` as JSON that may stand in a script element: no `<` can end it."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def table(name: str, caption: str, columns: Sequence[tuple[str, bool]], rows: Iterable[str]) -> str:
    """A table that scrolls by itself. `columns`: heading, and whether they are numbers; the script sorts."""
    head = "".join(
        f'<th scope="col" aria-sort="none"{number_class(number)}>{text(heading)}</th>' for heading, number in columns
    )
    return (
        f'<div class="scroll" role="region" aria-label="{text(caption)}" tabindex="0"><table id="{text(name)}" '
        f'class="sortable"><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def more(total: int, shown: int, what: str = "rows") -> list[str]:
    """The paragraph that says how many rows the table above leaves out, if it does."""
    return [f"<p>... and {total - shown:,} more {what}.</p>"] if total > shown else []


def number_class(number: bool) -> str:
    """The attribute of a heading above numbers."""
    return ' class="number"' if number else ""


def number_cell(value: float, shown: str | None = None, heading: str = "") -> str:
    """A cell with a number; the script sorts by `data-value`."""
    name = f' data-heading="{text(heading)}"' if heading else ""
    return f'<td class="number" data-value="{value}"{name}>{text(shown if shown is not None else f"{value:,}")}</td>'
