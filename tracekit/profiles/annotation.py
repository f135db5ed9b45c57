"""What profiles say of each line of the source: accesses, the dependences that loops carry, verdicts of loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracekit.modules.registry import display
from tracekit.program.symbols import is_counter

Json = Mapping[str, Any]

VERDICTS = ("not-exercised", "doall", "doall-with", "pipeline", "sequential")
"""From best to worst."""


@dataclass
class LoopNote:
    """A loop that begins at a line, over all its contexts."""

    function: str
    column: int
    depth: int
    verdict: str
    """The worst of its contexts."""
    contexts: int = 0
    invocations: int = 0
    iterations: int = 0
    accesses: int = 0
    carried: dict[str, int] = field(default_factory=lambda: {"RAW": 0, "WAR": 0, "WAW": 0})
    """Kind (RAW, WAR, WAW) -> carried dependences."""


@dataclass
class LineNote:
    """What is known of a line."""

    loads: int = 0
    stores: int = 0
    bytes: int = 0
    ends: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)
    """Carried dependences with an end here: (kind, ``to`` or ``from``, file and line of the other end) -> count."""
    loops: list[LoopNote] = field(default_factory=list)


class Annotations:
    """Notes by file and line, gathered from the reports whose modules have notes (tracekit.modules.display)."""

    def __init__(self, reports: Iterable[Json]) -> None:
        self.files: dict[str, dict[int, LineNote]] = {}
        self.has_accesses = False
        self.loops_from = ""
        """The module that dependences and verdicts are from: of several the first by rank, so camp rather than lamp."""
        results = {report["module"]: report["result"] for report in reports}
        displays = {module: display(module) for module in results}
        by_rank = sorted(results, key=lambda module: displays[module].rank)
        accesses = next((module for module in by_rank if displays[module].notes == "accesses"), None)
        if accesses is not None:
            self.has_accesses = True
            self._add_accesses(results[accesses]["instructions"])
        loops = next((module for module in by_rank if displays[module].notes == "loops"), None)
        if loops is not None:
            self.loops_from = loops
            self._add_loops(results[loops]["loops"])
            self._add_dependences(results[loops]["dependences"])

    def note(self, file: str, line: int) -> LineNote:
        """The note of a line, made if there is none."""
        return self.files.setdefault(file, {}).setdefault(line, LineNote())

    def totals(self, file: str) -> tuple[int, int]:
        """Loads and stores of a file."""
        notes = self.files[file].values()
        return sum(note.loads for note in notes), sum(note.stores for note in notes)

    def hottest(self) -> list[str]:
        """The files, those with most accesses first."""
        return sorted(self.files, key=lambda file: (-sum(self.totals(file)), file))

    def _add_accesses(self, rows: Sequence[Json]) -> None:
        for row in rows:
            shown = row["instruction"]
            note = self.note("" if is_counter(shown["file"]) else shown["file"], shown["line"])
            note.loads += row["loads"]
            note.stores += row["stores"]
            note.bytes += row["bytes"]

    def _add_loops(self, rows: Sequence[Json]) -> None:
        notes: dict[tuple[Any, ...], LoopNote] = {}
        for row in rows:
            loop = row["loop"]
            key = tuple(loop[part] for part in ("function", "file", "line", "column", "depth"))
            note = notes.get(key)
            if note is None:
                note = notes[key] = LoopNote(loop["function"], loop["column"], loop["depth"], row["verdict"])
                self.note(loop["file"], loop["line"]).loops.append(note)
            note.verdict = max(note.verdict, row["verdict"], key=VERDICTS.index)
            note.contexts += 1
            note.invocations += row["invocations"]
            note.iterations += row["iterations"]
            note.accesses += row["accesses"]
            for kind, count in row["carried"].items():
                note.carried[kind.upper()] += count

    def _add_dependences(self, rows: Sequence[Json]) -> None:
        for (kind, *_), (source, destination, count) in _carried_pairs(rows).items():
            for here, there, way in ((source, destination, "to"), (destination, source, "from")):
                self.note(here["file"], here["line"]).ends[kind, way, there["file"], there["line"]] += count


def _carried_pairs(rows: Sequence[Json]) -> dict[tuple[str, int, int], tuple[Json, Json, int]]:
    """What is carried between two instructions: (kind, identity of both) -> these, and how often in all contexts.

    The rows of a trace share instructions and lists of levels; those of a file do not, and each is a pair by itself.
    """
    rows = list(rows)  # what is told apart by its identity has to live
    is_carried: dict[int, bool] = {}
    pairs: dict[tuple[str, int, int], tuple[Json, Json, int]] = {}
    for row in rows:
        levels = row["levels"]
        carried = is_carried.get(id(levels))
        if carried is None:
            carried = is_carried[id(levels)] = any(level["inter"] for level in levels)
        if carried:
            source, destination = row["source"], row["destination"]
            key = row["kind"], id(source), id(destination)
            known = pairs.get(key)
            pairs[key] = source, destination, row["count"] + (known[2] if known else 0)
    return pairs


def shown_lines(notes: Iterable[int], last: int, around: int) -> list[tuple[int, int]]:
    """Stretches (first, last) of the lines to show: those with notes, `around` more at each side; of a file of `last`.

    Stretches that only one line keeps apart are one.
    """
    stretches: list[tuple[int, int]] = []
    for line in sorted(number for number in notes if 1 <= number <= last):
        first, end = max(line - around, 1), min(line + around, last)
        if stretches and first <= stretches[-1][1] + 2:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((first, end))
    return stretches
