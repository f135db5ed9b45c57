"""Tables of camp's, lamp's and advise's results: loops, what blocks and frees them, dependences, contexts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracekit.query.places import (
    SEPARATOR,
    context_cell,
    context_column,
    instruction_cells,
    instruction_columns,
    loop_cells,
    loop_columns,
)
from tracekit.query.schema import Json, Table, number, ratio, text, truth, words
from tracekit.render.dependence import blocker_text, transformation_text
from tracekit.render.places import without_folder

MODULES = ("camp", "lamp")

KINDS = ("raw", "war", "waw")


def _loops(report: Json) -> Iterator[tuple[Any, ...]]:
    total = _accesses(report)
    for number_, row in enumerate(report["result"]["loops"], 1):
        shown, _ = without_folder([row["recipe"], row["blocked_by"]], report)
        yield (
            number_,
            *loop_cells(row["loop"]),
            context_cell(row["context"]),
            row["verdict"],
            row["invocations"],
            row["iterations"],
            row["accesses"],
            100 * row["accesses"] / total if total else None,
            *(row["carried"][kind] for kind in KINDS),
            sum(row["carried"][kind] for kind in KINDS),
            list(dict.fromkeys(map(transformation_text, shown[0]))),
            list(dict.fromkeys(map(blocker_text, shown[1]))),
            row.get("recursive", False),
        )


def _accesses(report: Json) -> int:
    """Loads and stores of the run; of a profile that was printed they are not known."""
    return int(report.get("facts", {}).get("accesses", 0))


def _obstacles(report: Json) -> Iterator[tuple[Any, ...]]:
    for loop, row in enumerate(report["result"]["loops"], 1):
        for blocker in row["blocked_by"]:
            shown, _ = without_folder([blocker], report)
            yield (
                loop,
                *loop_cells(row["loop"])[:3],
                blocker["reason"],
                blocker_text(shown[0]),
                *_end(blocker["source"]),
                *_end(blocker["destination"]),
            )


def _end(place: Json | None) -> tuple[Any, ...]:
    """Function, file and line of a source or destination; an exit has no function, and what has a name is no place."""
    if place is None:
        return (None,) * 3
    return (place.get("function"), place.get("file"), place.get("line") or None)


def _transformations(report: Json) -> Iterator[tuple[Any, ...]]:
    for loop, row in enumerate(report["result"]["loops"], 1):
        for step in row["recipe"]:
            shown, _ = without_folder([step], report)
            thing = step["object"]
            yield (
                loop,
                *loop_cells(row["loop"])[:3],
                step["kind"],
                step.get("operator"),
                thing["kind"],
                thing.get("name") or None,
                transformation_text(shown[0]),
            )


def _dependences(report: Json) -> Iterator[tuple[Any, ...]]:
    for number_, row in enumerate(report["result"]["dependences"], 1):
        carrying = [level for level in row["levels"] if level["inter"]]
        inner = carrying[-1] if carrying else None
        yield (
            number_,
            row["kind"],
            *instruction_cells(row["source"]),
            *instruction_cells(row["destination"]),
            context_cell(row["source_context"]),
            context_cell(row["destination_context"]),
            bool(carrying),
            _short_loop(inner["loop"]) if inner else None,
            *(loop_cells(inner["loop"])[1:3] if inner else (None, None)),
            inner["min_distance"] if inner else None,
            inner["max_distance"] if inner else None,
            len(carrying),
            row["count"],
        )


def _short_loop(loop: Json) -> str:
    return f"recursion {loop['recursion']}" if "recursion" in loop else f"{loop['function']}:{loop['line']}"


def _levels(report: Json) -> Iterator[tuple[Any, ...]]:
    for number_, row in enumerate(report["result"]["dependences"], 1):
        for level in row["levels"]:
            yield (
                number_,
                row["kind"],
                "recursion" in level["loop"],
                *loop_cells(level["loop"]),
                level["intra"],
                level["inter"],
                level["min_distance"],
                level["max_distance"],
            )


def _contexts(report: Json) -> Iterator[tuple[Any, ...]]:
    """Each context that a loop or a dependence names, in the order of what it shows."""
    loops, ends = report["result"]["loops"], report["result"]["dependences"]
    named = [row["context"] for row in loops]
    named += [row[end] for row in ends for end in ("source_context", "destination_context")]
    contexts = {context_cell(context): context for context in named if context is not None}
    for path, context in sorted(contexts.items(), key=lambda entry: str(entry[0])):
        steps = context["path"]
        yield (
            path,
            context["root"],
            len(steps),
            SEPARATOR.join([context["root"], *steps[:-1]]) if steps else None,
            steps[-1] if steps else None,
            context["id"],
        )


def _advice(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["loops"]:
        openmp = row["openmp"] or {}
        shown, _ = without_folder(row["cases"], report)
        yield (
            *loop_cells(row["loop"]),
            row["loop"].get("end_line"),
            row["verdict"],
            row["accesses"],
            row["share"],
            openmp.get("pragma"),
            openmp.get("missing"),
            list(dict.fromkeys(transformation_text(step) for case in shown for step in case["recipe"])),
            list(dict.fromkeys(blocker_text(blocker) for case in shown for blocker in case["blocked_by"])),
        )


_OF_LOOP = (
    number("loop", "its loop: loops.loop"),
    text("function", "the function of the loop"),
    text("file", "the loop's file"),
    number("line", "the line that the loop begins in"),
)

_VERDICT = text("verdict", "not-exercised, doall, doall-with, pipeline or sequential: docs/verdicts.md")

TABLES = (
    Table(
        "loops",
        MODULES,
        "Loops, each in each of its contexts, with verdicts.",
        (
            number("loop", "a number, from 1, for other tables to name it by"),
            *loop_columns(),
            context_column("context", "the loop"),
            _VERDICT,
            number("invocations", "how often it was entered"),
            number("iterations", "iterations of all invocations"),
            number("accesses", "loads and stores in it, callees included"),
            ratio("share", "percent of all loads and stores"),
            number("raw", "flow dependences (read after write) that it carries"),
            number("war", "anti dependences that it carries"),
            number("waw", "output dependences that it carries"),
            number("carried", "all of them"),
            words("recipe", "what makes it parallel, of doall-with: private copies, reductions"),
            words("blocked_by", "what keeps it from being parallel"),
            truth("is_recursive", "whether it was entered again by recursion"),
        ),
        _loops,
    ),
    Table(
        "obstacles",
        MODULES,
        "What keeps loops from being parallel, one a row.",
        (
            *_OF_LOOP,
            text("reason", "dependence, recurrence, exit or call"),
            text("obstacle", "in words"),
            text("source_function", "the function of the dependence's source, or of the call"),
            text("source_file", "the file of source, exit or call"),
            number("source_line", "its line"),
            text("destination_function", "of a dependence"),
            text("destination_file", "of a dependence"),
            number("destination_line", "of a dependence"),
        ),
        _obstacles,
    ),
    Table(
        "transformations",
        MODULES,
        "What makes loops parallel that are doall-with, one a row.",
        (
            *_OF_LOOP,
            text("kind", "private, lastprivate, reduction or same value"),
            text("operator", "of a reduction"),
            text("object_kind", "global, stack, heap or register"),
            text("object", "the variable; NULL of heap memory"),
            text("transformation", "in words"),
        ),
        _transformations,
    ),
    Table(
        "dependences",
        MODULES,
        "Memory dependences between instructions, in their contexts.",
        (
            number("dependence", "a number, from 1, for levels to name it by"),
            text("kind", "RAW, WAR or WAW"),
            *instruction_columns("source_", "the earlier access"),
            *instruction_columns("destination_", "the later access"),
            context_column("source_context", "the earlier access"),
            context_column("destination_context", "the later access"),
            truth("is_carried", "whether any loop carries it: its ends are in different iterations"),
            text("carried_by", "the innermost loop that does, FUNCTION:LINE, or the recursion"),
            text("carried_by_file", "the file of that loop"),
            number("carried_by_line", "the line of that loop"),
            number("min_distance", "in iterations of that loop, the least"),
            number("max_distance", "the greatest"),
            number("carrying_loops", "how many loops carry it; levels has each"),
            number("count", "how often it happened"),
        ),
        _dependences,
    ),
    Table(
        "levels",
        MODULES,
        "The loops that dependences' ends share, outermost first: those that carry them, and those that do not.",
        (
            number("dependence", "dependences.dependence"),
            text("kind", "RAW, WAR or WAW"),
            truth("is_recursion", "whether the level is a recursion, of which there is a function alone"),
            *loop_columns(),
            truth("intra", "whether it happened within an iteration"),
            truth("inter", "whether it happened between iterations: the loop carries it"),
            number("min_distance", "in iterations; NULL if it is not carried"),
            number("max_distance", "in iterations; NULL if it is not carried"),
        ),
        _levels,
    ),
    Table(
        "contexts",
        ("camp",),
        "The contexts that loops and dependences name.",
        (
            text("context", "as in loops.context and dependences.source_context"),
            text("root", "the function that it begins with"),
            number("depth", "how many steps lead from there"),
            text("parent", "the context without its last step"),
            text("step", "the last step: caller:line:column, loop function:line, or recursion caller:line:column"),
            number("id", "CAMP's id; NULL without one"),
        ),
        _contexts,
    ),
    Table(
        "advice",
        ("advise",),
        "What to do with each hot loop, over all its contexts, hottest first.",
        (
            *loop_columns(),
            number("end_line", "the last line"),
            _VERDICT,
            number("accesses", "loads and stores in it"),
            ratio("share", "percent of all"),
            text("pragma", "the OpenMP directive, if there is one"),
            text("missing", "why there is none"),
            words("recipe", "what makes it parallel"),
            words("blocked_by", "what keeps it from being parallel"),
        ),
        _advice,
    ),
)
