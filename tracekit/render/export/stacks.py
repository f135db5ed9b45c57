"""Rows of a profile as samples: a stack of functions and loops, and numbers that add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.program.sources import whole_path
from tracekit.render.objects import object_name

Json = Mapping[str, Any]

NOT_ADDED = frozenset({"id", "size", "offset", "object_size", "value", "value_bytes", "constant", "line", "column"})
"""Columns of numbers that make no sense as sums."""


class Frame(NamedTuple):
    """A function, or a loop in it, and the line there that goes on to the next frame (0: not known)."""

    name: str
    file: str
    line: int
    is_loop: bool = False


@dataclass(frozen=True)
class Sample:
    """A row: frames from the outermost to the innermost, and a number for each metric."""

    frames: tuple[Frame, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """A table of a profile."""

    name: str
    metrics: tuple[str, ...]
    rows: Sequence[Sample] = field(repr=False)

    def without_loops(self) -> Samples:
        """The table with stacks of functions alone."""
        rows = [Sample(tuple(each for each in row.frames if not each.is_loop), row.values) for row in self.rows]
        return Samples(self.name, self.metrics, rows)


def unit_of(metric: str) -> str:
    """``bytes`` or ``count``."""
    return "bytes" if "bytes" in metric.split() else "count"


def table_of(report: Json, wanted: str, fits: str = "") -> tuple[str, list[Json]]:
    """A table of the result by its name; without one the first with the column `fits`, or the first of all.

    Raises TracekitError, with the names that there are.
    """
    tables = {name: value for name, value in report["result"].items() if isinstance(value, list)}
    if wanted and wanted not in tables:
        raise TracekitError(
            f"The profile of {report['module']} has no table {wanted!r}; there are: {', '.join(tables) or 'none'}."
        )
    for name, rows in tables.items():
        if name == wanted or (not wanted and all(isinstance(row, dict) and (not fits or fits in row) for row in rows)):
            return name, rows
    raise TracekitError(f"The profile of {report['module']} has no table with the column {fits}.")


def samples_of(report: Json, wanted: str = "") -> Samples:
    """The samples of a table: by default of the first with rows of instructions or objects that have numbers.

    Raises TracekitError if there is none.
    """
    names = [wanted] if wanted else [name for name, rows in report["result"].items() if isinstance(rows, list)]
    files = dict(_files(report["result"]))
    for name in names:
        _, rows = table_of(report, name)
        placed = [row for row in rows if isinstance(row, dict) and (_place(row) or _has_no_place(_of_object(row)))]
        metrics = _metrics(placed)
        if placed and metrics:
            compilation = report.get("folders", {}).get("compilation", "")
            made = [_sample(row, metrics, _Files(files, compilation)) for row in placed]
            return Samples(name, tuple(metrics), made)
    what = f"The table {wanted}" if wanted else f"The profile of {report['module']}"
    raise TracekitError(f"{what} has no rows of instructions or objects with numbers that add.")


def _place(row: Json) -> Json | None:
    """The instruction of a row: its own, or that which made its object."""
    place = row.get("instruction") or _of_object(row).get("site")
    return place if isinstance(place, dict) and "function" in place else None


def _has_no_place(made: Json) -> bool:
    """Whether no instruction of the program made an object: a global variable, a library's, memory of none."""
    return made.get("kind") in ("global", "unknown") or ("kind" in made and "site" in made and made["site"] is None)


def _of_object(row: Json) -> Json:
    made = row.get("object")
    return made if isinstance(made, dict) else {}


def _numbers(row: Json) -> Iterator[tuple[str, int]]:
    """The numbers of a row by name; of a list of them each."""
    for column, value in row.items():
        if column in NOT_ADDED:
            continue
        if isinstance(value, int) and not isinstance(value, bool):
            yield column.replace("_", " "), value
        elif isinstance(value, list) and value and all(type(each) is int for each in value):
            for place, each in enumerate(value, 1):
                yield f"{column.replace('_', ' ')} {place}", each


def _metrics(rows: Sequence[Json]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name, value in _numbers(row) if value >= 0))


def _files(value: Any) -> Iterator[tuple[str, str]]:
    """Function -> file, wherever a profile says it."""
    if isinstance(value, dict):
        if isinstance(value.get("function"), str) and value.get("file"):
            yield value["function"], value["file"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _files(each)


class _Files(NamedTuple):
    known: Mapping[str, str]
    compilation: str

    def of(self, function: str) -> str:
        return whole_path(self.known.get(function, ""), self.compilation)


def _sample(row: Json, metrics: Sequence[str], files: _Files) -> Sample:
    numbers = dict(_numbers(row))
    values = tuple(max(numbers.get(name, 0), 0) for name in metrics)
    place = _place(row)
    made = _of_object(row)
    if place is None:
        return Sample((Frame(object_name(made), "", 0),), values)
    context = row.get("context") or made.get("context")
    if context and "context" not in row:  # of an object that is made inside a recursion the innermost calls
        context = {**context, "path": [*context["path"], *made.get("callers", ())]}
    return Sample(frames_of(context, place, files), values)


def report_frames(report: Json, context: Json | None, place: Json) -> tuple[Frame, ...]:
    """The stack of one place of a report."""
    return frames_of(
        context, place, _Files(dict(_files(report["result"])), report.get("folders", {}).get("compilation", ""))
    )


def frames_of(context: Json | None, place: Json, files: _Files) -> tuple[Frame, ...]:
    """The stack of an instruction in a context: calls and loops around it, then what it was inlined into."""
    frames: list[Frame] = []
    opened = 0
    """Where the frames of the present activation begin; behind them nothing is known of the next one."""

    def inside(function: str, line: int, file: str) -> None:
        nonlocal opened
        if opened == len(frames) or frames[opened].name != function:
            opened = len(frames)
            frames.append(Frame(function, file, line))
            return
        for place in range(opened, len(frames)):
            frames[place] = frames[place]._replace(line=line or frames[place].line, file=file or frames[place].file)

    if context and context["root"]:
        inside(context["root"], 0, files.of(context["root"]))
    for step in context["path"] if context else ():
        kind, rest = step.split(" ", 1) if step.startswith(("loop ", "recursion ")) else ("", step)
        if kind == "loop":
            function, _, line = rest.rpartition(":")
            inside(function, int(line), files.of(function))
            frames.append(Frame(step, files.of(function), int(line), True))
        else:
            function, line, _ = rest.rsplit(":", 2)
            inside(function, int(line), files.of(function))
            opened = len(frames)
    for each in (*reversed(place.get("inlined_at", ())), place):
        file = whole_path(each["file"], files.compilation) if each["file"] else ""
        inside(each["function"] or "(library)", each["line"], file)
    return tuple(frames)
