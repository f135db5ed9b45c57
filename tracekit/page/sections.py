"""The page's sections as HTML. Whatever comes from a profile or a source passes through `text` or `in_script`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from tracekit import __version__, render_heatmap
from tracekit.annotation import LineNote
from tracekit.page.data import LoopRow, Shown, SourceFile
from tracekit.render import cell
from tracekit.render_annotation import carried as carried_ends
from tracekit.render_dependence import (
    UNSEEN,
    blocker_text,
    carried_text,
    context_text,
    recipe_text,
)
from tracekit.render_objects import context_name, object_name, scope_name
from tracekit.render_places import instruction_text, loop_text

Json = Mapping[str, Any]

LONGEST = 300
"""Characters of any one name."""
BLOCKERS = 6
OPEN_LINES = 1500
"""A file of more lines is not unfolded at first, since a long table takes time to lay out."""

NAMES = {"object_lifetime": "Object lifetimes", "value_pattern": "Value patterns", "points_to": "Points-to sets"}
"""Headings of modules that have no section of their own; of others, the module's name."""
OWN = ("camp", "lamp", "accesses", "heatmap")
"""Modules that the page shows in sections of their own."""

VERDICTS = ("sequential", "pipeline", "doall-with", "doall", "not-exercised")


def text(value: Any) -> str:
    """`value` as text of HTML or of an attribute in quotes, clipped where it is absurdly long."""
    plain = str(value)
    return escape(plain if len(plain) <= LONGEST else plain[:LONGEST] + "...")


def in_script(value: Any) -> str:
    """`value` as JSON that may stand in a script element: no `<` can end it."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def body(shown: Shown, title: str) -> dict[str, str]:
    """The parts of page.html by name."""
    sections = {
        "loops": ("Loops", _loops(shown)), "graph": ("Dependence graph", _graph(shown)),
        "source": ("Source", _source(shown)), "heatmap": ("Heat map", _heatmap(shown)),
        **{module: (NAMES.get(module, module.replace("_", " ").capitalize()), _module(shown, module))
           for module in shown.reports if module not in OWN},
    }
    there = {name: section for name, section in sections.items() if section[1]}
    return {
        "title": text(title),
        "facts": _facts(shown),
        "contents": "".join(f'<li><a href="#{text(name)}">{text(heading)}</a></li>'
                            for name, (heading, _) in there.items()),
        "sections": "\n".join(f'<section id="{text(name)}" aria-labelledby="{text(name)}-heading">'
                              f'<h2 id="{text(name)}-heading">{text(heading)}</h2>\n{content}</section>'
                              for name, (heading, content) in there.items()),
        "footer": text(f"Written by tracekit {__version__}. {' '.join(UNSEEN)}"),
        "graphs": _graph_data(shown),
    }


def _facts(shown: Shown) -> str:
    """What run this is, and what the page leaves out."""
    meta = shown.gathered.meta
    verdicts = Counter(str(loop.row["verdict"]) for loop in shown.loops)
    first = next(iter(shown.reports.values()), {})
    traces = first.get("traces") or [first.get("trace", "?")]
    accesses = sum(map(sum, (shown.notes.totals(file) for file in shown.notes.files)))
    rows = [
        ("Command", " ".join(map(str, meta["command"])) if meta.get("command") else ""),
        ("Recorded", meta.get("started", "")),
        ("Compiler", meta.get("compiler", "")),
        ("Trace" if len(traces) == 1 else f"{len(traces):,} traces", ", ".join(map(str, traces))),
        ("Window", ", ".join(f"{part} {value}" for part, value in first.get("window", {}).items())),
        ("Accesses", f"{accesses:,}" if accesses else ""),
        ("Loops", ", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in VERDICTS if verdicts[verdict])),
    ]
    listed = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in rows if value)
    left_out = "".join(f"<li>{text(sentence)}</li>" for sentence in shown.left_out)
    return f"<dl>{listed}</dl>" + (f'<ul class="note" aria-label="Left out">{left_out}</ul>' if left_out else "")


# -- tables ----------------------------------------------------------------------------------------


def table(name: str, caption: str, columns: Sequence[tuple[str, bool]], rows: Iterable[str]) -> str:
    """A table that scrolls in a region of its own. `columns`: heading, and whether they are numbers; the script sorts.
    """
    head = "".join(f'<th scope="col" aria-sort="none"{_number_class(number)}>{text(heading)}</th>'
                   for heading, number in columns)
    return (f'<div class="scroll" role="region" aria-label="{text(caption)}" tabindex="0"><table id="{text(name)}" '
            f'class="sortable"><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{''.join(rows)}</tbody></table></div>")


def _number_class(number: bool) -> str:
    return ' class="number"' if number else ""


def number_cell(value: float, shown: str | None = None, heading: str = "") -> str:
    """A cell with a number; the script sorts by `data-value`."""
    name = f' data-heading="{text(heading)}"' if heading else ""
    return f'<td class="number" data-value="{value}"{name}>{text(shown if shown is not None else f"{value:,}")}</td>'


# -- loops -----------------------------------------------------------------------------------------

LOOP_COLUMNS = (("Verdict", False), ("Loop", False), ("Accesses", True), ("Iterations", True), ("Invocations", True),
                ("Carries", False), ("Why", False), ("Context", False))


def _loops(shown: Shown) -> str:
    if not shown.loops_from:
        return ""
    if not shown.loops:
        return "<p>No loop ran.</p>"
    choices = "".join(f'<option value="{verdict}">{verdict}</option>' for verdict in VERDICTS
                      if any(loop.row["verdict"] == verdict for loop in shown.loops))
    controls = (
        '<form class="controls" hidden id="filter"><label>Filter <input type="search" id="filter-text" '
        'autocomplete="off" placeholder="function, file or text"></label> <label>Verdict <select id="filter-verdict">'
        f'<option value="">any</option>{choices}</select></label> <output id="filter-count" aria-live="polite">'
        "</output></form>")
    rows = [_loop_row(number, loop, shown) for number, loop in enumerate(shown.loops)]
    return controls + table("loop-table", f"Loops, hottest first, as {shown.loops_from} found them", LOOP_COLUMNS, rows)


def _loop_row(number: int, loop: LoopRow, shown: Shown) -> str:
    row = loop.row
    place = row["loop"]
    context = context_text(row["context"], place["function"], with_loop=False) if row["context"] else "any"
    name = _loop_name(loop)
    if _has_line(shown, place["file"], place["line"]):
        name = f'<a href="#{_line_id(shown, place["file"], place["line"])}">{name}</a>'
    graph = ""
    if loop.edges:
        graph = (f' <button type="button" class="show-graph" hidden data-loop="{number}">Graph'
                 f'<span class="visually-hidden"> of {_loop_name(loop)}</span></button>')
    return (f'<tr data-verdict="{text(row["verdict"])}"><td data-value="{VERDICTS.index(row["verdict"])}">'
            f'<span class="verdict {text(row["verdict"])}">{text(row["verdict"])}</span></td>'
            f'<th scope="row">{name}{graph}</th>'
            f"{number_cell(row['accesses'], f'{100 * loop.share:.1f}%', 'Accesses')}"
            f"{number_cell(row['iterations'], heading='Iterations')}"
            f"{number_cell(row['invocations'], heading='Invocations')}"
            f'<td data-heading="Carries">{text(carried_text(row["carried"]))}</td>'
            f'<td data-heading="Why">{_why(row)}</td><td data-heading="Context">{text(context)}</td></tr>\n')


def _why(row: Json) -> str:
    """The recipe, or what blocks the loop; more than one item folds."""
    items = [recipe_text(step) for step in row["recipe"]]
    blockers = list(dict.fromkeys(blocker_text(blocker) for blocker in row["blocked_by"]))
    items += blockers[:BLOCKERS]
    if len(blockers) > BLOCKERS:
        items.append(f"and {len(blockers) - BLOCKERS:,} more")
    shown_items = [text(item.replace(" -> ", " \u2192 ")) for item in items]
    if len(shown_items) < 2:
        return "".join(shown_items)
    listed = "".join(f"<li>{item}</li>" for item in shown_items[1:])
    return f"<details><summary>{shown_items[0]}</summary><ul>{listed}</ul></details>"


def _loop_name(loop: LoopRow) -> str:
    return text(loop_text(loop.row["loop"]))


# -- dependence graph ------------------------------------------------------------------------------


def _graph(shown: Shown) -> str:
    with_edges = [(number, loop) for number, loop in enumerate(shown.loops) if loop.edges]
    if not with_edges:
        return ""
    first = next((number for number, loop in with_edges if loop.edges[0]["carried"]), with_edges[0][0])
    options = "".join(
        f'<option value="{number}"{" selected" if number == first else ""}>{_loop_name(loop)} '
        f'({text(loop.row["verdict"])}, {100 * loop.share:.1f}%)</option>' for number, loop in with_edges)
    return ('<p class="needs-script">The graph is drawn by a script, which does not run here.</p>'
            '<div hidden id="graph-view"><p><label>Loop <select id="graph-loop">' + options + "</select></label> "
            '<label><input type="checkbox" id="graph-carried" checked> only what the loop carries</label></p>'
            '<p class="legend"><span class="key raw">RAW</span> a store feeds a load, '
            '<span class="key war">WAR</span> a load before a store, '
            '<span class="key waw">WAW</span> two stores. Arrows go from the earlier access to the later.</p>'
            '<p id="graph-said" aria-live="polite"></p>'
            '<div class="scroll" role="region" aria-label="Dependence graph" tabindex="0" id="graph-drawing"></div>'
            '<details id="graph-rows"><summary>The same as a table</summary><div class="scroll" role="region" '
            'aria-label="Dependences of the loop" tabindex="0"></div></details></div>')


def _graph_data(shown: Shown) -> str:
    """Instructions, and of each loop its dependences: [source, destination, kind, count, carried, least, greatest]."""
    instructions: dict[str, int] = {}

    def number(row: Json) -> int:
        return instructions.setdefault(instruction_text(row)[:LONGEST], len(instructions))

    loops = [{
        "more": loop.more_edges, "more_carried": loop.more_carried,
        "edges": [[number(edge["source"]), number(edge["destination"]), edge["kind"], edge["count"],
                   int(edge["carried"]), edge["min_distance"], edge["max_distance"]] for edge in loop.edges],
    } for loop in shown.loops]
    return in_script({"instructions": list(instructions), "loops": loops})


# -- source ----------------------------------------------------------------------------------------


def _source(shown: Shown) -> str:
    return "\n".join(_file(shown, number, file) for number, file in enumerate(shown.files))


def _file(shown: Shown, number: int, file: SourceFile) -> str:
    assert file.lines is not None
    notes = shown.notes.files[file.name]
    loads, stores = shown.notes.totals(file.name)
    rows: list[str] = []
    following = 1
    for first, last in file.stretches:
        if first > following:
            rows.append(f'<tr class="gap"><td colspan="6">{first - following:,} lines left out</td></tr>\n')
        following = last + 1
        rows += [_line(number, line, file.lines[line - 1], notes.get(line), file.name)
                 for line in range(first, last + 1)]
    name = shown.names.short(file.name)
    head = "".join(f'<th scope="col"{_number_class(heading in ("Line", "Loads", "Stores"))}>{heading}</th>'
                   for heading in ("Line", "Loads", "Stores", "Source", "Verdict", "Carried"))
    counts = f' <span class="dim">{loads:,} loads, {stores:,} stores</span>' if shown.notes.has_accesses else ""
    unfolded = number == 0 and len(rows) <= OPEN_LINES
    return (f'<details class="file"{" open" if unfolded else ""}><summary>{text(name)}{counts}</summary>'
            f'<div class="scroll" role="region" aria-label="{text(name)}" tabindex="0"><table class="code">'
            f'<caption class="visually-hidden">{text(name)}</caption><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{''.join(rows)}</tbody></table></div></details>")


def _line(file: int, number: int, source: str, note: LineNote | None, name: str) -> str:
    note = note or LineNote()
    verdicts = " ".join(f'<span class="verdict {text(verdict)}">{text(verdict)}</span>'
                        for verdict in dict.fromkeys(loop.verdict for loop in note.loops))
    return (f'<tr id="f{file}l{number}"><td class="number">{number}</td><td class="number">{_count(note.loads)}</td>'
            f'<td class="number">{_count(note.stores)}</td><td><code>{text(source.expandtabs(4))}</code></td>'
            f"<td>{verdicts}</td><td>{text(carried_ends(note, name))}</td></tr>\n")


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def _has_line(shown: Shown, name: str, line: int) -> bool:
    return any(shown.names.short(file.name) == name and any(first <= line <= last for first, last in file.stretches)
               for file in shown.files)


def _line_id(shown: Shown, name: str, line: int) -> str:
    number = next(number for number, file in enumerate(shown.files) if shown.names.short(file.name) == name)
    return f"f{number}l{line}"


# -- heat map, other modules -----------------------------------------------------------------------


def _heatmap(shown: Shown) -> str:
    report = shown.reports.get("heatmap")
    if report is None or not report["result"]["rows"]:
        return ""
    rows = [f'<tr><th scope="row">{text(row["start"])}</th>{number_cell(sum(row["loads"]))}'
            f"{number_cell(sum(row['stores']))}</tr>" for row in report["result"]["rows"]]
    totals = table("heatmap-rows", "Accesses of each row of memory",
                   (("Address", False), ("Loads", True), ("Stores", True)), rows)
    return ('<p>Memory downwards, time to the right; the stronger the colour, the more accesses, on a scale of '
            'logarithms.</p>'
            '<div class="scroll heat" role="region" aria-label="Heat map" tabindex="0">'
            f"{render_heatmap.svg(report)}</div><details><summary>The rows as a table</summary>{totals}</details>")


LIFETIME_COLUMNS = (("Object", False), ("Objects", True), ("Bytes", True), ("Never freed", True),
                    ("Lives within", False), ("Made in", False))


def _lifetimes(shown: Shown, sites: Sequence[Json]) -> str:
    """Sites of objects, most objects first, in the words of the module's text."""
    rows = sorted(sites, key=lambda row: -row["objects"])
    chosen = shown.names.shown(rows[: shown.rows])
    made = [f'<tr><th scope="row">{text(object_name(row["object"]))}</th>{number_cell(row["objects"])}'
            f"{number_cell(row['bytes'])}{number_cell(row['never_freed'])}<td>{text(scope_name(row['scope']))}</td>"
            f"<td>{text(context_name(row['object']))}</td></tr>\n" for row in chosen]
    more = f"<p>... and {len(rows) - len(made):,} more sites.</p>" if len(rows) > len(made) else ""
    return table("object_lifetime-sites", "Where objects are made, most objects first", LIFETIME_COLUMNS, made) + more


def _module(shown: Shown, module: str) -> str:
    """Any other module's tables, as the text would show them."""
    if module == "object_lifetime" and "sites" in shown.reports[module]["result"]:
        return _lifetimes(shown, shown.reports[module]["result"]["sites"])
    parts = []
    for name, value in shown.reports[module]["result"].items():
        heading = name.replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            parts.append(_rows(f"{module}-{name}", heading, value, shown))
        elif isinstance(value, Mapping):
            listed = "".join(f"<div><dt>{text(key.replace('_', ' '))}</dt><dd>{text(cell(part))}</dd></div>"
                             for key, part in value.items())
            parts.append(f"<h3>{text(heading)}</h3><dl>{listed}</dl>")
        else:
            parts.append(f"<p>{text(heading)}: {text(cell(value) if value != [] else 'none')}</p>")
    return "\n".join(parts)


def _rows(name: str, heading: str, rows: Sequence[Json], shown: Shown) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    number = {column: all(isinstance(row.get(column), (int, float)) and not isinstance(row.get(column), bool)
                          for row in rows) for column in columns}
    made = []
    for row in shown.names.shown(rows[: shown.rows]):
        cells = (number_cell(row[column], cell(row[column])) if number[column]
                 else f"<td>{text(cell(row.get(column)))}</td>" for column in columns)
        made.append(f"<tr>{''.join(cells)}</tr>\n")
    more = f"<p>... and {len(rows) - len(made):,} more rows.</p>" if len(rows) > len(made) else ""
    return table(name, heading, [(column.replace("_", " "), number[column]) for column in columns], made) + more
