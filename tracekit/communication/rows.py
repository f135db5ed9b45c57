"""The rows of a profile of communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracekit.communication.kernel import State
from tracekit.containers.hash_table import used_rows
from tracekit.contexts.roles import functions_of
from tracekit.dependence.rows import instruction_key
from tracekit.formats.events import NONE
from tracekit.modules.merge_rows import add, join_rows
from tracekit.program.program import Program

Json = Mapping[str, Any]
Rows = list[dict[str, Any]]

HALF = np.uint64(32)
NUMBERS = {"loads": add, "bytes": add}
LIBRARY: Json = {"id": None, "kind": "library", "function": "", "file": "", "line": 0, "column": 0, "inlined_at": []}


def result_of(program: Program, state: State) -> dict[str, Any]:
    """The profile of one run."""
    roles = functions_of(program, state.roles)
    summary = {"bytes_loaded": 0, "bytes_own": 0, "bytes_between": 0, "bytes_of_no_store": 0}
    threads: list[dict[str, Any]] = []
    for row in used_rows(state.streams)[1:]:
        writer, reader = int(row["key"] >> HALF) - 1, int(row["key"] & np.uint64(NONE)) - 1
        moved = int(row["bytes"])
        summary["bytes_loaded"] += moved
        kind = "bytes_of_no_store" if writer < 0 else "bytes_own" if writer == reader else "bytes_between"
        summary[kind] += moved
        if writer >= 0 and writer != reader:
            ends = {"source": _thread(writer, roles), "destination": _thread(reader, roles)}
            threads.append({**ends, "loads": int(row["loads"]), "bytes": moved})
    pairs = [
        {
            "source": _instruction(program, int(row["key"] >> HALF)),
            "destination": _instruction(program, int(row["key"] & np.uint64(NONE))),
            "kind": "RAW",
            "count": int(row["loads"]),
            "bytes": int(row["bytes"]),
        }
        for row in used_rows(state.pairs)[1:]
    ]
    return _whole(summary, threads, pairs, [_thread(number, roles) for number in sorted(roles)])


def _thread(number: int, roles: Mapping[int, str]) -> dict[str, Any]:
    return {"thread": number, "role": roles.get(number, "")}


def _instruction(program: Program, number: int) -> Json:
    return program.instruction(number) if number < len(program.ops) else LIBRARY


def _whole(summary: Json, threads: Rows, pairs: Rows, known: Rows) -> dict[str, Any]:
    """The profile: rows sorted, and bytes from role to role."""
    roles = join_rows(
        [
            [
                {
                    "source": row["source"]["role"],
                    "destination": row["destination"]["role"],
                    "loads": row["loads"],
                    "bytes": row["bytes"],
                }
                for row in threads
            ]
        ],
        ("source", "destination"),
        NUMBERS,
    )
    return {
        "summary": {**summary, "threads": len(known)},
        "threads": known,
        "roles": roles,
        "by_thread": sorted(threads, key=lambda row: (row["source"]["thread"], row["destination"]["thread"])),
        "dependences": sorted(
            pairs, key=lambda row: (*instruction_key(row["source"]), *instruction_key(row["destination"]))
        ),
    }


def joined(results: Sequence[Json]) -> dict[str, Any]:
    """The profile of several runs of one build."""
    summary: dict[str, int] = {}
    for result in results:
        for name, number in result["summary"].items():
            summary[name] = summary.get(name, 0) + number
    known = {(row["thread"], row["role"]) for result in results for row in result["threads"]}
    return _whole(
        summary,
        join_rows([result["by_thread"] for result in results], ("source", "destination"), NUMBERS),
        join_rows(
            [result["dependences"] for result in results],
            ("source", "destination", "kind"),
            {"count": add, "bytes": add},
        ),
        [{"thread": number, "role": role} for number, role in sorted(known)],
    )
