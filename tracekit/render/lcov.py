"""Coverage of lines and functions as lcov's tracefile (geninfo(1), "Tracefile format"), which genhtml shows."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import isabs, join, normpath
from typing import Any

from tracekit.program.sources import is_system

Json = Mapping[str, Any]


def lcov(report: Json) -> str:
    """The tables ``lines`` and ``functions`` of a path profile: a record for each file that is not the system's."""
    result = report["result"]
    lines: dict[str, dict[int, int]] = {}
    for row in result["lines"]:
        lines.setdefault(row["file"], {})[row["line"]] = row["count"]
    functions: dict[str, dict[tuple[int, str], int]] = {}
    for row in result["functions"]:
        place = row["function"]
        if place["line"]:  # of several copies (a header's, in several units) all calls count
            calls = functions.setdefault(place["file"], {})
            key = (place["line"], place["function"])
            calls[key] = calls.get(key, 0) + row["calls"]
    start = report.get("folders", {}).get("compilation", "")
    parts = [
        _record(_whole(file, start), functions.get(file, {}), lines.get(file, {}))
        for file in sorted(lines.keys() | functions.keys())
        if file and not is_system(file)
    ]
    return "".join(parts)


def _whole(file: str, start: str) -> str:
    return normpath(join(start, file)) if start and not isabs(file) else file


def _record(file: str, functions: Mapping[tuple[int, str], int], lines: Mapping[int, int]) -> str:
    rows = ["TN:", f"SF:{file}"]
    rows += [f"FN:{line},{name}" for line, name in sorted(functions)]
    rows += [f"FNDA:{functions[line, name]},{name}" for line, name in sorted(functions)]
    rows += [f"FNF:{len(functions)}", f"FNH:{sum(count > 0 for count in functions.values())}"]
    rows += [f"DA:{line},{lines[line]}" for line in sorted(lines)]
    rows += [f"LF:{len(lines)}", f"LH:{sum(count > 0 for count in lines.values())}", "end_of_record"]
    return "\n".join(rows) + "\n"
