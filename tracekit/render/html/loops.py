"""The sections of what loops carry: the table of loops, and the graph of the dependences at each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.render.dependence import (
    blocker_text,
    carried_text,
    context_text,
    not_taken_text,
    rests_on_text,
    transformation_text,
)
from tracekit.render.html.data import LoopRow, Shown
from tracekit.render.html.elements import LONGEST, in_script, number_cell, table, text
from tracekit.render.html.source import has_line, line_id
from tracekit.render.places import instruction_text, loop_text

Json = Mapping[str, Any]

BLOCKERS = 6
VERDICTS = ("sequential", "pipeline", "doall-with", "doall", "not-exercised")

LOOP_COLUMNS = (
    ("Verdict", False),
    ("Loop", False),
    ("Accesses", True),
    ("Iterations", True),
    ("Invocations", True),
    ("Carries", False),
    ("Why", False),
    ("Context", False),
)


def loops_section(shown: Shown) -> str:
    """The loops, hottest first, with a filter."""
    if not shown.loops_from:
        return ""
    if not shown.loops:
        return "<p>No loop ran.</p>"
    choices = "".join(
        f'<option value="{verdict}">{verdict}</option>'
        for verdict in VERDICTS
        if any(loop.row["verdict"] == verdict for loop in shown.loops)
    )
    controls = (
        '<form class="controls" hidden id="filter"><label>Filter <input type="search" id="filter-text" '
        'autocomplete="off" placeholder="function, file or text"></label> <label>Verdict <select id="filter-verdict">'
        f'<option value="">any</option>{choices}</select></label> <output id="filter-count" aria-live="polite">'
        "</output></form>"
    )
    rows = [_loop_row(number, loop, shown) for number, loop in enumerate(shown.loops)]
    return controls + table("loop-table", f"Loops, hottest first, as {shown.loops_from} found them", LOOP_COLUMNS, rows)


def _loop_row(number: int, loop: LoopRow, shown: Shown) -> str:
    row = loop.row
    place = row["loop"]
    context = context_text(row["context"], place["function"], with_loop=False) if row["context"] else "any"
    name = _loop_name(loop)
    if has_line(shown, place["file"], place["line"]):
        name = f'<a href="#{line_id(shown, place["file"], place["line"])}">{name}</a>'
    graph = ""
    if loop.edges:
        graph = (
            f' <button type="button" class="show-graph" hidden data-loop="{number}">Graph'
            f'<span class="visually-hidden"> of {_loop_name(loop)}</span></button>'
        )
    return (
        f'<tr data-verdict="{text(row["verdict"])}"><td data-value="{VERDICTS.index(row["verdict"])}">'
        f'<span class="verdict {text(row["verdict"])}">{text(row["verdict"])}</span></td>'
        f'<th scope="row">{name}{graph}</th>'
        f"{number_cell(row['accesses'], f'{100 * loop.share:.1f}%', 'Accesses')}"
        f"{number_cell(row['iterations'], heading='Iterations')}"
        f"{number_cell(row['invocations'], heading='Invocations')}"
        f'<td data-heading="Carries">{text(carried_text(row["carried"]))}</td>'
        f'<td data-heading="Why">{_why(row)}</td><td data-heading="Context">{text(context)}</td></tr>\n'
    )


def _why(row: Json) -> str:
    """The transformations, or what blocks the loop; more than one item folds."""
    items = [transformation_text(step) for step in row["recipe"]]
    if row.get("rests_on"):  # not in profiles of before
        items.append(f"no iteration changes {rests_on_text(row)}")
    if row.get("not_taken"):
        items.append(f"no iteration leaves it at {not_taken_text(row)}")
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


def graph_section(shown: Shown) -> str:
    """Where the script draws the dependences of a loop."""
    with_edges = [(number, loop) for number, loop in enumerate(shown.loops) if loop.edges]
    if not with_edges:
        return ""
    first = next((number for number, loop in with_edges if loop.edges[0]["carried"]), with_edges[0][0])
    options = "".join(
        f'<option value="{number}"{" selected" if number == first else ""}>{_loop_name(loop)} '
        f"({text(loop.row['verdict'])}, {100 * loop.share:.1f}%)</option>"
        for number, loop in with_edges
    )
    return (
        '<p class="needs-script">The graph is drawn by a script, which does not run here.</p>'
        '<div hidden id="graph-view"><p><label>Loop <select id="graph-loop">' + options + "</select></label> "
        '<label><input type="checkbox" id="graph-carried" checked> only what the loop carries</label></p>'
        '<p class="legend"><span class="key raw">RAW</span> a store feeds a load, '
        '<span class="key war">WAR</span> a load before a store, '
        '<span class="key waw">WAW</span> two stores. Arrows go from the earlier access to the later.</p>'
        '<p id="graph-said" aria-live="polite"></p>'
        '<div class="scroll" role="region" aria-label="Dependence graph" tabindex="0" id="graph-drawing"></div>'
        '<details id="graph-rows"><summary>The same as a table</summary><div class="scroll" role="region" '
        'aria-label="Dependences of the loop" tabindex="0"></div></details></div>'
    )


def graph_data(shown: Shown) -> str:
    """Instructions, and of each loop its dependences: [source, destination, kind, count, carried, least, greatest]."""
    instructions: dict[str, int] = {}

    def number(row: Json) -> int:
        return instructions.setdefault(instruction_text(row)[:LONGEST], len(instructions))

    loops = [
        {
            "more": loop.more_edges,
            "more_carried": loop.more_carried,
            "edges": [
                [
                    number(edge["source"]),
                    number(edge["destination"]),
                    edge["kind"],
                    edge["count"],
                    int(edge["carried"]),
                    edge["min_distance"],
                    edge["max_distance"],
                ]
                for edge in loop.edges
            ],
        }
        for loop in shown.loops
    ]
    return in_script({"instructions": list(instructions), "loops": loops})
