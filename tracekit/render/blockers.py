"""What keeps a loop from being parallel, in the words of advise."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from tracekit.counted import counted
from tracekit.render.dependence import causes_text, object_text, set_to
from tracekit.render.folding import NARROWEST
from tracekit.render.names import variable_name
from tracekit.render.places import place_text
from tracekit.render.text import WIDTH, Json, Style

BLOCKERS_SHOWN = 4
PAIRS_SHOWN = 2
OBJECTS_SHOWN = 6
FEW = 3
"""Of a loop that so many things keep from being parallel it may be said that it is parallel but for them."""
MARGIN = 3
"""Columns before the lines of a loop."""

OUTPUT = (
    "printf fprintf vprintf vfprintf puts fputs putchar putc fputc fwrite "
    "puts_unlocked fputs_unlocked putchar_unlocked putc_unlocked fputc_unlocked fwrite_unlocked"
).split()
EXTERNAL_HINTS = {
    "rand": "give each iteration a generator of its own (rand_r, or a hash of the counter)",
    "random": "give each iteration a generator of its own",
    "drand48": "give each iteration a generator of its own (erand48)",
    **dict.fromkeys(OUTPUT, "its output must stay in order: `ordered`, or collect it and print after the loop"),
}
ASSEMBLY = "inline assembly"
"""The `callee` of a statement that calls nothing."""
OPENMP_RUNTIME = ("__kmpc_", "GOMP_")
OPENMP_HINT = "OpenMP's threads meet there: what iterations do to one another through other threads is not known here"


def first_thing(blockers: Sequence[Json], style: Style) -> list[str]:
    """What to begin with: the only thing that keeps a loop from being parallel, or the one that happens most often."""
    if not blockers or "thing" not in blockers[0]:  # a profile of before
        return []
    things = 1 + max(row["thing"] for row in blockers)
    rows = [row for row in blockers if row["thing"] == 0]
    head = "Parallel but for one thing: " if things == 1 else f"Parallel but for {things:,} things; the first: "
    if things > FEW:
        head = f"{things:,} things keep its iterations in order; the first: "
    first, *rest = wrapped(f"{head}{_thing(rows)}.", "  ", style)
    return [first.replace(head, style(head, "bold"), 1), *rest]


def _thing(rows: Sequence[Json]) -> str:
    """What blockers that are one thing come to, in words."""
    row = rows[0]
    source = row["source"]
    if row["reason"] == "recurrence":
        return f"each iteration needs {_variable(rows)} of the one before{_advance(source)}"
    if row["reason"] == "exit":
        return f"whether there is a next iteration is decided at {place_text(source)} by {causes_text(source)}"
    if row["reason"] == "external":
        return _external(row)
    first, *others = _objects(row)
    thing, verb = (f"{first} and {counted(len(others), 'other object')}", "are") if others else (first, "is")
    conflicts = [each for each in rows if each["reason"] == "dependence"]
    if all(each["remedy"] and each["remedy"]["kind"] != "reduce" for each in conflicts):
        return f"{thing} {verb} {_remedy(row)}"
    if reduction := _reduction(conflicts):
        return f"{thing} would be {reduction}"
    if flow := next((each for each in conflicts if "RAW" in each["kinds"]), None):
        apart = flow["distance"]
        before = "the one before" if apart["min"] == apart["max"] == 1 else "an earlier one"
        ends = f"{place_text(flow['destination'])} after {place_text(flow['source'])}"
        return f"an iteration reads from {thing} what {before} stored ({ends})"
    return f"the iterations' stores to {thing} have to keep their order ({place_text(row['destination'])})"


def _advance(source: Json) -> str:
    """What to do about a counter that only some iterations advance."""
    if not source.get("advances"):
        return ""
    step = source["advances"].lstrip("+")
    return f", which some iterations advance by {step}: count these first, as a prefix sum, and the rest is independent"


def _variable(rows: Sequence[Json]) -> str:
    """The variable that a recurrence carries, with all its places."""
    sources = [row["source"] for row in rows if row["reason"] == "recurrence"]
    places = list(dict.fromkeys(place_text(source) for source in sources if source["line"]))
    name = variable_name(sources[0]["name"]) or ("a value that is computed there" if places else "a value")
    return name + (f" ({', '.join(places)})" if places else "")


def blocked(blockers: Sequence[Json], function: str, style: Style) -> list[str]:
    """What stands in the way: memory by object, then the rest."""
    memory: dict[str, list[Json]] = {}  # by what the objects are, for two may have one name
    others: dict[str, list[tuple[str, ...]]] = {}
    for row in blockers:
        if row["reason"] == "dependence":
            memory.setdefault(repr(row["objects"]), []).append(row)
        elif row.get("thing") != 0 or row["reason"] == "external":  # what comes first has been said
            others.setdefault(row["reason"], []).append(tuple(_obstacle(row, style)))
    lines = []
    for rows in list(memory.values())[:BLOCKERS_SHOWN]:
        lines += _conflicts(_objects(rows[0]), rows, function, style)
    if len(memory) > BLOCKERS_SHOWN:
        count = len(memory) - BLOCKERS_SHOWN
        lines.append(f"- ... and on {counted(count, 'more object')} (--json shows all)")
    for obstacles in others.values():
        different = [obstacle for obstacle in dict.fromkeys(obstacles) if obstacle]
        lines += [line for obstacle in different[:BLOCKERS_SHOWN] for line in obstacle]
        if len(different) > BLOCKERS_SHOWN:
            lines.append(f"- ... and {len(different) - BLOCKERS_SHOWN:,} more of this kind (--json shows all)")
    return lines


def _objects(row: Json) -> list[str]:
    if row["objects"] is None:
        return ["memory of many objects"]
    return list(dict.fromkeys(object_text(thing) for thing in row["objects"])) or ["memory"]


def _conflicts(objects: Sequence[str], rows: Sequence[Json], function: str, style: Style) -> list[str]:
    """The dependences on the same object, or some objects; the most frequent ones in full."""
    kinds = [kind for kind in ("RAW", "WAR", "WAW") if any(kind in row["kinds"] for row in rows)]
    thing = objects[0] if len(objects) == 1 else f"{len(objects):,} objects"
    lines = wrapped(f"- {', '.join(kinds)} on {thing}:", "      ", style)
    for each in objects[:OBJECTS_SHOWN] if len(objects) > 1 else ():
        lines += wrapped(f"      * {each}", "          ", style)
    if len(objects) > OBJECTS_SHOWN:
        lines.append(f"      * ... and {len(objects) - OBJECTS_SHOWN:,} more (--json shows all)")
    for row in rows[:PAIRS_SHOWN]:
        pair = (
            f"    {'/'.join(row['kinds'])} {_access(row['source'], function)} -> "
            f"{_access(row['destination'], function)},"
        )
        often = _often(row)
        lines += [f"{pair} {often}"] if len(pair) + len(often) < WIDTH - 4 else [pair, f"        {often}"]
    if len(rows) > PAIRS_SHOWN:
        count = len(rows) - PAIRS_SHOWN
        lines.append(f"    ... and {counted(count, 'more pair')} of instructions")
    remedies = list(dict.fromkeys(_remedy(row) for row in rows))
    # A remedy helps if it is one for all of them: a flow that stays is not freed by copying what others overwrite.
    if all(row["remedy"] and row["remedy"]["kind"] != "reduce" for row in rows):
        lines += [f"    {remedy}" for remedy in remedies]
    elif reduction := _reduction(rows):
        lines.append(f"    {reduction}")
    return lines


def _reduction(rows: Sequence[Json]) -> str:
    """What keeps all of these from being one reduction: instructions without which no dependence would be left."""
    updates = [row for row in rows if row["remedy"] and row["remedy"]["kind"] == "reduce"]
    operators = {row["remedy"]["operator"] for row in updates}
    alien = {instruction["id"]: instruction for row in updates for instruction in row["remedy"]["but"]}
    left = [
        row for row in rows if row not in updates and not alien.keys() & {row["source"]["id"], row["destination"]["id"]}
    ]
    places = list(dict.fromkeys(place_text(instruction) for instruction in alien.values()))
    if len(operators) != 1 or left or len(places) > PAIRS_SHOWN:
        return ""
    operator = operators.pop()
    what = f"only set to {value}" if (value := set_to(operator)) else f"a reduction ({operator})"
    return what + (f", but for {', '.join(places)}" if places else "")


def _access(row: Json, function: str) -> str:
    """`store app.c:12:5`, with its function if that is another than the loop's."""
    return f"{row['kind']} {place_text(row)}" + (f" {row['function']}" if row["function"] != function else "")


def _often(row: Json) -> str:
    """How often, and how far apart."""
    least, most = row["distance"]["min"], row["distance"]["max"]
    apart = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    times = "once" if row["executions"] == 1 else f"{row['executions']:,} times"
    return f"{times} ({frequency(row['per_iteration'])}), distance {apart}"


def frequency(per_iteration: float) -> str:
    """How often something happens, for each iteration or as a share of them."""
    if per_iteration < 0.01:
        return f"{100 * per_iteration:.2g}% of iterations"
    return f"{per_iteration:,.2f} an iteration" if per_iteration < 10 else f"{per_iteration:,.0f} an iteration"


def _obstacle(row: Json, style: Style) -> list[str]:
    """A recurrence, an exit, or a call with unseen effects."""
    source = row["source"]
    if row["reason"] == "recurrence":
        return [f"- each iteration needs {_variable([row])} of the one before"]
    if row["reason"] == "exit":
        return wrapped(
            f"- whether it is left at {place_text(source)} depends on {causes_text(source)}: later iterations cannot "
            "begin before",
            "    ",
            style,
        )
    hint = OPENMP_HINT if row["callee"].startswith(OPENMP_RUNTIME) else EXTERNAL_HINTS.get(row["callee"], "")
    said = row.get("thing") == 0
    return ([] if said else [f"- {_external(row)}"]) + ([f"    {hint}"] if hint else [])


def _external(row: Json) -> str:
    """What a call does of which nothing is known."""
    called = " at" if row["callee"] == ASSEMBLY else ", called at"
    after = "" if row["callee"] == ASSEMBLY else ","
    return f"{row['callee']}{called} {place_text(row['source'])}{after} has effects that the trace does not show"


def _remedy(row: Json) -> str:
    remedy = row["remedy"]
    if remedy is None:
        return ""
    if remedy["kind"] == "copy":
        return "only overwritten, never read from another iteration: read from a copy made before the loop"
    return "only written: keep what the last iteration writes (a copy for each thread, merged in order)"


def wrapped(text: str, indent: str, style: Style) -> list[str]:
    """Lines of text, all but the first indented; no wider than the terminal is, with MARGIN before them."""
    head = text[: len(text) - len(text.lstrip())]
    return wrap(
        text.lstrip(),
        max(min(style.width or WIDTH, WIDTH) - MARGIN, NARROWEST),
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
