"""A profile as an object: what one module found in one trace, as JSON, as a file, as a data frame."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError

CUT_OFF = "The trace is cut off: this is of what it holds."
RULES_BROKEN = (
    "Records of the trace break rules of replay, as where a program switches stacks by itself: what follows from calls "
    "and loops may be wrong (`tracekit check` names the rules)."
)


@dataclasses.dataclass(frozen=True)
class Profile:
    """What one module found in one trace."""

    report: dict[str, Any]
    """The JSON object of a profile (docs/reports.md): tracekit, module, trace, options, result."""
    facts: Mapping[str, int]
    """Numbers that only the text shows."""
    complete: bool
    """False if the trace is cut off: the profile is of what it holds."""
    accesses_inside: int | None = None
    """Loads and stores inside the window; None without one."""
    build: tuple[tuple[str, ...], ...] = ()
    """The hashes of the units of each image of the program: equal for runs of one build."""
    images: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    """The program's image tables, if merging profiles needs them (formats.kept_images)."""
    evidence: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    """The module's merge state: what merging profiles needs beside the result (tracekit.module.Analysis.merge)."""
    rules_broken: bool = False
    """Whether records of the trace broke rules of replay: what follows from calls and loops may be wrong."""

    def __repr__(self) -> str:
        tables = [
            f"{name}: {counted(len(value), 'row')}" if isinstance(value, list) else name
            for name, value in self.result.items()
        ]
        window = self.report.get("window", {})
        inside = "".join(f", {part} {value}" for part, value in window.items())
        cut = "" if self.complete else ", of a trace that is cut off"
        return f"<profile {self.report['module']}{inside}{cut}; {', '.join(tables)}>"

    @property
    def cautions(self) -> list[str]:
        """Sentences that a reader has to know of the trace."""
        return [*([] if self.complete else [CUT_OFF]), *([RULES_BROKEN] if self.rules_broken else [])]

    @property
    def module(self) -> str:
        """The name of the module."""
        return str(self.report["module"])

    @property
    def traces(self) -> list[str]:
        """The hashes of the traces that it is of: one, or of a merged profile several, in order."""
        several = self.report.get("traces")
        return [str(self.report.get("trace"))] if several is None else [str(trace) for trace in several]

    @property
    def result(self) -> dict[str, Any]:
        """The module's own part: tables (lists of rows) and single values by name."""
        result: dict[str, Any] = self.report["result"]
        return result

    def to_json(self) -> str:
        """The bytes that ``tracekit analyze --json`` prints."""
        from tracekit.profiles.json import as_json

        return as_json([self.report])

    def save(self, path: str | Path) -> None:
        """Write a profile file, as ``tracekit analyze -o``; :func:`tracekit.load_profile` reads it back."""
        from tracekit.profiles import files

        files.save(path, [self])

    def to_dataframe(self, table: str | None = None) -> Any:
        """One table of the result as a data frame of pandas or, without it, of polars.

        `table` is the name of a list in the result; the only one need not be named. Nested values become columns
        named with dots. Raises TracekitError if neither library is installed or there is no such table.
        """
        tables = [name for name, value in self.result.items() if isinstance(value, list)]
        if table is None and len(tables) == 1:
            table = tables[0]
        if table not in tables:
            raise TracekitError(f"The profile has the tables {', '.join(tables) or '(none)'}, not {table!r}.")
        rows = [flat(row) for row in self.result[table]]
        if importlib.util.find_spec("pandas"):
            import pandas

            return pandas.DataFrame(rows)
        if importlib.util.find_spec("polars"):
            import polars

            return polars.DataFrame(rows, infer_schema_length=None)
        raise TracekitError("A data frame needs pandas or polars: pip install pandas.")


def flat(row: Any, prefix: str = "") -> dict[str, Any]:
    """{"loop": {"line": 3}} -> {"loop.line": 3}."""
    if not isinstance(row, dict):
        return {prefix.rstrip(".") or "value": row}
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells.update(flat(value, f"{prefix}{key}."))
        else:
            cells[prefix + key] = value
    return cells
