"""The text of camp's and lamp's profiles: loops with their verdicts, then dependences, then the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from textwrap import wrap
from typing import Any

from tracekit.counted import counted
from tracekit.modules.table import column, heaviest
from tracekit.render.names import variable_name
from tracekit.render.places import instruction_text, loop_text, loops_told_apart, place_text, without_folder
from tracekit.render.text import Json, Style, more, table, traces_text

OPENING = "A verdict is about this run. "
UNSEEN_WIDTH = 110
VERDICT_COLOUR = {
    "doall": "green",
    "doall-with": "green",
    "pipeline": "yellow",
    "sequential": "red",
    "not-exercised": "dim",
}
REASONS_SHOWN = 3
LEVELS_SHOWN = 3
CONTEXT_WIDTH = 100
INLINED_SHOWN = 3


def unseen_lines(threads: bool, opening: str = OPENING, width: int = 0) -> list[str]:
    """What a profile cannot tell; `threads`: dependences between threads are in it; `width`: the terminal's, or 0."""
    unseen = "other inputs, code that was not instrumented (what it reads and writes, what it returns)"
    if not threads:
        unseen += ", dependences between threads"
    text = f"{opening}Not seen: {unseen}. Test before you parallelise."
    texts = [text]
    if threads:
        texts.append("Dependences between threads change no verdict: it speaks of the iterations of one thread.")
    widest = min(width or UNSEEN_WIDTH, UNSEEN_WIDTH)
    return [line for text in texts for line in wrap(text, widest, break_long_words=False, break_on_hyphens=False)]


def with_threads(report: Json) -> bool:
    """Whether dependences between threads are in a profile."""
    return bool(report.get("options", {}).get("threads"))


UNSEEN = unseen_lines(threads=False)
"""Where dependences between threads are never shown."""


def dependence_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """All sections, each at most `limit` rows (0: all)."""
    result = report["result"]
    loops = result["loops"]
    hottest = loops_told_apart(heaviest(loops, limit, "accesses"), column(loops, "loop"))
    between = result.get("between_threads", ())
    listed = [heaviest(rows, limit) for rows in (result["dependences"], between)]
    shown, folder = without_folder([hottest, *listed], report)
    lines = [f"{report['module']}, {traces_text(report)}" + (f", files below {folder}" if folder else ""), ""]
    lines += [*_loops(shown[0], facts.get("accesses", 0), len(loops), style), ""]
    lines += [*_dependences(shown[1], report["options"], len(result["dependences"]), style), ""]
    if with_threads(report):
        lines += [*between_lines(shown[2], len(between), style), ""]
    lines += [*_summary(report, style), "", *unseen_lines(with_threads(report), width=style.width)]
    return "\n".join(lines) + "\n"


# -- loops -----------------------------------------------------------------------------------------


def _loops(shown: Sequence[Json], accesses: int, total: int, style: Style) -> list[str]:
    if not total:
        return [style("LOOPS", "bold"), "No loop ran."]
    lines = [style(f"LOOPS, hottest first ({total:,})", "bold")]
    rows = [
        (
            row["verdict"],
            loop_text(row["loop"]),
            f"{row['iterations']:,}",
            f"{row['invocations']:,}",
            f"{100 * row['accesses'] / accesses:.1f}%" if accesses else "-",
            carried_text(row["carried"]),
        )
        for row in shown
    ]
    header = ("VERDICT", "LOOP", "ITERATIONS", "INVOCATIONS", "ACCESSES", "CARRIES")

    def paint(column: int, cell: str) -> str:
        return style(cell, VERDICT_COLOUR[cell.strip()]) if column == 0 else cell

    head, *body = table(header, rows, frozenset((2, 3, 4)), style, paint)
    lines.append(head)
    contexts = _contexts_of_loops(shown)
    for text, row in zip(body, shown):
        lines.append(text)
        if row["context"]:
            lines.append(f"    in {contexts[id(row)]}")
        lines += [f"    {detail}" for detail in loop_details(row)]
    return lines + more(total, len(shown), "loop")


def _contexts_of_loops(rows: Sequence[Json]) -> dict[int, str]:
    """By identity of the row the context of a loop; those of one loop are told apart."""
    by_loop: dict[str, list[Json]] = {}
    for row in rows:
        if row["context"]:
            by_loop.setdefault(loop_text(row["loop"]), []).append(row)
    return {
        id(row): text
        for group in by_loop.values()
        for row, text in zip(group, context_texts([row["context"] for row in group], group[0]["loop"]["function"]))
    }


def carried_text(carried: Json) -> str:
    """How many dependences of each kind: `2 RAW, 1 WAW`."""
    return ", ".join(f"{count:,} {kind.upper()}" for kind, count in carried.items() if count) or "-"


def loop_details(row: Json) -> list[str]:
    """The transformations, or what blocks the loop."""
    details = list(dict.fromkeys(transformation_text(step) for step in row["recipe"]))
    for _, group in groupby(row["blocked_by"], key=lambda blocker: str(blocker["reason"])):
        blockers = list(dict.fromkeys(blocker_text(blocker) for blocker in group))
        details += [f"blocked: {text}" for text in blockers[:REASONS_SHOWN]]
        if len(blockers) > REASONS_SHOWN:
            details.append(f"blocked: ... and {len(blockers) - REASONS_SHOWN:,} more of this kind")
    if row.get("rests_on"):  # not in profiles of before
        details.append(f"rests on: no iteration changes {rests_on_text(row)}")
    if row.get("not_taken"):
        details.append(f"rests on: no iteration leaves it at {not_taken_text(row)}")
    return details


def rests_on_text(row: Json) -> str:
    """What decides how many iterations there are, and is read in each of them."""
    return _read_text(row["rests_on"], "the bound")


def not_taken_text(row: Json) -> str:
    """The exits that the run did not take."""
    return ", ".join(dict.fromkeys(place_text(exit_) for exit_ in row["not_taken"]))


def depends_on_text(source: Json) -> str:
    """What the decision at an exit depends on; empty if older profiles, or images, do not say."""
    return _read_text(source.get("depends_on") or (), "what is loaded")


def _read_text(rows: Sequence[Json], nameless: str) -> str:
    """Loads, calls and variables, each name once with its places, each place once."""
    places: dict[str, str] = {}
    for row in rows:
        if row["kind"] == "register":
            what = f"{variable_name(row['name']) or 'a value'} of the iteration before"
        else:
            what = "what the call returns" if row["kind"] == "call" else variable_name(row["name"]) or nameless
        places.setdefault(place_text(row), what)
    by_name: dict[str, list[str]] = {}
    for place, what in places.items():
        by_name.setdefault(what, []).append(place)
    shown = [f"{what} ({_some(at)})" for what, at in list(by_name.items())[:REASONS_SHOWN]]
    return ", ".join(shown) + (f" and {len(by_name) - REASONS_SHOWN:,} more" if len(by_name) > REASONS_SHOWN else "")


def _some(places: Sequence[str]) -> str:
    return ", ".join(places[:REASONS_SHOWN]) + (", ..." if len(places) > REASONS_SHOWN else "")


def causes_text(source: Json) -> str:
    """What the decision at an exit depends on, in any case: where nothing is known, that and what to do."""
    if "depends_on" not in source or source["depends_on"] is None:
        return "something that the trace of an older tracekit does not name (build and record again)"
    return depends_on_text(source) or "a volatile or atomic value, or where a loop inside it ends"


def transformation_text(step: Json) -> str:
    """One transformation as an instruction to the reader."""
    if step["kind"] == "reduction" and (value := set_to(step["operator"])):
        return f"with {object_text(step['object'])} set to {value} by any iteration"
    if step["kind"] == "reduction":
        return f"with reduction ({step['operator'] or '?'}) of {object_text(step['object'])}"
    if step["kind"] == "same value":
        return f"with {object_text(step['object'])} stored by any iteration: all store the same value"
    last = ", the last one's kept" if step["kind"] == "lastprivate" else ""
    return f"with a private copy of {object_text(step['object'])} for each iteration{last}"


def set_to(operator: str | None) -> str:
    """What a reduction (`=`, `=1`) sets a variable to that iterations leave alone otherwise; empty: it accumulates."""
    return (operator[1:] or "one value") if operator and operator.startswith("=") else ""


def object_text(thing: Json) -> str:
    """A variable, or the memory of an allocation site."""
    kind, name = thing["kind"], variable_name(thing.get("name", ""))
    if kind == "stack" and name != thing.get("name", ""):
        return name  # of the compiler: it is no local that the source has
    if kind == "register":
        if name and thing.get("nearby"):
            return str(name)
        return f"{name or 'a value'} at {place_text(thing)}" if thing["line"] else name or "a value in a register"
    if kind == "unknown":
        return "memory of unknown origin"
    words = {"global": "global", "stack": "local", "heap": "heap memory"}
    text = f"{words.get(kind, kind)} {name}".rstrip()
    if kind == "heap":
        return f"{text} allocated {_allocation(thing)}" if "site" in thing else f"{text} of a library"
    return text if name or kind != "stack" else f"a local of {_unnamed(thing.get('site'))}"


def _allocation(thing: Json) -> str:
    """`at memory.c:4:13 in xmalloc, called at app.c:9:12, app.c:10:12`: where, and who asked for it."""
    site = thing["site"]
    shown = [f"at {place_text(site)}"]
    if not site.get("system"):
        shown += [
            f"in {inner['function']}, called at {place_text(outer)}"
            for inner, outer in pairwise([site, *site["inlined_at"][:INLINED_SHOWN]])
        ]
    if calls := thing.get("called_at"):
        more = ", ..." if thing["called_elsewhere"] else ""
        shown.append(f"in {outermost(site)}, called at {', '.join(map(place_text, calls))}{more}")
    return " ".join(shown)


def _unnamed(site: Json | None) -> str:
    """Where a local variable stands whose name the program's debug information does not give."""
    if not site:
        return "a library"
    return str(site["function"]) + (f" ({place_text(site)})" if site["line"] else "")


def blocker_text(blocker: Json) -> str:
    """One obstacle in a sentence."""
    source, destination = blocker["source"], blocker["destination"]
    if blocker["reason"] == "dependence":
        return f"{instruction_text(source)} -> {instruction_text(destination)}"
    if blocker["reason"] == "recurrence":
        where = f" ({place_text(source)})" if source["line"] else ""
        return f"needs {variable_name(source['name']) or 'a value'} of the iteration before{where}"
    if blocker["reason"] == "exit":
        return f"may be left early at {place_text(source)}, which depends on {causes_text(source)}"
    return f"call with effects that the trace does not show: {place_text(source)} {source['function']}"


# -- dependences -----------------------------------------------------------------------------------


def _dependences(shown: Sequence[Json], options: Json, total: int, style: Style) -> list[str]:
    title = f"DEPENDENCES by weight ({total:,})"
    if options.get("carried_by"):
        title += f", carried by {options['carried_by']}"
    lines = [style(title, "bold")]
    if not total:
        return [*lines, "None."]
    head, *body = _rows(shown, style)
    lines.append(head)
    for text, row in zip(body, shown):
        lines.append(text)
        lines += [f"    {detail}" for detail in dependence_details(row)]
    return lines + more(total, len(shown), "dependence")


def _rows(shown: Sequence[Json], style: Style) -> list[str]:
    """The heads of the columns, and a line for each dependence."""
    cells = [
        (row["kind"], f"{row['count']:,}", instruction_text(row["source"]), "->", instruction_text(row["destination"]))
        for row in shown
    ]
    return table(("KIND", "COUNT", "SOURCE", "", "DESTINATION"), cells, frozenset((1,)), style)


def between_lines(shown: Sequence[Json], total: int, style: Style) -> list[str]:
    """The dependences between threads: both ends, and what their threads are for."""
    lines = [style(f"BETWEEN THREADS by weight ({total:,})", "bold")]
    if not total:
        return [*lines, "None."]
    head, *body = _rows(shown, style)
    lines.append(head)
    for text, row in zip(body, shown):
        lines += [text, f"    threads {role_text(row['source_thread'])} -> {role_text(row['destination_thread'])}"]
        if row["pairs"] > 1:
            lines[-1] += f", {row['pairs']:,} pairs of them"
        lines += [f"    {detail}" for detail in _ends(row)]
    return lines + more(total, len(shown), "dependence")


def role_text(role: Json) -> str:
    """`worker (created in main > worker@30)`: what a thread is for."""
    name = role["function"] or "(of a library)"
    created = role["created"]
    if not created:
        return name
    return f"{name} (created in {_unnumbered(context_text(created, name))})"


def dependence_details(row: Json) -> list[str]:
    """The loops that carry a dependence, and the contexts of its ends."""
    return _levels(row["levels"]) + _ends(row)


def _ends(row: Json) -> list[str]:
    """The contexts of both ends, if they are told apart."""
    lines: list[str] = []
    if row["source_context"]:
        ends = [(row["source_context"], outermost(row["source"]))]
        if row["destination_context"] != row["source_context"]:
            ends.append((row["destination_context"], outermost(row["destination"])))
        texts = [context_text(*end) for end in ends]
        if len({_unnumbered(text) for text in texts}) < len(texts):
            texts = [context_text(*end, columns=True) for end in ends]
        words = ["in"] if len(texts) == 1 else ["from", "to  "]
        lines += [f"{word} {text}" for word, text in zip(words, texts)]
    return lines


def outermost(row: Json) -> str:
    """The function whose code an instruction stands in, where it was inlined."""
    return str(row["inlined_at"][-1]["function"] if row["inlined_at"] else row["function"])


def _levels(levels: Sequence[Json]) -> list[str]:
    """Which loops carry it, and the innermost loop in one iteration of which it also happens."""
    carrying = [level for level in levels if level["inter"]]
    within = [level for level in levels if level["intra"]]
    shown = carrying[-LEVELS_SHOWN:]
    texts = [f"carried by {_level_text(level['loop'])}, distance {_distance(level)}" for level in shown]
    if len(carrying) > LEVELS_SHOWN:
        texts.insert(0, f"carried by {len(carrying) - LEVELS_SHOWN} outer loops")
    if within:
        texts.append(f"within an iteration of {_level_text(within[-1]['loop'])}")
    return ["; ".join(texts)] if texts else []


def _level_text(loop: Json) -> str:
    return f"recursion {loop['recursion']}" if "recursion" in loop else f"loop {loop['function']}:{loop['line']}"


def _distance(level: Json) -> str:
    least, most = level["min_distance"], level["max_distance"]
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


# -- contexts --------------------------------------------------------------------------------------


def context_texts(contexts: Sequence[Json], function: str) -> list[str]:
    """The contexts of a loop of `function`; those that would print alike have the columns of their call sites."""
    texts = [context_text(context, function, with_loop=False) for context in contexts]
    plain = [_unnumbered(text) for text in texts]
    return [
        context_text(context, function, with_loop=False, columns=True) if plain.count(alike) > 1 else text
        for context, text, alike in zip(contexts, texts, plain)
    ]


def _unnumbered(text: str) -> str:
    """The text of a context without its number."""
    return text.partition("  [")[0]


def context_text(context: Json, function: str, with_loop: bool = True, columns: bool = False) -> str:
    """`main > loop main:23 > work@25`; `function` is the one that the path leads to.

    A call site is shown as callee@line, or with `columns` as callee@line:column; the callee is the function of the
    next step.
    """
    path = list(context["path"]) if with_loop else list(context["path"])[:-1]
    steps = [_step(step) for step in context["path"]]
    shown = [str(context["root"])]
    for number in range(len(path)):
        kind, _, line, column = steps[number]
        following = steps[number + 1][1] if number + 1 < len(steps) else function
        if kind == "loop":
            shown.append(path[number])
        else:
            place = f"{line}:{column}" if columns else line
            shown.append(f"{'recursion ' if kind == 'recursion' else ''}{following}@{place}")
    number_text = "" if context["id"] is None else f"  [{context['id']}]"
    return _shortened(shown) + number_text


def _shortened(steps: list[str]) -> str:
    """The steps in a line; of a deep context the root and as many of the innermost steps as fit."""
    text = " > ".join(steps)
    dropped = 1
    while len(text) > CONTEXT_WIDTH and dropped < len(steps) - 1:
        text = " > ".join([steps[0], f"... {dropped} more", *steps[1 + dropped :]])
        dropped += 1
    return text


def _step(step: str) -> tuple[str, str, str, str]:
    """A step of a path -> (kind, function whose text it stands in, line, column of a call)."""
    if step.startswith("loop "):
        function, _, line = step[len("loop ") :].rpartition(":")
        return "loop", function, line, ""
    kind = "recursion" if step.startswith("recursion ") else "call"
    function, line, column = (step[len("recursion ") :] if kind == "recursion" else step).rsplit(":", 2)
    return kind, function, line, column


# -- summary ---------------------------------------------------------------------------------------


def _about_contexts(summary: Json) -> str:
    """How many of them CAMP's static tree has, and how many a recursion came back to."""
    without = summary["contexts_without_id"]
    if "recursive_contexts" not in summary:
        return f" ({without:,} without a CAMP id)" if without else ""
    facts = [f"{summary['contexts'] - without:,} with a CAMP id"] if without else []
    if summary["recursive_contexts"]:
        facts.append(f"{summary['recursive_contexts']:,} entered again by recursion")
    return f" ({'; '.join(facts)})" if facts else ""


def _summary(report: Json, style: Style) -> list[str]:
    summary: dict[str, Any] = report["result"]["summary"]
    lines = [style("SUMMARY", "bold"), counted(summary["dependences"], "dependence")]
    if "contexts" in summary:
        lines[-1] += f" in {counted(summary['contexts'], 'context')}{_about_contexts(summary)}"
        if summary.get("limited_contexts"):
            lines.append(
                f"There were too many contexts: inside {counted(summary['limited_contexts'], 'recursion')} "
                "not all are told apart"
            )
        lines.append(
            f"{counted(summary['parallel_loops_camp'], 'parallel loop')} (doall, doall-with or pipeline); "
            f"without contexts (lamp) {summary['parallel_loops_lamp']:,}"
        )
        share = 100 * summary["false_positive_share"]
        lines.append(f"{share:.1f}% of the dependences that lamp implies between contexts did not happen")
    return lines
