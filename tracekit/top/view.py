"""What the three panes of `tracekit top` hold, without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.inputs import Gathered
from tracekit.profiles.annotation import VERDICTS, Annotations, LineNote
from tracekit.profiles.profile import Profile
from tracekit.program.sources import Sources
from tracekit.render.annotation import source_row
from tracekit.render.dependence import carried_text, context_text, loop_details
from tracekit.render.places import loop_text, loops_told_apart, place_text, without_folder

Json = Mapping[str, Any]

AROUND = 400
"""Lines of the source before and after a loop's first that the pane of a long file has."""

ORDERS: Mapping[str, Callable[[Json], Any]] = {
    "accesses": lambda row: -row["accesses"],
    "iterations": lambda row: -row["iterations"],
    "dependences": lambda row: -sum(row["carried"].values()),
    "verdict": lambda row: (-VERDICTS.index(row["verdict"]), -row["accesses"]),
    "place": lambda row: (row["loop"]["file"], row["loop"]["line"], row["loop"]["column"]),
}
"""By what loops are sorted."""

LOOP_HEADER = ("VERDICT", "LOOP", "SHARE", "ITERATIONS", "CARRIES")
DEPENDENCE_HEADER = ("KIND", "COUNT", "DISTANCE", "SOURCE", "DESTINATION")


@dataclass(frozen=True)
class SourceLines:
    """Lines of a file with their notes."""

    file: str
    first: int
    """The number of the first of them."""
    rows: Sequence[tuple[str, ...]]
    """Below tracekit.render.annotation.HEADER."""
    missing: str = ""
    """Why there are none."""


class View:
    """Loops in an order, chosen by words and a verdict, and what belongs to one of them."""

    def __init__(self, gathered: Gathered, sources: Sources) -> None:
        """`gathered`: profiles of camp or lamp, and of accesses. Raises TracekitError without either of the first."""
        by_module = {profile.module: profile for profile in gathered.profiles}
        found = [by_module[name] for name in ("camp", "lamp") if name in by_module]
        if not found:
            raise TracekitError("There are no loops to show: the file has no profile of camp or lamp.")
        self.profile: Profile = found[0]
        self.sources = sources
        self.total = self.profile.facts.get("accesses", 0)
        self._sharing: dict[tuple[Any, ...], list[Json]] = {}
        """By :func:`_key` of a loop the dependences that have it as a level, the most frequent first."""
        try:
            self._read(gathered)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise TracekitError(f"The profile of {self.profile.module} is not as this tracekit writes it.") from None

    def _read(self, gathered: Gathered) -> None:
        """Take from the profiles what the panes need."""
        self.notes = Annotations([profile.report for profile in gathered.profiles])
        result = self.profile.result
        self._loops = loops_told_apart(result["loops"])
        for each in sorted(result["dependences"], key=lambda row: -row["count"]):
            for key in {_key(level["loop"]) for level in each["levels"]}:
                self._sharing.setdefault(key, []).append(each)

    @property
    def count(self) -> int:
        """All loops."""
        return len(self._loops)

    def loops(self, order: str = "accesses", words: str = "", verdict: str = "") -> list[Json]:
        """Rows whose text has all `words`, in whatever case, of a verdict or of any, sorted."""
        wanted = words.lower().split()
        chosen = [
            row
            for row in self._loops
            if verdict in ("", row["verdict"]) and all(word in self._searched(row) for word in wanted)
        ]
        return sorted(chosen, key=ORDERS[order])

    def _searched(self, row: Json) -> str:
        context = " ".join([row["context"]["root"], *row["context"]["path"]]) if row["context"] else ""
        return f"{row['verdict']} {loop_text(row['loop'])} {context}".lower()

    def loop_cells(self, row: Json) -> tuple[str, ...]:
        """Below LOOP_HEADER."""
        shown, _ = without_folder(row["loop"], self.profile.report)
        share = f"{100 * row['accesses'] / self.total:.1f}%" if self.total else "-"
        return (row["verdict"], loop_text(shown), share, f"{row['iterations']:,}", carried_text(row["carried"]))

    def details(self, row: Json) -> list[str]:
        """Its context, and what blocks or frees it."""
        shown, _ = without_folder(row, self.profile.report)
        context = shown["context"]
        lines = [f"in {context_text(context, shown['loop']['function'], with_loop=False)}"] if context else []
        return lines + loop_details(shown)

    def dependences(self, row: Json) -> list[Json]:
        """Those with both ends in the loop in its context: first those that it carries, the most frequent first."""
        sharing = self._sharing.get(_key(row["loop"]), ())
        inside = [each for each in sharing if _is_inside(each, row["context"])]
        return sorted(inside, key=lambda each: not _carrying(each, row))

    def dependence_cells(self, each: Json, row: Json) -> tuple[str, ...]:
        """Below DEPENDENCE_HEADER."""
        shown, _ = without_folder([each["source"], each["destination"]], self.profile.report)
        level = _carrying(each, row)
        distance = "within"
        if level:
            least, most = level["min_distance"], level["max_distance"]
            distance = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        ends = (f"{end['kind']} {place_text(end)}" for end in shown)
        return (each["kind"], f"{each['count']:,}", distance, *ends)

    def source(self, file: str, line: int) -> SourceLines:
        """The lines of a file around one, with their notes."""
        text = self.sources.lines(file)
        if text is None:
            return SourceLines(file, 1, (), self.sources.missing(file))
        here = self.notes.files.get(file, {})
        first, last = max(1, line - AROUND), min(len(text), max(line, 1) + AROUND)
        rows = [
            source_row(here.get(number, LineNote()), file, number, text[number - 1])
            for number in range(first, last + 1)
        ]
        return SourceLines(file, first, rows)


def _is_inside(each: Json, context: Json | None) -> bool:
    """Whether both ends of a dependence are in a context, or in one inside it; if contexts are not known, always."""
    if context is None:
        return True
    path = [context["root"], *context["path"]]
    ends = (each["source_context"], each["destination_context"])
    return all(end is not None and [end["root"], *end["path"]][: len(path)] == path for end in ends)


def _level(each: Json, row: Json) -> Json | None:
    """The level of a dependence that is this loop."""
    return next((level for level in each["levels"] if _key(level["loop"]) == _key(row["loop"])), None)


def _carrying(each: Json, row: Json) -> Json | None:
    level = _level(each, row)
    return level if level is not None and level["inter"] else None


def _key(loop: Json) -> tuple[Any, ...]:
    return tuple(loop.get(part) for part in ("recursion", "function", "file", "line", "column", "depth"))
