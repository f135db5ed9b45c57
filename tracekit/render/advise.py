"""The text of advise's profile: for each hot loop what to do, or what stands in the way and what would remove it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby

from tracekit.counted import counted
from tracekit.program.fates import fate_text
from tracekit.render.blockers import blocked, first_thing, frequency, wrapped
from tracekit.render.dependence import (
    VERDICT_COLOUR,
    between_lines,
    carried_text,
    context_texts,
    not_taken_text,
    object_text,
    rests_on_text,
    set_to,
    unseen_lines,
    with_threads,
)
from tracekit.render.places import loop_text, loops_told_apart, place_text, without_folder
from tracekit.render.text import Json, Style, more

STAGES_SHOWN = 6
BETWEEN_SHOWN = 10
SMALL = 1.0
"""Percent of a loop's accesses: of many stages, those with less are not listed."""
CONTEXTS_SHOWN = 3
INLINED_SHOWN = 3
LINES_SHOWN = 8
HELD_SHOWN = 4
CLOCKS_SHOWN = 3
MEASURED = "In parallel such times overlap: their sum is no longer the time that passes."
COMMAND_WIDTH = 100

VERDICTS = {
    "doall": "Its iterations are independent",
    "doall-with": "Its iterations are independent once the following is done",
    "pipeline": "Its iterations depend on each other, but its stages may overlap",
    "sequential": "Its iterations depend on each other",
}


def advise_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Every loop that the profile has, at most `limit` (0: all)."""
    result = report["result"]
    loops, folder = without_folder(loops_told_apart(result["loops"])[: limit or None], report)
    replaced, _ = without_folder(result.get("replaced"), report)
    lines = [f"{report['module']}, trace {report['trace']}" + (f", files below {folder}" if folder else "")]
    if replaced:
        lines += ["", *wrapped(fate_text(replaced), "", style)]
    for number, row in enumerate(loops, 1):
        lines += ["", *_loop(number, row, style)]
        around = [outer for outer, other in enumerate(loops[: number - 1], 1) if _surrounds(other, row)]
        if around and row["openmp"]:
            lines.append(f"   It lies inside loop {around[-1]}, which is parallel, too: one of them is enough.")
    if not loops and not report["options"].get("at"):
        lines += ["", "No hot loop reached a second iteration."]
    elif not loops and not (replaced and not replaced["into"]):
        at = f"{replaced['into']['file']}:{replaced['into']['line']}" if replaced else report["options"]["at"]
        lines += ["", f"The loop at {at} did not run."]
    lines += more(len(result["loops"]), len(loops), "loop")
    further, _ = without_folder(loops_told_apart(result["further_parallel"])[: limit or None], report)
    if further:
        lines += ["", style("ALSO PARALLEL, but not among the hottest (--top 0 shows all in full)", "bold")]
        lines += [f"   {loop_text(row['loop'])}, {_share(row['share'])}: {row['verdict']}" for row in further]
    if with_threads(report):
        lines += ["", *_between(report, limit, style)]
    return "\n".join([*lines, "", *_summary(report, style)]) + "\n"


def _between(report: Json, limit: int, style: Style) -> list[str]:
    """The dependences between threads, those that happened most often; `limit` 0 is for all loops, not for these."""
    rows = sorted(report["result"]["between_threads"], key=lambda row: -row["count"])
    shown, _ = without_folder(rows[: limit or BETWEEN_SHOWN], report)
    return between_lines(shown, len(rows), style)


def _loop(number: int, row: Json, style: Style) -> list[str]:
    loop = row["loop"]
    head = f"{number}. {loop_text(loop)}, {_share(row['share'])} of all accesses: "
    lines = [style(head, "bold") + style(row["verdict"], VERDICT_COLOUR[row["verdict"]])]
    for case in row["cases"]:
        lines += [f"   {line}" for line in _case(case, loop, len(row["cases"]) > 1, style)]
    if len(row["cases"]) > 1 and len({case["verdict"] for case in row["cases"]}) > 1:
        lines.append("   The verdict depends on the caller: a copy of the function for the better one could use it.")
    if row["openmp"]:
        lines += _openmp(row["openmp"], style)
    if row.get("holds"):
        held = f"   Part of it since the program was optimised: {_held_text(row['holds'])}."
        lines += wrapped(held, "      ", style)
    if any(row.get("between_threads", {}).values()):
        reaching = row["between_threads"]
        lines += wrapped(
            f"   Other threads: {counted(sum(reaching.values()), 'dependence')} between threads "
            f"({carried_text(reaching)}) {'has an end' if sum(reaching.values()) == 1 else 'have ends'} in it; whoever "
            "runs its iterations has to keep their order with the other threads.",
            "      ",
            style,
        )
    if row["contexts_not_exercised"]:
        count = row["contexts_not_exercised"]
        lines.append(f"   In {counted(count, 'more context')} it never reached a second iteration.")
    return lines


def _held_text(rows: Sequence[Json]) -> str:
    """The loops of the source that are part of another one, at most some."""
    shown = [f"the loop at {row['loop']['file']}:{row['loop']['line']}" for row in rows[:HELD_SHOWN]]
    rest = len(rows) - len(shown)
    return ", ".join([*shown, *([counted(rest, "more loop")] if rest else [])])


def _surrounds(outer: Json, inner: Json) -> bool:
    """Does a parallel loop's text hold that of another loop?"""
    around, inside = outer["loop"], inner["loop"]
    same = around["file"] == inside["file"] and around["function"] == inside["function"]
    within = around["line"] <= inside["line"] <= inside["end_line"] <= around["end_line"]
    return bool(outer["openmp"]) and same and within and bool(around["depth"] < inside["depth"])


def _openmp(openmp: Json, style: Style) -> list[str]:
    if not openmp["pragma"]:
        return wrapped(f"   No ready OpenMP directive: {openmp['missing']}.", "      ", style)
    lines = [f"   before {openmp['file']}:{openmp['line']}:  {style(openmp['pragma'], 'green')}"]
    if openmp["rounding"]:
        lines.append("   (Floating point: accumulated in another order, the last digits may differ.)")
    return lines


def _share(percent: float) -> str:
    return f"{percent:.1f}%"


# -- one case --------------------------------------------------------------------------------------


def _case(case: Json, loop: Json, several: bool, style: Style) -> list[str]:
    lines = []
    if several:
        lines.append(f"case {style(case['verdict'], VERDICT_COLOUR[case['verdict']])}, {_share(case['share'])}:")
    lines += first_thing(case["blocked_by"], style)
    lines.append(f"{VERDICTS[case['verdict']]}. {_trips(case)}.")
    contexts = _contexts(case["contexts"], loop["function"])
    if several or len(contexts) > 1 or any(context.get("inlined_at") for context in case["contexts"]):
        lines += [f"  in {context}" for context in contexts[:CONTEXTS_SHOWN]]
        if len(contexts) > CONTEXTS_SHOWN:
            lines.append(f"  in {counted(len(contexts) - CONTEXTS_SHOWN, 'more context')}")
    for step in dict.fromkeys(map(_step, case["recipe"])):
        lines += wrapped(f"- {step}", "    ", style)
    if case.get("rests_on"):  # not in profiles of before
        lines += wrapped(f"No iteration changes what decides their number: {rests_on_text(case)}.", "  ", style)
    if case.get("not_taken"):
        never = f"This run never left it at {not_taken_text(case)}; an iteration that does stops the others."
        lines += wrapped(never, "  ", style)
    if case.get("clocks"):
        lines += wrapped(f"It reads the clock: {_clocks_text(case['clocks'])}. {MEASURED}", "  ", style)
    lines += blocked(case["blocked_by"], loop["function"], style)
    if case["independent_in_a_row"]:
        lines.append(f"Any {case['independent_in_a_row']:,} iterations in a row are independent of each other.")
    if case["speculation"]:
        lines.append(_speculation(case))
    only_exits = bool(case["blocked_by"]) and all(row["reason"] == "exit" for row in case["blocked_by"])
    lines += _stages(case, only_exits, style)
    return lines


def _clocks_text(rows: Sequence[Json]) -> str:
    """The calls that read a clock, at most some."""
    shown = list(dict.fromkeys(f"{row['callee']} at {place_text(row)}" for row in rows))
    rest = len(shown) - CLOCKS_SHOWN
    return ", ".join([*shown[:CLOCKS_SHOWN], *([counted(rest, "more call")] if rest > 0 else [])])


def _contexts(contexts: Sequence[Json], function: str) -> list[str]:
    """Where a loop ran: call paths, each once, and for copies of it the calls that were inlined."""
    homes = [context["inlined_at"][-1]["function"] if context.get("inlined_at") else function for context in contexts]
    texts = context_texts(contexts, homes[0]) if len(set(homes)) == 1 else []
    texts = texts or [context_texts([context], home)[0] for context, home in zip(contexts, homes)]
    return list(dict.fromkeys(text + _inlined(context) for text, context in zip(texts, contexts)))


def _inlined(context: Json) -> str:
    """The calls that were inlined around a copy of a loop: of the program's own, those next to it."""
    places = [place for place in context.get("inlined_at", ()) if not place.get("system")]
    shown = [place_text(place) for place in places[:INLINED_SHOWN]]
    more = [f"{len(places) - INLINED_SHOWN:,} more"] if len(places) > INLINED_SHOWN else []
    return f", inlined at {', in turn at '.join([*shown, *more])}" if shown else ""


def _trips(case: Json) -> str:
    trips = case["trips"]
    spread = (
        f"{trips['min']:,}"
        if trips["min"] == trips["max"]
        else f"{trips['min']:,} to {trips['max']:,} (mean {trips['mean']:,.1f})"
    )
    times = "once" if case["invocations"] == 1 else f"{case['invocations']:,} times"
    return f"Ran {times}, {spread} iteration{'s' * (spread != '1')}" + (" each" if case["invocations"] > 1 else "")


def _step(step: Json) -> str:
    if step["kind"] == "reduction" and (value := set_to(step["operator"])):
        return f"all iterations that set {object_text(step['object'])} set it to {value}: any of them may win"
    if step["kind"] == "reduction":
        return f"reduce {object_text(step['object'])} with {step['operator'] or '?'}"
    if step["kind"] == "same value":
        return f"all iterations that store {object_text(step['object'])} store the same value: the last one may win"
    last = "; keep the last one's" if step["kind"] == "lastprivate" else ""
    return f"give each iteration a copy of {object_text(step['object'])} (it writes before it reads){last}"


def _speculation(case: Json) -> str:
    conflicts = case["speculation"]
    return (
        f"Speculate: all that blocks it is rare, {counted(conflicts['executions'], 'conflict')} in "
        f"{counted(case['iterations'], 'iteration')} ({frequency(conflicts['per_iteration'])})."
    )


def _stages(case: Json, only_exits: bool, style: Style) -> list[str]:
    """The stages that make accesses or hand on values, unless by the verdict one of them leaves the others nothing.

    If all that is in the way is where it ends, `only_exits`, what stages would gain is not worth a word.
    """
    verdict, stages, unplaced = case["verdict"], case["stages"], case["unplaced_share"]
    most = max((float(stage["share"]) for stage in stages if not stage["parallel"]), default=0.0)
    if verdict == "sequential" and stages:
        return [f"Stages are no help: one that must run in order makes {_share(most)} of its accesses."]
    lines = []
    small = len(stages) > STAGES_SHOWN
    for number, stage in enumerate(stages, 1):
        if small and stage["share"] < SMALL:
            continue
        kind = "parallel" if stage["parallel"] else "in order"
        head = f"stage {number}, {kind}, {_share(stage['share'])} of its accesses: "
        lines += wrapped(head + _stage_lines(stage), "    ", style)
    if small and any(stage["share"] < SMALL for stage in stages):
        left = [stage for stage in stages if stage["share"] < SMALL]
        lines.append(
            f"{counted(len(left), 'more stage makes', 'more stages make')} less than {SMALL:g}% of its accesses each "
            "(--json shows all)."
        )
    if unplaced >= SMALL:
        lines.append(
            f"{_share(unplaced)} of its accesses are made by what it calls; inside a recursion it is not "
            "known by which stage."
        )
    elif most and not only_exits:
        trips = case["trips"]["max"]
        best = f"{100 / most:.1f} times as fast" if trips > 100 / most else f"{trips:,} times, in {trips:,} iterations"
        lines.append(f"The heaviest stage in order makes {_share(most)} of its accesses: by them, at best {best}.")
    elif len(stages) > 1 and all(stage["parallel"] for stage in stages):
        lines.append("None has to run in order: as loops of their own, one after the other, all are parallel.")
    return lines


def _stage_lines(stage: Json) -> str:
    parts = []
    for file, group in groupby(stage["lines"], key=lambda place: str(place["file"])):
        lines = [str(place["line"]) for place in group]
        shown = ", ".join(lines[:LINES_SHOWN]) + (f", ... ({len(lines)})" if len(lines) > LINES_SHOWN else "")
        parts.append(f"{file}:{shown}")
    if stage["values"]:
        parts.append(f"hands on {', '.join(dict.fromkeys(name or 'a value' for name in stage['values']))}")
    if stage["calls"]:
        calls = list(dict.fromkeys(stage["calls"]))
        parts.append(f"calls {', '.join(calls[:4])}" + (f", ... ({len(calls)})" if len(calls) > 4 else ""))
    return "; ".join(parts)


# -- what it rests on ------------------------------------------------------------------------------


def _summary(report: Json, style: Style) -> list[str]:
    result = report["result"]
    summary, options = result["summary"], report["options"]
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in summary["verdicts"].items() if count)
    lines = [style("WHAT THIS RESTS ON", "bold")]
    lines.append(
        f"{summary['hot']:,} of {counted(summary['loops'], 'loop')} {'makes' if summary['hot'] == 1 else 'make'} "
        f"{options['min_share']:g}% of the accesses or more" + (f": {counts}" if counts else "") + "."
    )
    if summary["not_exercised"]:
        lines.append(
            f"{counted(summary['not_exercised'], 'loop')} never reached a second iteration: of them nothing is said."
        )
    runs = result["runs"]
    if runs:
        lines.append(f"{counted(len(runs), 'run')} seen:")
        lines += [f"  {_run(run)}" for run in runs]
    return lines + unseen_lines(with_threads(report), opening="", width=style.width)


def _run(run: Json) -> str:
    command = shlex.join(run["command"]) or "(its command line is not known)"
    if len(command) > COMMAND_WIDTH:
        command = command[: COMMAND_WIDTH - 4] + " ..."
    ending = ""
    if run["signal"]:
        ending = f", ended by signal {run['signal']}"
    elif run["status"]:
        ending = f", exit status {run['status']}"
    return f"{command}  ({counted(run['accesses'], 'access')}{ending})"
