"""LLVM's memory profile as YAML: what ``llvm-profdata merge`` reads, for clang's -fmemory-profile-use (LLVM 20 on).

A record is of a function. It has the allocations that are compiled into it, each with its whole stack, and the calls
through which it leads to some. What the compiler will inline is not known, so an allocation stands in the records of
the innermost functions around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracekit.formats.errors import TracekitError

Json = dict[str, Any]

INNERMOST = 4
"""Functions that an allocation is said to be in."""

BLOCK = {
    "AllocCount": "blocks",
    **{
        f"{how}{name}": f"{prefix}{measure}"
        for name, measure in (
            ("AccessCount", "accesses"),
            ("Size", "bytes"),
            ("Lifetime", "lifetime"),
            ("AccessDensity", "density"),
            ("LifetimeAccessDensity", "lifetime_density"),
        )
        for how, prefix in (("Total", ""), ("Min", "least_"), ("Max", "most_"))
    },
}
"""Fields of a MemInfoBlock that a trace knows, and columns of ``memprof``."""

NARROW = frozenset({"AllocCount", "MinSize", "MaxSize", "MinLifetime", "MaxLifetime", "MinAccessDensity"}) | frozenset(
    {"MaxAccessDensity", "MinLifetimeAccessDensity", "MaxLifetimeAccessDensity"}
)
"""Those that have 32 bits."""


def fits(report: Json) -> bool:
    """Whether it is the module memprof's."""
    return bool(report["module"] == "memprof")


def write(report: Json, table: str) -> bytes:
    """The records, by the names of their functions. Raises TracekitError for another module's profile."""
    if not fits(report):
        raise TracekitError(f"memprof is made of a profile of the module memprof, not of {report['module']}.")
    rate = int(report["options"]["rate"])
    rows = [row for row in report["result"]["sites"] if row["stack"]]
    allocations: dict[str, list[Json]] = {}
    calls: dict[str, dict[str, Sequence[Json]]] = {}
    for row in rows:
        groups = list(_groups(row["stack"]))
        for name in dict.fromkeys(frame["function"] for group in groups[:INNERMOST] for frame in group):
            allocations.setdefault(name, []).append(row)
        for group in groups[1:]:
            for frame in group:
                calls.setdefault(frame["function"], {})[_frames(group, "")] = group
    lines = ["---", "HeapProfileRecords:" if rows else "HeapProfileRecords: []"]
    for name in sorted({*allocations, *calls}):
        lines.append(f"  - GUID: {_quoted(name)}")
        lines.append("    AllocSites:" if name in allocations else "    AllocSites: []")
        for row in allocations.get(name, ()):
            lines.append("      - Callstack:")
            lines.append(_frames(row["stack"], "          "))
            lines.append("        MemInfoBlock:")
            lines += [f"          {field}: {value}" for field, value in _block(row, rate).items()]
        lines.append("    CallSites:" if name in calls else "    CallSites: []")
        for frames in calls.get(name, {}).values():
            lines.append("      - Frames:")
            lines.append(_frames(frames, "          "))
    return ("\n".join(lines) + "\n...\n").encode()


def _block(row: Mapping[str, int], rate: int) -> dict[str, int]:
    """Numbers as MemInfoBlock has them: lifetimes in milliseconds."""
    found = {}
    for field, column in BLOCK.items():
        value = row[column] // rate if column.endswith("lifetime") else row[column]
        found[field] = min(value, 2**32 - 1 if field in NARROW else 2**64 - 1)
    return found


def _groups(stack: Sequence[Json]) -> Iterator[list[Json]]:
    """The frames of each function as it was compiled: what was inlined into it, and itself."""
    group = []
    for frame in stack:
        group.append(frame)
        if not frame["inlined"]:
            yield group
            group = []
    if group:
        yield group


def _frames(stack: Sequence[Json], indent: str) -> str:
    return "\n".join(
        f"{indent}- {{ Function: {_quoted(frame['function'])}, LineOffset: {frame['line']}, "
        f"Column: {frame['column']}, IsInlineFrame: {str(frame['inlined']).lower()} }}"
        for frame in stack
    )


def _quoted(name: str) -> str:
    """A scalar of YAML; names of functions have no quotes, but may begin like anything else."""
    return "'" + name.replace("'", "''") + "'"
