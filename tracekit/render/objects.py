"""Reports about objects and values as text: object_lifetime, points_to, value_pattern, privateer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracekit.counted import counted
from tracekit.render.names import variable_name
from tracekit.render.places import loop_text, loops_told_apart, place_text, without_folder
from tracekit.render.text import Json, Style, cell, more, table, traces_text


def lifetime_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Sites with the scopes that hold their objects, most objects first."""
    rows = sorted(report["result"]["sites"], key=lambda row: -row["objects"])
    shown, folder = without_folder(rows[: limit or None], report)
    lines = [_head(report, folder), "", style("lifetimes", "bold")]
    lines += sites_table(shown, style) + more(len(rows), len(shown), "site")
    for row in shown:
        if len(row["lives"]) > 1:
            parts = ", ".join(
                f"{life['objects']:,} {scope_name(life['scope'])}"
                for life in sorted(row["lives"], key=lambda life: -life["objects"])
            )
            lines += ["", f"{object_name(row['object'])}: {parts}"]
            lines += [style(f"  in {_whole_context(row['object'])}", "dim")] if "context" in row["object"] else []
    return "\n".join(lines) + "\n"


def _head(report: Json, folder: str) -> str:
    return f"{report['module']}, {traces_text(report)}" + (f", files below {folder}" if folder else "")


def sites_table(rows: Sequence[Json], style: Style) -> list[str]:
    """One line for each site: the object, how many, how long."""
    cells = [
        [
            object_name(row["object"]),
            f"{row['objects']:,}",
            f"{row['bytes']:,}",
            f"{row['never_freed']:,}",
            scope_name(row["scope"]),
            context_name(row["object"]),
        ]
        for row in rows
    ]
    return table(["object", "objects", "bytes", "never freed", "scope", "made in"], cells, frozenset({1, 2, 3}), style)


def object_name(shown: Json) -> str:
    """`heap lines.c:3:5`, `stack name lines.c:3:5`, `stack in function lines.c:3:5`, `global name`."""
    if shown["kind"] == "global":
        return f"global {shown['name']}"
    if shown["kind"] == "unknown":
        return "memory of no known object"
    site = shown["site"]
    name = variable_name(shown.get("name", ""))
    if site is None:
        return f"{shown['kind']} {name or 'variable'} of a library" if shown["kind"] == "stack" else "heap of a library"
    if shown["kind"] == "stack" and not (name and site["line"]):
        return f"stack {name or 'variable'} in {site['function']}" + (f" {_place(site)}" if site["line"] else "")
    return " ".join(word for word in (shown["kind"], name, _place(site)) if word)


def _whole_context(shown: Json) -> str:
    return " > ".join([cell(shown["context"]), *shown.get("callers", ())])


def context_name(shown: Json) -> str:
    """The calls and loops around an object's making, the innermost three of them."""
    context = shown.get("context")
    if context is None:
        return ""
    steps = [context["root"], *context["path"], *shown.get("callers", ())]
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


LEGEND = {
    "boundary": "where one object ends and the next begins: either may be meant",
    "elsewhere": "functions, labels and other numbers; memory of code that was not instrumented",
    "never_dereferenced": "of those elsewhere: nothing was loaded or stored there later",
}


def points_to_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Instructions with the classes of their pointers and the objects, most pointers first."""
    result = report["result"]
    lines, folder = pointers_table(report, limit, style)
    lines = [_head(report, folder), "", *lines]
    if "accesses" in result:
        rows = sorted(result["accesses"], key=lambda row: -_accesses(row))
        shown, _ = without_folder(rows[: limit or None], report)
        several = ambiguous_sites(rows)
        cells = [
            [cell(row["instruction"]), f"{_accesses(row):,}", f"{row['unknown']:,}", _objects(row["objects"], several)]
            for row in shown
        ]
        lines += ["", style("accesses", "bold")]
        lines += table(["instruction", "count", "no object", "objects"], cells, frozenset({1, 2}), style)
        lines += more(len(rows), len(shown), "instruction")
    return "\n".join(lines) + "\n"


def pointers_table(report: Json, limit: int, style: Style) -> tuple[list[str], str]:
    """Where pointers point, and the folder of the files; columns that are zero everywhere are left out."""
    pointers = report["result"]["pointers"]
    rows = sorted(_together(pointers), key=lambda row: -row["count"])
    shown, folder = without_folder(rows[: limit or None], report)
    used = [name for name in (*CLASSES, "never_dereferenced") if any(row[name] for row in rows)]
    several = ambiguous_sites(pointers)
    cells = [
        [
            _made_at(row),
            f"{row['count']:,}",
            *(f"{row[name]:,}" if row[name] else "" for name in used),
            _objects(row["objects"], several),
        ]
        for row in shown
    ]
    header = ["pointer made at", "count", *(name.replace("_", " ") for name in used), "objects"]
    return [
        style("pointers", "bold"),
        *table(header, cells, frozenset(range(1, len(used) + 2)), style),
        *more(len(rows), len(shown), "place"),
        *(style(f"{name.replace('_', ' ')}: {LEGEND[name]}", "dim") for name in used if name in LEGEND),
    ], folder


def _together(pointers: Sequence[Json]) -> list[Json]:
    """Instructions of one place (a macro) whose pointers are of the same classes and objects, as one row."""
    groups: defaultdict[Any, list[Json]] = defaultdict(list)
    for number, row in enumerate(pointers):
        site = row["instruction"]
        key: Any = number
        if site and site["line"]:
            names = None if row["objects"] is None else sorted({object_name(site) for site in row["objects"]})
            key = repr([site["file"], site["line"], site["column"], [bool(row[name]) for name in CLASSES], names])
        groups[key].append(row)
    return [
        {
            **group[0],
            "instructions": len(group),
            **{name: sum(row[name] for row in group) for name in ("count", *CLASSES, "never_dereferenced")},
        }
        for group in groups.values()
    ]


def _made_at(row: Json) -> str:
    count = row["instructions"]
    return _place(row["instruction"]) + (f" ({count:,} instructions)" if count > 1 else "")


def ambiguous_sites(rows: Iterable[Json]) -> frozenset[str]:
    """Allocation sites that were reached in more than one way: there the caller tells which objects are meant."""
    ways: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for shown in row["objects"] or ():
            if shown["kind"] == "heap" and shown["site"]:
                ways[shown["site"]["id"]].add(_caller(shown))
    return frozenset(site for site, callers in ways.items() if len(callers) > 1)


def _caller(shown: Json) -> str:
    """The call that led to an allocation's function; inside a recursion the innermost few."""
    if shown.get("callers"):
        return " > ".join(shown["callers"])
    calls = [step for step in shown["context"]["path"] if not step.startswith("loop ")]
    return str(calls[-1]) if calls else ""


def _accesses(row: Json) -> int:
    counts = (int(site.get("accesses", 0)) + int(site.get("dangling", 0)) for site in row["objects"] or ())
    return int(row["unknown"]) + sum(counts)


def _place(site: Json | None) -> str:
    if site is None:
        return "a library"
    if not site["line"]:
        return f"{site['file']} in {site['function']}".lstrip()
    return place_text(site)


def _objects(objects: Sequence[Json] | None, several: frozenset[str] = frozenset()) -> str:
    """The objects by name, each once whatever its context; of a site in `several` each by its caller."""
    if objects is None:
        return "(more than --most)"

    def name(shown: Json) -> str:
        caller = _caller(shown) if shown["kind"] == "heap" and shown["site"] and shown["site"]["id"] in several else ""
        return object_name(shown) + (f" from {caller}" if caller else "")

    names = list(dict.fromkeys(map(name, objects)))
    shown = ", ".join(names[:OBJECTS])
    return shown + (f", ... ({len(names)})" if len(names) > OBJECTS else "")


OBJECTS = 3
"""How many objects a line names."""


def privateer_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The sets of each loop, those with most accesses first, then the tables of the other modules."""
    result = report["result"]
    hottest = loops_told_apart(sorted(result["loops"], key=lambda row: -row["accesses"]))
    loops, folder = without_folder(hottest[: limit or None], report)
    lines = [_head(report, folder)]
    several = ambiguous_sites({"objects": [*row["reads"], *row["writes"], *row["reductions"]]} for row in hottest)
    for row in loops:
        lines += ["", *_loop_sets(row, several, style)]
    lines += more(len(result["loops"]), len(loops), "loop")
    sites = sorted(result["sites"], key=lambda row: -row["objects"])
    shown, _ = without_folder(sites[: limit or None], report)
    lines += ["", style("lifetimes", "bold"), *sites_table(shown, style), *more(len(sites), len(shown), "site")]
    lines += ["", *pointers_table(report, limit, style)[0]]
    lines += ["", style("predictable loads", "bold"), *values_table(report, limit, style)[0]]
    return "\n".join(lines) + "\n"


def patterns_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Instructions with predictable values, those executed most often first."""
    lines, folder = values_table(report, limit, style)
    return "\n".join([_head(report, folder), "", style("instructions", "bold"), *lines]) + "\n"


def values_table(report: Json, limit: int, style: Style) -> tuple[list[str], str]:
    """The table, most executions first, and the folder of the files."""
    rows = sorted(report["result"]["instructions"], key=lambda row: -row["count"])
    shown, folder = without_folder(rows[: limit or None], report)
    cells = [
        [
            f"{row['instruction']['kind']} {_place(row['instruction'])}",
            f"{row['count']:,}",
            row["pattern"],
            cell(row["value"]),
        ]
        for row in shown
    ]
    return [
        *table(["instruction", "count", "pattern", "value"], cells, frozenset({1}), style),
        *more(len(rows), len(shown), "instruction"),
    ], folder


def _loop_sets(row: Json, several: frozenset[str], style: Style) -> list[str]:
    lines = [style(f"loop {loop_text(row['loop'])}", "bold") + f", {counted(row['accesses'], 'access')}"]
    for name in ("reads", "writes", "reductions", "short_lived"):
        if row[name]:
            by = {shown["operator"] for shown in row[name]} if name == "reductions" else set()
            operators = "".join(f" by {operator}" for operator in sorted(by))
            lines.append(f"  {name.replace('_', ' '):11}  {_objects(row[name], several)}{operators}")
    return lines
