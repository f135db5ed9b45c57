"""What a page shows: the hottest loops, their dependences, the lines around what happened; and what it leaves out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracekit.counted import counted
from tracekit.inputs import Gathered
from tracekit.modules import registry
from tracekit.modules.display import Display
from tracekit.profiles.annotation import Annotations, shown_lines
from tracekit.program.sources import Sources, is_system
from tracekit.render.html.edges import edges_at
from tracekit.render.places import FileNames, file_names, loops_told_apart

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """How much a page shows at most."""

    loops: int = 200
    edges: int = 60
    """Dependences of one loop."""
    lines: int = 5000
    """Lines of source, of all files together."""
    rows: int = 200
    """Of the table of any other module."""
    around: int = 4
    """Lines of source before and after one with notes."""


@dataclass
class LoopRow:
    """A loop in a context, and the dependences at it."""

    row: Json
    share: float
    """Of all accesses."""
    edges: list[Json]
    """As edges.LoopEdges has them."""
    more_edges: int
    """Edges that are left out, and how many of them the loop carries."""
    more_carried: int


@dataclass
class SourceFile:
    """The lines of a file that are shown; `lines` is None if the source is not found."""

    name: str
    """As the profile has it."""
    lines: list[str] | None
    stretches: list[tuple[int, int]]


@dataclass
class Shown:
    """All that a page shows."""

    gathered: Gathered
    reports: dict[str, Json]
    notes: Annotations
    loops: list[LoopRow]
    loops_from: str
    files: list[SourceFile]
    left_out: list[str]
    """What is not shown, in sentences."""
    rows: int
    """Rows of the table of any other module, at most."""
    names: FileNames
    """How files are named; ``names.shown(rows)`` is a copy of JSON values with these names."""
    displays: dict[str, Display]
    """Module -> how it is shown."""


def choose(gathered: Gathered, sources: Sources, limits: Limits) -> Shown:
    """Choose what the page shows."""
    reports: dict[str, Json] = {profile.module: profile.report for profile in gathered.profiles}
    notes = Annotations(reports.values())
    left_out = list(dict.fromkeys(caution for profile in gathered.profiles for caution in profile.cautions))
    names = file_names(notes.files, gathered.folders)
    loops: list[LoopRow] = []
    module = notes.loops_from
    if module:
        facts = next(profile.facts for profile in gathered.profiles if profile.module == module)
        loops = _loops(reports[module]["result"], facts.get("accesses", 0), limits, left_out)
        for loop in loops:
            loop.row, loop.edges = names.shown(loop.row), names.shown(loop.edges)
    return Shown(
        gathered,
        reports,
        notes,
        loops,
        module,
        _files(notes, sources, limits, names, left_out),
        left_out,
        limits.rows,
        names,
        {module: registry.display(module) for module in reports},
    )


# -- loops and their dependences -------------------------------------------------------------------


def _loops(result: Json, accesses: int, limits: Limits, left_out: list[str]) -> list[LoopRow]:
    rows = sorted(result["loops"], key=lambda row: -row["accesses"])
    shown = rows[: limits.loops]
    if len(rows) > len(shown):
        left_out.append(f"Of {len(rows):,} loops (in their contexts) the {len(shown):,} with most accesses are shown.")
    edges = edges_at(shown, result["dependences"], limits.edges)
    if shortened := sum(loop.more > 0 for loop in edges):
        left_out.append(
            f"Of {counted(shortened, 'loop')} the graph shows the {limits.edges} heaviest dependences, "
            "those that the loop carries first."
        )
    # told apart among all of them, as in the text; edges were found by plain loops
    told_apart = loops_told_apart(rows)[: limits.loops]
    return [
        LoopRow(told, row["accesses"] / accesses if accesses else 0.0, *found)
        for row, told, found in zip(shown, told_apart, edges)
    ]


# -- sources ---------------------------------------------------------------------------------------


def _files(
    notes: Annotations, sources: Sources, limits: Limits, names: FileNames, left_out: list[str]
) -> list[SourceFile]:
    """The program's own files, then headers of the system, the hottest first, until there are `limits.lines` lines."""
    room, shown, missing, dropped = limits.lines, [], [], 0
    for name in sorted(notes.hottest(), key=is_system):
        lines = sources.lines(name) if name else None
        if lines is None:
            missing.append(name)
            continue
        stretches = shown_lines(notes.files[name], len(lines), limits.around)
        if _size(stretches) > room:
            dropped += 1
            stretches = _hottest_stretches(notes, name, len(lines), limits, room)
        room -= _size(stretches)
        if stretches:
            shown.append(SourceFile(name, lines, stretches))
    if dropped:
        left_out.append(
            f"Of the source the hottest lines, {limits.lines:,} with those around them, are shown; "
            f"{counted(dropped, 'file')} left out or cut."
        )
    named = [name for name in missing if name]
    if named:
        named_first = f"{names.short(named[0])}{', ...' if named[1:] else ''}"
        left_out.append(
            f"Not found: {counted(len(named), 'source file')} ({named_first}): give their folder with "
            "--source DIR, or record with --with-sources."
        )
    return shown


def _hottest_stretches(notes: Annotations, name: str, last: int, limits: Limits, room: int) -> list[tuple[int, int]]:
    """Stretches around as many lines as there is room for, those with most accesses."""
    here = notes.files[name]

    def heat(line: int) -> tuple[int, ...]:
        """Without counts of accesses, those of the loops that begin there, and of the dependences, decide."""
        note = here[line]
        loops = sum(loop.accesses for loop in note.loops)
        return (-note.loads - note.stores, -loops, -note.ends.total(), line)

    hottest = sorted(here, key=heat)

    def around(count: int) -> list[tuple[int, int]]:
        return shown_lines(hottest[:count], last, limits.around)

    # The more lines are chosen, the more are shown: the greatest number that fits is found by bisection.
    return around(bisect_right(range(len(hottest) + 1), room, key=lambda count: _size(around(count))) - 1)


def _size(stretches: Sequence[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in stretches)
