"""The tables of `tracekit query` as lists of dicts, written down one by one from a profile's JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

Row = dict[str, Any]


def context_text(context: Any) -> str | None:
    if context is None:
        return None
    text = str(context["root"])
    for step in context["path"]:
        text += " > " + step
    return text


def loops(report: Any) -> list[Row]:
    """What is not words about transformations and obstacles."""
    rows = []
    for index, row in enumerate(report["result"]["loops"]):
        rows.append(
            {
                "loop": index + 1,
                "function": row["loop"]["function"],
                "file": row["loop"]["file"],
                "line": row["loop"]["line"] if row["loop"]["line"] > 0 else None,
                "context": context_text(row["context"]),
                "verdict": row["verdict"],
                "iterations": row["iterations"],
                "accesses": row["accesses"],
                "raw": row["carried"]["raw"],
                "war": row["carried"]["war"],
                "waw": row["carried"]["waw"],
                "carried": row["carried"]["raw"] + row["carried"]["war"] + row["carried"]["waw"],
                "is_recursive": "recursive" in row,
            }
        )
    return rows


def dependences(report: Any) -> list[Row]:
    rows = []
    for index, row in enumerate(report["result"]["dependences"]):
        made: Row = {"dependence": index + 1, "kind": row["kind"], "count": row["count"]}
        for end in ("source", "destination"):
            place = row[end]
            made[f"{end}_kind"] = place["kind"]
            made[f"{end}_function"] = place["function"]
            made[f"{end}_file"] = place["file"]
            made[f"{end}_line"] = place["line"] if place["line"] > 0 else None
            made[f"{end}_column"] = place["column"] if place["column"] > 0 else None
            made[f"{end}_id"] = place["id"]
            made[f"{end}_outer_function"] = place["function"]
            for user in place["inlined_at"]:
                made[f"{end}_outer_function"] = user["function"]
            made[f"{end}_context"] = context_text(row[f"{end}_context"])
        made |= dict.fromkeys(("carried_by", "carried_by_file", "carried_by_line", "min_distance", "max_distance"))
        made |= {"is_carried": False, "carrying_loops": 0}
        for level in row["levels"]:  # the innermost is the last
            if not level["inter"]:
                continue
            loop = level["loop"]
            made["is_carried"] = True
            made["carrying_loops"] += 1
            made["min_distance"], made["max_distance"] = level["min_distance"], level["max_distance"]
            if "recursion" in loop:
                made["carried_by"] = "recursion " + loop["recursion"]
                made["carried_by_file"] = made["carried_by_line"] = None
            else:
                made["carried_by"] = f"{loop['function']}:{loop['line']}"
                made["carried_by_file"] = loop["file"]
                made["carried_by_line"] = loop["line"] if loop["line"] > 0 else None
        rows.append(made)
    return rows


def levels(report: Any) -> list[Row]:
    rows = []
    for index, row in enumerate(report["result"]["dependences"]):
        for level in row["levels"]:
            loop = level["loop"]
            rows.append(
                {
                    "dependence": index + 1,
                    "function": loop["recursion"] if "recursion" in loop else loop["function"],
                    "is_recursion": "recursion" in loop,
                    "intra": level["intra"],
                    "inter": level["inter"],
                    "min_distance": level["min_distance"],
                    "max_distance": level["max_distance"],
                }
            )
    return rows


def contexts(report: Any) -> set[str]:
    named = [row["context"] for row in report["result"]["loops"]]
    for row in report["result"]["dependences"]:
        named += [row["source_context"], row["destination_context"]]
    return {text for text in map(context_text, named) if text is not None}


def functions(report: Any) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(function, file) -> loads, stores, bytes."""
    loads: Counter[tuple[str, str]] = Counter()
    stores: Counter[tuple[str, str]] = Counter()
    moved: Counter[tuple[str, str]] = Counter()
    for row in report["result"]["instructions"]:
        key = (row["instruction"]["function"], row["instruction"]["file"])
        loads[key] += row["loads"]
        stores[key] += row["stores"]
        moved[key] += row["bytes"]
    return {key: (loads[key], stores[key], moved[key]) for key in loads}


def lines(report: Any) -> dict[tuple[str, int | None], tuple[int, int]]:
    """(file, line) -> loads, stores."""
    sums: dict[tuple[str, int | None], tuple[int, int]] = {}
    for row in report["result"]["instructions"]:
        key = (row["instruction"]["file"], row["instruction"]["line"] or None)
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + row["loads"], before[1] + row["stores"])
    return sums
