"""The hot path across calls: from a root the path with most accesses, the call in it with most, and so on.

Larus (Whole Program Paths, PLDI 1999) has exact interprocedural paths, from a trace of all paths. Here a function has
one hottest path, whoever calls it, and the chain goes from function to function through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


def hot_chain(paths: Sequence[Json], calls: Sequence[Json]) -> list[dict[str, Any]]:
    """The rows of the chain. Each is a function's path with most accesses, those of what it calls included, and the
    call in it under which most of them are, null where the chain ends: no call, or one of a function that is in it.

    `paths`, `calls`: the tables of a profile, in their order; of rows with equal numbers the first counts.
    """
    of_function: dict[str, Json] = {}
    for row in paths:
        function = row["path"]["id"].rpartition(":")[0]
        if function not in of_function or row["inclusive"] > of_function[function]["inclusive"]:
            of_function[function] = row
    of_caller: dict[str | None, list[Json]] = {}
    for row in calls:
        of_caller.setdefault(row["call"]["caller"], []).append(row)
    chain: list[dict[str, Any]] = []
    seen: set[str] = set()
    call = _hottest(of_caller.get(None, ()))
    while call is not None:
        function = call["call"]["callee"]
        path = of_function.get(function)
        if path is None or function in seen:
            break
        seen.add(function)
        inside = set(path["path"]["blocks"])
        call = _hottest([row for row in of_caller.get(function, ()) if row["call"]["block"] in inside])
        chain.append(
            {
                "path": path["path"],
                "frequency": path["frequency"],
                "accesses": path["loads"] + path["stores"],
                "inclusive": path["inclusive"],
                "call": None if call is None else call["call"],
            }
        )
    return chain


def _hottest(calls: Sequence[Json]) -> Json | None:
    """The call with most accesses below it."""
    return max(calls, key=lambda row: (row["accesses"], row["count"]), default=None) if calls else None
