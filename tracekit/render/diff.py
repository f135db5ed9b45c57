"""The text of `tracekit diff`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.counted import counted
from tracekit.profiles.diff import by_place
from tracekit.render.dependence import VERDICT_COLOUR, context_text
from tracekit.render.objects import CLASSES, context_name, object_name, scope_name
from tracekit.render.places import instruction_text, loop_text, without_folder
from tracekit.render.text import Json, Style, cell, more

COLOUR = {"new": "green", "gone": "red", "changed": "yellow"}
SIGN = {"new": "+", "gone": "-", "changed": "~"}


def diff_text(difference: Json, names: tuple[str, str], factor: float, limit: int, style: Style) -> str:
    """Each table's new, gone and changed rows, at most `limit` of each (0: all).

    Changes of numbers alone are left out below `factor`, either way.
    """
    tables, folder = without_folder(difference["tables"], difference)
    where = f", files below {folder}" if folder else ""
    lines = [style(f"{difference['module']}: {names[0]} -> {names[1]}", "bold") + where]
    if difference["matched_by"] == "place":
        lines.append("The builds differ: rows are matched by function, line, column and kind, not by id.")
    if difference["options_differ"]:
        lines.append("The options differ: some differences may come of that.")
    lines += [f"{name.replace('_', ' ')}: rows of one run, not compared." for name in difference["not_compared"]]
    for name, table in sorted(tables.items(), key=lambda table: table[0] != "loops"):
        changed = [row for row in table["changed"] if _matters(row["changes"], factor)]
        counts = ", ".join(
            f"{len(rows):,} {what}"
            for what, rows in (("new", table["new"]), ("gone", table["gone"]), ("changed", changed))
        )
        lines += ["", style(f"{name.replace('_', ' ').upper()}: {counts}, {table['same']:,} the same", "bold")]
        below = len(table["changed"]) - len(changed)
        lines += [f"{below:,} more changed by less than a factor of {factor:g}"] if below else []
        for what, rows in (
            ("new", sorted(table["new"], key=_weight)),
            ("gone", sorted(table["gone"], key=_weight)),
            ("changed", sorted(changed, key=_urgency)),
        ):
            shown = rows[: limit or None]
            for row in shown:
                lines += _row(what, row, style)
            rows_called = f"{what} {name.replace('_', ' ')}"
            lines += more(len(rows), len(shown), rows_called.removesuffix("s"), rows_called)
    if difference["values"]:
        lines += ["", style("VALUES", "bold")]
        lines += [
            f"{SIGN['changed']} {column.replace('_', ' ')} {change_text(change)}"
            for column, change in difference["values"].items()
        ]
    return "\n".join(lines) + "\n"


def _matters(changes: Json, factor: float) -> bool:
    return any("factor" not in change or _size(change) >= factor for change in changes.values())


def _size(change: Json) -> float:
    factor = change["factor"]
    return max(factor, 1 / factor) if factor else float("inf")


def _weight(row: Json) -> Any:
    """The heaviest first."""
    return -(row.get("accesses") or row.get("count") or 0)


def _urgency(row: Json) -> tuple[Any, ...]:
    """Changed verdicts first, then what is no number, then by factor."""
    changes = row["changes"]
    sizes = [_size(change) for change in changes.values() if "factor" in change]
    return ("verdict" not in changes, all("factor" in change for change in changes.values()), -max(sizes, default=1))


def _row(what: str, row: Json, style: Style) -> list[str]:
    sign = style(SIGN[what], COLOUR[what])
    tail = ""
    if what != "changed":
        facts = [
            f"{column} {cell(row[column])}"
            for column in SHOWN_COLUMNS
            if column in row and not isinstance(row[column], list)
        ]
        facts += [f"scope {scope_name(row['scope'])}"] if "scope" in row else []
        tail = f"  ({', '.join(facts)})" if facts else ""
    lines = [f"{sign} {label(row)}{tail}"]
    lines += [f"    {text}" for text in _contexts(row)]
    if what == "changed":
        lines += [
            f"    {column.replace('_', ' ')} {change_text(change, style)}" for column, change in row["changes"].items()
        ]
    return lines


SHOWN_COLUMNS = ("verdict", "accesses", "count", "pattern", "objects", "bytes")
"""Columns that say in short what a new row, or one that is gone, holds."""


def label(row: Json) -> str:
    """What a row is about, in a line."""
    if isinstance(row.get("object"), Mapping):
        made_in = context_name(row["object"])
        return object_name(row["object"]) + (f", made in {made_in}" if made_in else "")
    if "source" in row and "destination" in row:
        return f"{row['kind']} {instruction_text(row['source'])} -> {instruction_text(row['destination'])}"
    if isinstance(row.get("loop"), Mapping):
        return loop_text(row["loop"])
    if isinstance(row.get("instruction"), Mapping):
        return instruction_text(row["instruction"])
    if isinstance(row.get("group"), Mapping):
        return _structure(row)
    if isinstance(row.get("then"), Mapping):
        return f"{_structure(row['first'])}, then {_structure(row['then'])}"
    if "store" in row and "load" in row:
        return " -> ".join(instruction_text(row[end]) if row[end] else "library" for end in ("store", "load"))
    return ", ".join(cell(value) for column, value in row.items() if column != "changes")


def _structure(row: Json) -> str:
    """`node in heap list.c:3:5`."""
    return f"{row['type']} in {object_name(row['group'])}" if row.get("type") else object_name(row["group"])


def _contexts(row: Json) -> list[str]:
    if row.get("source_context"):
        source = context_text(row["source_context"], row["source"]["function"])
        destination = context_text(row["destination_context"], row["destination"]["function"])
        return [f"in {source}"] if source == destination else [f"from {source}", f"to   {destination}"]
    if row.get("context") and isinstance(row.get("loop"), Mapping):
        return [f"in {context_text(row['context'], row['loop'].get('function', ''), with_loop=False)}"]
    return []


def change_text(change: Json, style: Style | None = None) -> str:
    """`3 -> 6 (x2.00)`; of lists of objects, scopes or cases those members that differ."""
    if _are_members(change["before"]) or _are_members(change["after"]):
        before, after = (list(change[when] or ()) for when in ("before", "after"))
        gone, come = _but_not(before, after), _but_not(after, before)
        seen = Counter(_member(part) for part in {_identity(part): part for part in (*before, *after)}.values())
        return " -> ".join(_few([_member(part, seen[_member(part)] > 1) for part in one]) for one in (gone, come))
    if any(_is_scope(change[when]) for when in ("before", "after")):
        return _scopes(change["before"], change["after"])
    old, new = (_value(change[when]) for when in ("before", "after"))
    if style is not None:
        old, new = (style(text, VERDICT_COLOUR[text]) if text in VERDICT_COLOUR else text for text in (old, new))
    factor = change.get("factor")
    times = "" if factor is None else f" (x{factor:,.0f})" if factor >= 100 else f" (x{factor:.3g})"
    return f"{old} -> {new}{times}"


def _is_scope(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("kind") in ("iteration", "invocation", "call", "run")


def _scopes(before: Json | None, after: Json | None) -> str:
    """`iteration of f:3 -> run`; of scopes that have one name also their contexts."""
    old, new = (scope_name(scope) if scope else "none" for scope in (before, after))
    if old == new:
        old, new = (f"{scope_name(scope)} in {cell(scope.get('context'))}" for scope in (before, after) if scope)
    return f"{old} -> {new}"


def _value(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and not value:
        return "none"
    return cell(value)


def _are_members(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, Mapping) for part in value)


def _identity(part: Json) -> str:
    return json.dumps(by_place(part), sort_keys=True)


def _but_not(parts: Sequence[Json], others: Sequence[Json]) -> list[Json]:
    known = {_identity(part) for part in others}
    return [part for part in parts if _identity(part) not in known]


def _member(part: Json, at_length: bool = False) -> str:
    """`call of f: 3 objects`, `heap a.c:3:5: start 3`, `global sum by +`, `doall: 300 accesses`.

    `at_length` says also where an object was made, to tell it from another.
    """
    if "scope" in part:
        return f"{scope_name(part['scope'])}: {part['objects']:,} object{'s' * (part['objects'] != 1)}"
    if part.get("kind") in ("heap", "stack", "global", "unknown"):
        classes = ", ".join(f"{name.replace('_', ' ')} {part[name]:,}" for name in CLASSES if part.get(name))
        name = label({"object": part}) if at_length else object_name(part)
        return name + (f" by {part['operator']}" if part.get("operator") else "") + (f": {classes}" if classes else "")
    if "verdict" in part:
        return f"{part['verdict']}: {counted(part['accesses'], 'access')}"
    return cell(part)


def _few(texts: Sequence[str]) -> str:
    return "; ".join(texts[:MEMBERS]) + (f"; ... ({len(texts)})" if len(texts) > MEMBERS else "") or "none"


MEMBERS = 3
"""Members of a list that a change names, before and after."""
