"""Reports about objects as text: object_lifetime, points_to, privateer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.render import Json, Style, cell, more, table


def lifetime_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Sites with the scopes that hold their objects, most objects first."""
    rows = sorted(report["result"]["sites"], key=lambda row: -row["objects"])
    shown = rows[: limit or None]
    lines = [f"{report['module']}, trace {report['trace']}", "", style("lifetimes", "bold")]
    lines += sites_table(shown, style) + more(len(rows), len(shown), "sites")
    for row in shown:
        if len(row["lives"]) > 1:
            parts = ", ".join(f"{life['objects']:,} {scope_name(life['scope'])}"
                              for life in sorted(row["lives"], key=lambda life: -life["objects"]))
            lines += ["", f"{object_name(row['object'])}: {parts}"]
            lines += [style(f"  in {cell(row['object']['context'])}", "dim")] if "context" in row["object"] else []
    return "\n".join(lines) + "\n"


def sites_table(rows: Sequence[Json], style: Style) -> list[str]:
    """One line for each site: the object, how many, how long."""
    cells = [[object_name(row["object"]), f"{row['objects']:,}", f"{row['bytes']:,}", f"{row['never_freed']:,}",
              scope_name(row["scope"]), context_name(row["object"])] for row in rows]
    return table(["object", "objects", "bytes", "never freed", "scope", "made in"], cells, frozenset({1, 2, 3}), style)


def object_name(shown: Json) -> str:
    """`heap lines.c:3:5`, `stack name lines.c:3:5`, `global name`."""
    if shown["kind"] == "global":
        return f"global {shown['name']}"
    if shown["kind"] == "unknown":
        return "memory of no known object"
    site = shown["site"]
    words = [shown["kind"], shown.get("name", "")]
    if site is None:
        words.append("of a library")
    else:
        words.append(_place(site))
    return " ".join(word for word in words if word)


def context_name(shown: Json) -> str:
    """The calls and loops around an object's making, the innermost three of them."""
    context = shown.get("context")
    if context is None:
        return ""
    steps = [context["root"], *context["path"]]
    return " > ".join(["..."] * (len(steps) > CONTEXT_STEPS) + steps[-CONTEXT_STEPS:])


CONTEXT_STEPS = 3


def scope_name(scope: Json) -> str:
    """`iteration of main:23`, `invocation of main:23`, `call of main`, `call in recursion of f`, `run`."""
    if "loop" in scope:
        return f"{scope['kind']} of {scope['loop']['function']}:{scope['loop']['line']}"
    if scope["kind"] == "run":
        return "run"
    recursive = scope["context"]["path"] and scope["context"]["path"][-1].startswith("recursion ")
    return f"call {'in recursion of' if recursive else 'of'} {scope['function']}"


CLASSES = ("start", "interior", "past_end", "boundary", "dangling", "null", "elsewhere")


def points_to_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Instructions with the classes of their pointers and the objects, most pointers first."""
    result = report["result"]
    lines = [f"{report['module']}, trace {report['trace']}", "", *pointers_table(result["pointers"], limit, style)]
    if "accesses" in result:
        rows = sorted(result["accesses"], key=lambda row: -_accesses(row))
        shown = rows[: limit or None]
        cells = [[cell(row["instruction"]), f"{_accesses(row):,}", f"{row['unknown']:,}", _objects(row["objects"])]
                 for row in shown]
        lines += ["", style("accesses", "bold")]
        lines += table(["instruction", "count", "no object", "objects"], cells, frozenset({1, 2}), style)
        lines += more(len(rows), len(shown), "instructions")
    return "\n".join(lines) + "\n"


def pointers_table(pointers: Sequence[Json], limit: int, style: Style) -> list[str]:
    """Where pointers point; columns that are zero everywhere are left out."""
    rows = sorted(pointers, key=lambda row: -row["count"])
    shown = rows[: limit or None]
    used = [name for name in (*CLASSES, "never_dereferenced") if any(row[name] for row in rows)]
    cells = [[_place(row["instruction"]), f"{row['count']:,}",
              *(f"{row[name]:,}" if row[name] else "" for name in used), _objects(row["objects"])] for row in shown]
    header = ["pointer made at", "count", *(name.replace("_", " ") for name in used), "objects"]
    return [style("pointers", "bold"), *table(header, cells, frozenset(range(1, len(used) + 2)), style),
            *more(len(rows), len(shown), "instructions")]


def _accesses(row: Json) -> int:
    counts = (int(each.get("accesses", 0)) + int(each.get("dangling", 0)) for each in row["objects"] or ())
    return int(row["unknown"]) + sum(counts)


def _place(site: Json | None) -> str:
    if site is None:
        return "a library"
    return ":".join(str(site[key]) for key in ("file", "line", "column") if site[key]) or f"in {site['function']}"


def _objects(objects: Sequence[Json] | None) -> str:
    """The objects by name, each once whatever its context."""
    if objects is None:
        return "(more than --most)"
    names = list(dict.fromkeys(map(object_name, objects)))
    shown = ", ".join(names[:OBJECTS])
    return shown + (f", ... ({len(names)})" if len(names) > OBJECTS else "")


OBJECTS = 3
"""How many objects a line names."""



def privateer_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The sets of each loop, then the tables of the other modules."""
    result = report["result"]
    lines = [f"{report['module']}, trace {report['trace']}"]
    loops = result["loops"][: limit or None]
    for row in loops:
        loop = row["loop"]
        lines += ["", style(f"loop {loop['file']}:{loop['line']} in {loop['function']}", "bold")]
        for name in ("reads", "writes", "reductions", "short_lived"):
            if row[name]:
                by = {shown["operator"] for shown in row[name]} if name == "reductions" else set()
                operators = "".join(f" by {operator}" for operator in sorted(by))
                lines.append(f"  {name.replace('_', ' '):11}  {_objects(row[name])}{operators}")
    lines += more(len(result["loops"]), len(loops), "loops")
    values = result["instructions"][: limit or None]
    cells = [[_place(row["instruction"]), f"{row['count']:,}", row["pattern"], cell(row["value"])] for row in values]
    sites = sorted(result["sites"], key=lambda row: -row["objects"])
    shown = sites[: limit or None]
    lines += ["", style("lifetimes", "bold"), *sites_table(shown, style), *more(len(sites), len(shown), "sites")]
    lines += ["", *pointers_table(result["pointers"], limit, style)]
    lines += ["", style("predictable loads", "bold"),
              *table(["instruction", "count", "pattern", "value"], cells, frozenset({1}), style),
              *more(len(result["instructions"]), len(values), "instructions")]
    return "\n".join(lines) + "\n"


TEXTS: dict[str, Any] = {
    "object_lifetime": lifetime_text, "points_to": points_to_text, "privateer": privateer_text,
}
